// A process is killed at each system call by which a save changes the folder of checkpoints. The
// next process restores all values of the checkpoint before, or of the new one, and saves another
// one, after which nothing of the killed one is left.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include "crash/traced.h"
#include "crash/tree.h"
#include "temporary_folder.h"

#include <csignal>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr uint64_t length = 3000, dim = 3, rows = 100;
constexpr unsigned patience_s = 120; // of one process, on a busy machine

// After the save of step n all values are n.
struct Tables {
    explicit Tables(dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.rule = DTRAIN_RULE_ADD;
        params.length = length;
        OK(dtrain_table_create(comm, "dense", &params, &both[0]));
        params.length = 0;
        params.dim = dim;
        OK(dtrain_table_create(comm, "rows", &params, &both[1]));
        for (uint64_t i = 0; i < rows; i++) keys[i] = i * i;
    }
    ~Tables() {
        for (dtrain_table_t *table : both) OK(dtrain_table_destroy(table));
    }
    void add_one() {
        const std::vector<float> ones(length, 1);
        OK(dtrain_table_push(both[0], 0, length, ones.data(), nullptr, nullptr));
        OK(dtrain_table_push_rows(both[1], keys, rows, ones.data(), nullptr, nullptr));
    }
    // Of the checkpoint from which they were restored; 0: none.
    uint64_t step() {
        uint64_t steps[2] = {};
        for (int i : {0, 1})
            if (dtrain_table_restored(both[i], &steps[i]) != DTRAIN_OK) steps[i] = 0;
        REQUIRE(steps[0] == steps[1]);
        std::vector<float> dense(length), sparse(rows * dim);
        OK(dtrain_table_pull(both[0], 0, length, dense.data(), nullptr, nullptr));
        OK(dtrain_table_pull_rows(both[1], keys, rows, sparse.data(), nullptr, nullptr));
        for (const std::vector<float> &values : {dense, sparse})
            for (float value : values) REQUIRE(value == float(steps[0]));
        return steps[0];
    }
    dtrain_table_t *both[2] = {};
    uint64_t keys[rows];
};

// Restores the newest checkpoint, if there is one, and saves the next. Returns the step that was
// restored. To be called in a new process, which is the worker and the server.
int train(const std::string &folder) {
    alarm(patience_s);
    const ranks::Options options = {{"checkpoint.directory", folder + "/checkpoints"},
                                    {"checkpoint.keep", "1"},
                                    {"checkpoint.restore", "yes"},
                                    {"log.level", "error"}};
    uint64_t step = 0;
    ranks::run(1, 0, options, [&](int, dtrain_comm_t *comm) {
        Tables tables(comm);
        step = tables.step();
        tables.add_one();
        OK(dtrain_checkpoint_save(tables.both, 2, step + 1, nullptr, nullptr));
    });
    return int(step);
}

int train_apart(const std::string &folder) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(train(folder));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

// The names of the files of all checkpoints, whatever their steps.
std::multiset<std::string> names_in(const std::string &folder) {
    std::multiset<std::string> names;
    for (const auto &[path, content] : crash::read_tree(folder))
        if (content) names.insert(std::filesystem::path(path).filename());
    return names;
}

// One process after the other, each killed one call later, until one ends by itself.
void killed_at_every_call(void **) {
    const TemporaryFolder folder("/dev/shm");
    assert_int_equal(train_apart(folder.name), 0);
    const crash::Tree before = crash::read_tree(folder.name);
    const std::multiset<std::string> names = names_in(folder.name);
    int kills = 0, new_ones = 0;
    for (bool killed = true; killed; kills += killed) {
        crash::write_tree(before, folder.name);
        int calls = 0;
        std::string last;
        crash::Traced process(folder.name, [&](const crash::DiskCall &call, bool ended) {
            if (ended || calls++ < kills) return true;
            last = describe(call);
            return false;
        });
        const int status = process.run([&] { return train(folder.name); });
        killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!killed) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        const int restored = train_apart(folder.name);
        if (restored != 2 && (restored != 1 || !killed))
            fail_msg("killed at call %d, %s: step %d was restored", kills, last.c_str(), restored);
        if (names_in(folder.name) != names)
            fail_msg("killed at call %d, %s: files are left", kills, last.c_str());
        new_ones += restored == 2;
    }
    print_message("killed at each of %d calls; then %d times the new checkpoint was there\n", kills,
                  new_ones - 1);
    assert_true(kills > 30 && new_ones > 5 && new_ones < kills);
}

} // namespace

int main() {
    if (!crash::Traced::works()) return std::puts(crash::Traced::skipped), 77;
    const CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_call),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
