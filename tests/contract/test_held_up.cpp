// Whatever a process does for longer than heartbeat.timeout, in a function of its server or while
// its disk hangs, it answers heartbeats, and is not lost.
// SPDX-License-Identifier: Apache-2.0
#include "contract/function_case.h"
#include "contract/processes.h"

#include <sys/stat.h>
#include <sys/syscall.h>

namespace {

using processes::Job;

constexpr int size = 3, slow_one = 1, killed_one = 2;
constexpr int64_t heartbeat_ms = 1500, held_ms = 3 * heartbeat_ms;

processes::Seen *seen_by_slow_one = nullptr;
std::atomic<bool> disk_hangs{false};
std::atomic<int> writes_that_wait{0};

dtrain_status_t update_slowly(void *, const dtrain_function_batch_t *batch) {
    if (functions::floats(batch->rows[0].pushed)[0] != 666) return DTRAIN_OK;
    seen_by_slow_one->rounds++;
    timespec t = {held_ms / 1000, held_ms % 1000 * 1'000'000};
    nanosleep(&t, nullptr);
    return DTRAIN_OK;
}

uint64_t row_at(dtrain_table_t *table, uint32_t wanted) {
    for (uint64_t row = 0;; row++) {
        uint32_t server;
        const uint64_t key = row * functions::row_length;
        OK(dtrain_table_locate(table, &key, 1, &server));
        if (server == wanted) return row;
    }
}

// The slow one moves its data itself, so that its other thread is free for the control plane.
void work(Job &job, int rank) {
    const std::string heartbeat = std::to_string(heartbeat_ms) + "ms";
    dtrain_context_t *context = ranks::make_context({{"heartbeat.timeout", heartbeat.c_str()}});
    functions::Seen unused;
    dtrain_function_t function = functions::function_of(unused);
    function.update = update_slowly;
    OK(dtrain_function_register(context, &function));
    dtrain_comm_t *comm = processes::join(job, context, rank, size);
    dtrain_table_t *table = functions::make(comm, "slow", functions::dense(DTRAIN_ASYNC, "add"));
    OK(dtrain_barrier(comm, nullptr, nullptr));
    if (rank == killed_one)
        for (;;) processes::nap();
    if (rank == 0) {
        const uint64_t row = row_at(table, slow_one) * functions::row_length;
        const std::vector<float> numbers(functions::row_length, 666);
        OK(dtrain_table_push(table, row, numbers.size(), numbers.data(), nullptr, nullptr));
    }
    float value = 0;
    const dtrain_status_t s =
        dtrain_allreduce(comm, &value, &value, 1, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr);
    processes::note_failure(job.seen(rank), s);
    dtrain_comm_t *rest = nullptr;
    OK(dtrain_comm_shrink(comm, &rest));
    REQUIRE(dtrain_comm_size(rest) == size - 1);
    OK(dtrain_barrier(rest, nullptr, nullptr));
    OK(dtrain_comm_destroy(rest));
    dtrain_table_destroy(table);
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

void nobody_but_the_dead_is_lost(void **) {
    Job job;
    seen_by_slow_one = &job.seen(slow_one);
    job.start(size, [&](int rank) { work(job, rank); });
    job.wait_for_rounds(slow_one + 1, 0);
    job.wait_for(slow_one, [](const processes::Seen &seen) { return seen.rounds > 0; });
    job.kill_now(killed_one);
    job.expect_good_ends();
    for (int rank : {0, slow_one}) {
        std::printf("%s\n", job.seen(rank).text);
        REQUIRE(job.seen(rank).status == DTRAIN_ERR_PEER);
        REQUIRE(std::strstr(job.seen(rank).text, "rank 2") != nullptr);
    }
}

// Its disk takes nothing for a while.
void write_slowly(Job &job, int rank, const std::string &path) {
    const std::string heartbeat = std::to_string(heartbeat_ms) + "ms";
    dtrain_context_t *context = ranks::make_context({{"heartbeat.timeout", heartbeat.c_str()}});
    dtrain_comm_t *comm = processes::join(job, context, rank, 2);
    if (rank == 1) {
        OK(dtrain_timeline_start(context, path.c_str()));
        disk_hangs = true;
    }
    constexpr int steps = 500;
    for (int i = 0; i < steps; i++) {
        OK(dtrain_barrier(comm, nullptr, nullptr)); // a record to write
        timespec t = {0, held_ms * 1'000'000 / steps};
        nanosleep(&t, nullptr);
    }
    job.seen(rank).rounds = writes_that_wait;
    disk_hangs = false;
    OK(dtrain_barrier(comm, nullptr, nullptr));
    if (rank == 1) OK(dtrain_timeline_stop(context));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

void a_disk_that_hangs(void **) {
    const TemporaryFolder folder;
    Job job;
    job.start(2, [&](int rank) { write_slowly(job, rank, folder.file("timeline.json")); });
    job.expect_good_ends();
    REQUIRE(job.seen(1).rounds == 1);
}

} // namespace

// Instead of the C library's, for the library as well.
extern "C" [[gnu::visibility("default")]] ssize_t write(int fd, const void *bytes, size_t count) {
    struct stat what;
    if (disk_hangs && fstat(fd, &what) == 0 && S_ISREG(what.st_mode)) {
        writes_that_wait++;
        while (disk_hangs) processes::nap();
    }
    return syscall(SYS_write, fd, bytes, count);
}

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(nobody_but_the_dead_is_lost),
                                cmocka_unit_test(a_disk_that_hangs)};
    return cmocka_run_group_tests_name("held_up", tests, nullptr, nullptr);
}
