// A rank is stopped while it reads another rank's buffer. That rank's call fails by its timeout,
// and it uses the buffer for something else. The reader, when it goes on, must not take that for
// the result: its call fails, too, unless it had everything before.
// SPDX-License-Identifier: Apache-2.0
#include "contract/kernel_copies.h"
#include "contract/processes.h"

#include <algorithm>

namespace {

using processes::Job;

constexpr size_t bytes = 3 << 20; // a few steps of a window's operation
// On a busy machine the reader has often finished before this process can stop it.
constexpr int wanted = 4, most_attempts = 150;

enum class Buffers { ordinary, shared };

// Rank 0's piece is filled with 1. The parent sees the memory into which rank 1 gets it.
dtrain_status_t call(Buffers buffers, dtrain_comm_t *comm, uint8_t *own, uint8_t *got) {
    if (buffers == Buffers::shared)
        return dtrain_broadcast(comm, own != nullptr ? own : got, bytes, DTRAIN_U8, 0, nullptr,
                                nullptr);
    return dtrain_alltoall(comm, own, got, bytes, DTRAIN_U8, nullptr, nullptr);
}

void owner(Buffers buffers, Job &job) {
    dtrain_context_t *context = ranks::make_context({{"op.timeout", "1s"}});
    dtrain_comm_t *comm = processes::join(job, context, 0, 2);
    std::vector<uint8_t> ordinary(2 * bytes), got(2 * bytes);
    uint8_t *own = ordinary.data();
    if (buffers == Buffers::shared) {
        dtrain_mem_t *memory = nullptr;
        OK(dtrain_mem_alloc(context, 2 * bytes, &memory));
        own = static_cast<uint8_t *>(dtrain_mem_address(memory));
    }
    std::memset(own, 1, 2 * bytes);
    job.seen(0).status = call(buffers, comm, own, got.data());
    std::memset(own, 2, 2 * bytes);
    job.seen(0).rounds = 1;
    while (job.seen(1).rounds == 0) processes::nap(); // its memory must stay
    _exit(0);
}

void reader(Buffers buffers, Job &job, uint8_t *into) {
    dtrain_context_t *context = ranks::make_context({{"op.timeout", "60s"}});
    dtrain_comm_t *comm = processes::join(job, context, 1, 2);
    std::vector<uint8_t> own(2 * bytes, 1);
    job.seen(1).status =
        call(buffers, comm, buffers == Buffers::ordinary ? own.data() : nullptr, into);
    job.seen(1).rounds = 1;
    _exit(0);
}

// Returns whether the reader was stopped in the middle.
bool attempt(Buffers buffers) {
    void *page =
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    auto *into = static_cast<uint8_t *>(page);
    std::fill_n(into, 2 * bytes, uint8_t(0));
    Job job;
    job.start(2, [&](int rank) { rank == 0 ? owner(buffers, job) : reader(buffers, job, into); });
    const auto has_come = [&](size_t at) {
        return std::atomic_ref<uint8_t>(into[at]).load(std::memory_order_relaxed) != 0;
    };
    for (const int64_t end = processes::now_ns() + 60'000'000'000; !has_come(0);)
        REQUIRE(processes::now_ns() < end);
    job.signal(1, SIGSTOP);
    for (int i = 0; i < 5; i++) processes::nap(); // until it has stopped
    const bool stopped = !has_come(bytes - 1);
    job.wait_for(0, [](const processes::Seen &seen) { return seen.rounds == 1; });
    job.signal(1, SIGCONT);
    job.wait_for(1, [](const processes::Seen &seen) { return seen.rounds == 1; });
    const uint8_t *wrong = std::find_if(into, into + bytes, [](uint8_t byte) { return byte != 1; });
    if (job.seen(1).status == DTRAIN_OK && wrong != into + bytes)
        fail_msg("byte %zd is %d", wrong - into, int(*wrong));
    job.expect_good_ends();
    munmap(page, 2 * bytes);
    return stopped;
}

void play(Buffers buffers) {
    int attempts = 0, stopped = 0;
    for (; stopped < wanted && attempts < most_attempts; attempts++) stopped += attempt(buffers);
    std::printf("%d of %d were stopped in the middle\n", stopped, attempts);
    assert_int_equal(stopped, wanted);
}

void of_ordinary_buffers(void **) {
    skip_without_kernel_copies();
    play(Buffers::ordinary);
}
void of_shared_buffers(void **) { play(Buffers::shared); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(of_ordinary_buffers),
        cmocka_unit_test(of_shared_buffers),
    };
    return cmocka_run_group_tests_name("stopped readers", tests, nullptr, nullptr);
}
