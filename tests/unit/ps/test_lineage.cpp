// Which checkpoint is the newest, which step may be saved, and what is old.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/lineage.h"

#include "check.h"

#include <algorithm>
#include <cstring>

using namespace dtrain::ps;
using dtrain::Status;

namespace {

using Names = std::vector<std::string>;

// A folder of manifests, and what a worker does with it.
class Folder {
  public:
    Status save(Lineage &lineage, const Names &tables, uint64_t step, uint32_t keep = 100) {
        Manifest manifest;
        const Manifest *replaced = nullptr;
        if (Status s = lineage.next(all, tables, step, "it", manifest, replaced); s != DTRAIN_OK)
            return s;
        if (replaced != nullptr) drop(step);
        for (const std::string &name : tables) manifest.tables.push_back({name, {{1, 0}}});
        all.push_back(manifest);
        lineage.saved(manifest);
        for (uint64_t old : old_ones(all, manifest.lineage, keep)) drop(old);
        return DTRAIN_OK;
    }
    // The step, or a failure.
    int64_t newest(const Lineage &lineage, const Names &tables) const {
        const Manifest *found = nullptr;
        const Status s = lineage.newest(all, tables, found);
        return s == DTRAIN_OK ? int64_t(found->step) : s;
    }
    int64_t restore(Lineage &lineage, const Names &tables, int64_t step = -1) {
        const int64_t chosen = step >= 0 ? step : newest(lineage, tables);
        for (const Manifest &one : all)
            if (int64_t(one.step) == chosen) lineage.restored(all, one, tables);
        return chosen;
    }
    std::vector<uint64_t> steps() const {
        std::vector<uint64_t> steps;
        for (const Manifest &one : all) steps.push_back(one.step);
        std::sort(steps.begin(), steps.end());
        return steps;
    }
    std::vector<Manifest> all;

