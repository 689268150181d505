// A save from the request to the file, while others change the table: what becomes of its copy, and
// of the memory that this takes.
// SPDX-License-Identifier: Apache-2.0
#include "archive_rig.h"
#include "checkpointed_table.h"
#include "faulty_disk.h"

#include "check.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace dtrain::ps;

namespace {

using Rig = ArchiveRig;
FaultyDisk quick_disk; // without faults

// Writes the next job's part.
const ArchiveJob &write(Rig &rig, const TemporaryFolder &folder, const Copying &copying = {}) {
    CheckpointFolder names(folder.name, quick_disk);
    ArchiveJob &job = *rig.shelf.jobs.front();
    run(job, names, quick_disk, any_memory, copying);
    return job;
}

void hand_over(Rig &rig) {
    std::unique_ptr<ArchiveJob> job = std::move(rig.shelf.jobs.front());
    rig.shelf.jobs.erase(rig.shelf.jobs.begin());
    rig.out.clear();
    rig.server.on_archived(std::move(job), rig.out);
}

void the_next_save_uses_the_memory_of_the_last(void **) {
    TemporaryFolder folder;
    Rig rig(DTRAIN_ASYNC, 1);
    const void *memory = nullptr;
    for (int round = 1; round <= 4; round++) {
        rig.push(0, 0, 1);
        rig.send(rig.header(RequestKind::save, 0));
        rig.push(0, 0, 1);
        const ArchiveJob &job = write(rig, folder);
        assert_int_equal(job.status, DTRAIN_OK);
        assert_true(rig.saved() == float(2 * round - 1));
        if (round > 1) assert_ptr_equal(memory, job.image->as_shard()->values.at(0));
        memory = job.image->as_shard()->values.at(0);
        assert_int_equal(rig.server.memory_used(), 2 * Rig::table_bytes);
        hand_over(rig);
        rig.expect(Reason::none);
        assert_int_equal(rig.server.memory_used(), Rig::table_bytes);
    }
    rig.send(rig.header(RequestKind::save, 0)); // two at a time have memory of their own
    rig.push(0, 0, 1);
    rig.send(rig.header(RequestKind::save, 0));
    rig.push(0, 0, 1);
    assert_ptr_equal(memory, rig.shelf.jobs[0]->image->as_shard()->values.at(0));
    assert_ptr_not_equal(memory, rig.shelf.jobs[1]->image->as_shard()->values.at(0));
    assert_true(rig.saved() == 9);
    write(rig, folder);
    hand_over(rig);
    assert_int_equal(write(rig, folder).status, DTRAIN_OK);
    hand_over(rig);
    rig.expect(Reason::none);
}

void memory_that_there_is_not(void **) {
    TemporaryFolder folder;
    Rig rig(DTRAIN_ASYNC, 1);
    rig.push(0, 0, 1);
    rig.send(rig.header(RequestKind::save, 0));
    Copying copying;
    copying.populate = [](const Buffer &, uint64_t, uint64_t) { return false; };
    const ArchiveJob &job = write(rig, folder, copying);
    assert_int_equal(job.status, DTRAIN_ERR_NO_MEMORY);
    assert_non_null(std::strstr(job.text.c_str(), "no memory to copy table \"t\""));
    rig.push(0, 0, 1); // the copy is still to be made
    hand_over(rig);
    rig.expect(Reason::told);
    assert_int_equal(told_status(rig.out[0].header.numbers[0]), DTRAIN_ERR_NO_MEMORY);
    assert_int_equal(rig.server.memory_used(), Rig::table_bytes);
    rig.push(0, 0, 1);
    assert_true(rig.value(0) == 3); // it lives on
    rig.send(rig.header(RequestKind::save, 0));
    assert_int_equal(write(rig, folder).status, DTRAIN_OK);
    assert_true(rig.saved() == 3);
    hand_over(rig);
    rig.expect(Reason::none);
}

void a_table_is_destroyed_while_it_is_saved(void **) {
    TemporaryFolder folder;
    Rig rig(DTRAIN_ASYNC, 1);
    rig.send(rig.header(RequestKind::save, 0));
    Copying copying;
    bool destroyed = false;
    copying.turn = [&](const auto &work) { // before the first
        if (!destroyed) rig.send(rig.header(RequestKind::destroy, 0));
        destroyed = true;
        work();
    };
    const ArchiveJob &job = write(rig, folder, copying);
    assert_false(rig.server.holds(0));
    assert_int_equal(job.status, DTRAIN_ERR_CANCELED);
    assert_string_equal(job.text.c_str(), "table \"t\" was destroyed while it was being saved");
    hand_over(rig);
    assert_int_equal(rig.out.size(), 0);
}

// The worker that asked for it does not wait any more: it is written, and the next one as well.
void a_save_is_given_up(void **) {
    TemporaryFolder folder;
    Rig rig(DTRAIN_ASYNC, 1);
    rig.push(0, 0, 1);
    RequestHeader save = rig.header(RequestKind::save, 0);
    rig.send(save);
    save.kind = RequestKind::cancel;
    save.argument = 0;
    rig.send(save);
    rig.expect(Reason::canceled);
    rig.push(0, 0, 1);
    assert_true(rig.saved() == 1);
    rig.send(rig.header(RequestKind::save, 0));
    for (const uint64_t answers : {0, 1}) {
        rig.push(0, 0, 1);
        assert_int_equal(write(rig, folder).status, DTRAIN_OK);
        hand_over(rig);
        assert_int_equal(rig.out.size(), answers);
    }
    assert_int_equal(rig.server.memory_used(), Rig::table_bytes);
}

// The thread writes what was there at the moment, while this one changes it.
void a_thread_writes_while_another_pushes(void **) {
    TemporaryFolder folder;
    Table table(adam(1 << 20), 1), other(table.params, 1); // its pages are mapped one by one
    Shard &shard = *table.shards[0];
    std::mutex mutex;
    std::atomic<bool> ended = false;
    const Manifest manifest = next_manifest(1);
    std::unique_ptr<ArchiveJob> written;
    ArchiveThread thread(folder.name, quick_disk,
                         {.reserve = [](ArchiveJob &, uint64_t bytes) { return bytes; },
                          .done =
                              [&](std::unique_ptr<ArchiveJob> job) {
                                  written = std::move(job);
                                  ended = true;
                              },
                          .locked =
                              [&](const std::function<void()> &work) {
                                  std::lock_guard lock(mutex);
                                  work();
                              }});
    table.push(1, 0, table.params.length, 1e-6f);
    const std::vector<float> due = table.values();
    auto job = std::make_unique<ArchiveJob>(job_for(RequestKind::save, table, 0, manifest));
    job->image = shard.image();
    std::mt19937_64 random(5);
    assert_int_equal(thread.start(std::move(job)), DTRAIN_OK);
    const std::vector<float> g(3000, 2);
    for (uint64_t pushes = 0; pushes < 1000 || !ended; pushes++) {
        const uint64_t first = random() % (table.params.length - g.size());
        std::lock_guard lock(mutex);
        shard.push({first, g.size()}, g.data(), true);
    }
    thread.stop();
    assert_int_equal(written->status, DTRAIN_OK);
    assert_true(written->lent && written->longest_turn > 0);
    CheckpointFolder names(folder.name, quick_disk);
    Manifest known = manifest;
    assert_int_equal(add_parts(names, known, table_name, 1, table.params), DTRAIN_OK);
    assert_int_equal(names.complete(known), DTRAIN_OK);
    assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
    assert_true(other.values() == due);
    assert_false(table.values() == due);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_next_save_uses_the_memory_of_the_last),
        cmocka_unit_test(memory_that_there_is_not),
        cmocka_unit_test(a_table_is_destroyed_while_it_is_saved),
        cmocka_unit_test(a_save_is_given_up),
        cmocka_unit_test(a_thread_writes_while_another_pushes),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