  private:
    void drop(uint64_t step) {
        std::erase_if(all, [&](const Manifest &one) { return one.step == step; });
    }
};

void expect_steps(const Folder &folder, const std::vector<uint64_t> &due) {
    assert_true(folder.steps() == due);
}

void each_table_has_a_newest(void **) {
    Folder folder;
    Lineage job(1);
    assert_int_equal(folder.newest(job, {"emb"}), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(folder.save(job, {"emb"}, 1000), DTRAIN_OK);
    for (uint64_t step = 1100; step < 1600; step += 100)
        assert_int_equal(folder.save(job, {"dense"}, step, 2), DTRAIN_OK);
    expect_steps(folder, {1000, 1400, 1500});
    Lineage next(2);
    assert_int_equal(folder.newest(next, {"emb"}), 1000);
    assert_int_equal(folder.newest(next, {"dense"}), 1500);
    assert_int_equal(folder.newest(next, {"dense", "emb"}), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(folder.restore(next, {"emb"}), 1000);
    assert_int_equal(folder.restore(next, {"dense"}), 1500);
    assert_int_equal(folder.save(next, {"dense"}, 1500), DTRAIN_ERR_STATE);
    assert_non_null(std::strstr(dtrain::error_text(), "not beyond step 1500"));
    assert_int_equal(folder.save(next, {"emb"}, 1200), DTRAIN_OK); // beyond its own
    assert_int_equal(folder.newest(next, {"emb"}), 1200);
    assert_int_equal(folder.newest(next, {"dense"}), 1500);
    assert_int_equal(folder.save(next, {"dense", "emb"}, 1600, 1), DTRAIN_OK);
    expect_steps(folder, {1600});
}

void what_was_left_behind_is_not_the_newest(void **) {
    Folder folder;
    Lineage job(1);
    for (uint64_t step : {10, 20, 30}) assert_int_equal(folder.save(job, {"w"}, step), DTRAIN_OK);
    assert_int_equal(folder.restore(job, {"w"}, 10), 10);
    assert_int_equal(folder.save(job, {"w"}, 10), DTRAIN_ERR_STATE);
    assert_int_equal(folder.save(job, {"w"}, 15), DTRAIN_OK);
    assert_int_equal(folder.newest(job, {"w"}), 15);
    Lineage next(2); // after a crash
    assert_int_equal(folder.restore(next, {"w"}), 15);
    assert_int_equal(folder.save(next, {"w"}, 20, 3), DTRAIN_OK); // replaces the other 20
    assert_int_equal(folder.newest(next, {"w"}), 20);
    expect_steps(folder, {15, 20, 30});
    assert_int_equal(folder.save(next, {"w"}, 25, 3), DTRAIN_OK);
    assert_int_equal(folder.newest(Lineage(3), {"w"}), 25);
    expect_steps(folder, {15, 20, 25}); // 30 was saved before these
}

// What has a table that this job does not know may still be wanted.
void only_what_is_known_is_replaced(void **) {
    Folder folder;
    Lineage job(1), next(2);
    assert_int_equal(folder.save(job, {"w", "v"}, 10), DTRAIN_OK);
    assert_int_equal(folder.save(job, {"w", "v"}, 20), DTRAIN_OK);
    assert_int_equal(folder.restore(next, {"w"}, 10), 10);
    assert_int_equal(folder.save(next, {"w"}, 20), DTRAIN_ERR_STATE);
    assert_non_null(std::strstr(dtrain::error_text(), "already exists"));
    assert_int_equal(folder.restore(next, {"v"}, 10), 10);
    assert_int_equal(folder.save(next, {"w", "v"}, 20), DTRAIN_OK);
    expect_steps(folder, {10, 20});
}

void jobs_that_share_a_folder_stay_apart(void **) {
    Folder folder;
    Lineage one(1), two(2);
    for (uint64_t step = 10; step < 100; step += 10) {
        assert_int_equal(folder.save(one, {"w"}, step, 2), DTRAIN_OK);
        assert_int_equal(folder.save(two, {"w"}, step + 5, 3), DTRAIN_OK);
    }
    expect_steps(folder, {75, 80, 85, 90, 95});
    assert_int_equal(folder.newest(one, {"w"}), 90);
    assert_int_equal(folder.newest(two, {"w"}), 95);
    assert_int_equal(folder.save(two, {"w"}, 100), DTRAIN_OK);
    assert_int_equal(folder.save(one, {"w"}, 100), DTRAIN_ERR_STATE);
    assert_non_null(std::strstr(dtrain::error_text(), "belongs to another job"));
    // A third one has to say which it means.
    Lineage three(3);
    assert_int_equal(folder.newest(three, {"w"}), DTRAIN_ERR_STATE);
    assert_non_null(std::strstr(dtrain::error_text(), "name the step"));
    assert_int_equal(folder.restore(three, {"w"}, 90), 90);
    assert_int_equal(folder.save(three, {"w"}, 110), DTRAIN_OK);
    assert_int_equal(folder.newest(three, {"w"}), 110);
    assert_int_equal(folder.newest(two, {"w"}), 100);
    // Only tables of the same name are in question.
    assert_int_equal(folder.save(two, {"v"}, 120), DTRAIN_OK);
    assert_int_equal(folder.newest(Lineage(4), {"v"}), 120);
}

void a_job_that_starts_anew_takes_nothing(void **) {
    Folder folder;
    Lineage before(1), anew(2);
    assert_int_equal(folder.save(before, {"w"}, 500, 1), DTRAIN_OK);
    assert_int_equal(folder.save(anew, {"w"}, 10, 1), DTRAIN_OK);
    assert_int_equal(folder.save(anew, {"w"}, 20, 1), DTRAIN_OK);
    expect_steps(folder, {20, 500});
    assert_int_equal(folder.newest(anew, {"w"}), 20);
}

void all_workers_of_a_job_go_on(void **) {
    Folder folder;
    Lineage before(1), chief(2), other(2), third(2);
    assert_int_equal(folder.save(before, {"w"}, 10), DTRAIN_OK);
    const Lineage::Point point = chief.restored(folder.all, folder.all[0], Names{"w"});
    other.take(point, "w");
    assert_int_equal(folder.save(other, {"w"}, 10), DTRAIN_ERR_STATE);
    assert_int_equal(folder.save(other, {"w"}, 20), DTRAIN_OK);
    assert_int_equal(folder.save(chief, {"w"}, 20), DTRAIN_ERR_STATE);
    assert_int_equal(folder.save(chief, {"w"}, 30), DTRAIN_OK);
    assert_int_equal(folder.save(third, {"w"}, 25), DTRAIN_ERR_STATE); // by what is in the folder
    assert_int_equal(folder.save(third, {"w"}, 40), DTRAIN_OK);
    for (const Manifest &one : folder.all) assert_int_equal(one.lineage, 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_table_has_a_newest),
        cmocka_unit_test(what_was_left_behind_is_not_the_newest),
        cmocka_unit_test(only_what_is_known_is_replaced),
        cmocka_unit_test(jobs_that_share_a_folder_stay_apart),
        cmocka_unit_test(a_job_that_starts_anew_takes_nothing),
        cmocka_unit_test(all_workers_of_a_job_go_on),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
