// Ranks that have done their part end as they like: whoever has all it needs succeeds.
// SPDX-License-Identifier: Apache-2.0
//
// The seed is printed; DTRAIN_TEST_SEED repeats a run, DTRAIN_TEST_ROUNDS says how many jobs.
#include "contract/processes.h"

#include <random>

namespace {

using processes::Job;

enum class End { destroys, destroys_slowly, returns, vanishes, is_killed, count };

uint32_t from_environment(const char *name, uint32_t otherwise) {
    const char *value = std::getenv(name);
    return value == nullptr ? otherwise : uint32_t(std::strtoul(value, nullptr, 10));
}

// The life of a rank: its calls, each of which must succeed, and then its end.
struct Life {
    Job &job;
    int rank, size;
    dtrain_context_t *context;
    dtrain_comm_t *comm;

    Life(Job &of, int own_rank, int ranks, const ranks::Options &options)
        : job(of), rank(own_rank), size(ranks), context(ranks::make_context(options)),
          comm(processes::join(of, context, own_rank, ranks)) {}

    void done() { job.seen(rank).rounds++; }

    void end(End how) {
        switch (how) {
        case End::destroys:
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
            break;
        case End::destroys_slowly:
            OK(dtrain_comm_destroy(comm));
            processes::nap();
            OK(dtrain_context_destroy(context));
            break;
        case End::returns: exit(0); // as `return 0;` of main()
        case End::vanishes: _exit(0);
        case End::is_killed: kill(getpid(), SIGKILL); break;
        case End::count: break;
        }
    }
};

using Calls = void(Life &, uint32_t seed);

void sums(Life &life, uint32_t) {
    std::vector<float> data(1000, 1), sum(1000);
    for (int i = 0; i < 20; i++) {
        OK(dtrain_allreduce(life.comm, data.data(), sum.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        REQUIRE(sum[999] == float(life.size));
        life.done();
    }
}

void large_sums(Life &life, uint32_t) {
    std::vector<float> data(100'000, 1), sum(100'000);
    for (int i = 0; i < 4; i++) {
        OK(dtrain_allreduce(life.comm, data.data(), sum.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        REQUIRE(sum[99'999] == float(life.size));
        life.done();
    }
}

// The same on all ranks: kinds in which some run ahead of others, and barriers.
void mixed(Life &life, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int64_t> data(300), all(300 * size_t(life.size));
    for (int i = 0; i < 20; i++) {
        const int root = int(random() % uint32_t(life.size));
        std::fill(data.begin(), data.end(), life.rank + i);
        switch (random() % 5) {
        case 0: OK(dtrain_barrier(life.comm, nullptr, nullptr)); break;
        case 1:
            OK(dtrain_broadcast(life.comm, data.data(), data.size(), DTRAIN_I64, root, nullptr,
                                nullptr));
            REQUIRE(data[299] == root + i);
            break;
        case 2:
            OK(dtrain_allgather(life.comm, data.data(), all.data(), data.size(), DTRAIN_I64,
                                nullptr, nullptr));
            REQUIRE(all.back() == life.size - 1 + i);
            break;
        case 3:
            OK(dtrain_reduce(life.comm, data.data(), all.data(), data.size(), DTRAIN_I64,
                             DTRAIN_MAX, root, nullptr, nullptr));
            REQUIRE(life.rank != root || all[0] == life.size - 1 + i);
            break;
        case 4:
            OK(dtrain_allreduce(life.comm, data.data(), all.data(), data.size(), DTRAIN_I64,
                                DTRAIN_MAX, nullptr, nullptr));
            REQUIRE(all[0] == life.size - 1 + i);
            break;
        }
        life.done();
    }
}

// Around the ring, and the last ones all to rank 0, which takes them when their senders are gone.
void messages(Life &life, uint32_t) {
    const int next = (life.rank + 1) % life.size, before = (life.rank + life.size - 1) % life.size;
    int64_t out = life.rank, in = -1;
    for (int i = 0; i < 10; i++) {
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(life.comm, &in, 1, DTRAIN_I64, before, 0, nullptr, &request));
        OK(dtrain_send(life.comm, &out, 1, DTRAIN_I64, next, 0, nullptr, nullptr));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        REQUIRE(in == before);
        life.done();
    }
    if (life.rank != 0) {
        OK(dtrain_send(life.comm, &out, 1, DTRAIN_I64, 0, 1, nullptr, nullptr));
        OK(dtrain_send(life.comm, &out, 1, DTRAIN_I64, 0, 2, nullptr, nullptr));
        return;
    }
    int64_t sum = 0;
    for (int r = 1; r < life.size; r++) {
        processes::nap();
        OK(dtrain_recv(life.comm, &in, 1, DTRAIN_I64, r, 1, nullptr, nullptr));
        REQUIRE(in == r);
        OK(dtrain_recv(life.comm, &in, 1, DTRAIN_I64, DTRAIN_ANY_RANK, 2, nullptr, nullptr));
        sum += in;
    }
    REQUIRE(sum == life.size * (life.size - 1) / 2);
}

// Jobs of 3 and 4 ranks, each with another mixture of ends.
void jobs(const char *what, Calls *calls, const ranks::Options &options, uint32_t rounds) {
    const uint32_t seed = from_environment("DTRAIN_TEST_SEED", 1);
    rounds = from_environment("DTRAIN_TEST_ROUNDS", rounds);
    uint32_t bad = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        std::mt19937 random(seed + round);
        const int size = 3 + int(random() % 2);
        const bool alike = random() % 2 == 0; // as most programs end: all of them in one way
        std::vector<End> ends;
        for (int r = 0; r < size; r++)
            ends.push_back(alike && r > 0 ? ends[0] : End(random() % uint32_t(End::count)));
        Job job;
        job.start(size, [&](int rank) {
            Life life(job, rank, size, options);
            calls(life, seed + round);
            job.seen(rank).status = 1;
            life.end(ends[size_t(rank)]);
        });
        job.wait_for_ends();
        for (int r = 0; r < size; r++)
            if (job.seen(r).status != 1) {
                std::fprintf(stderr, "%s: seed %u: rank %d failed after %lld calls\n", what,
                             seed + round, r, static_cast<long long>(job.seen(r).rounds));
                bad++;
                break;
            }
    }
    std::printf("%s: %u jobs, %u with a rank that failed\n", what, rounds, bad);
    assert_int_equal(bad, 0);
}

const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}};

void sums_over_tcp(void **) { jobs("sums over tcp", sums, over_tcp, 60); }
void sums_over_shm(void **) { jobs("sums over shm", sums, over_shm, 40); }
void large_sums_over_tcp(void **) { jobs("large sums over tcp", large_sums, over_tcp, 20); }
void large_sums_over_shm(void **) { jobs("large sums over shm", large_sums, over_shm, 20); }
void mixed_over_tcp(void **) { jobs("mixed over tcp", mixed, over_tcp, 40); }
void mixed_over_shm(void **) { jobs("mixed over shm", mixed, over_shm, 20); }
void messages_over_tcp(void **) { jobs("messages over tcp", messages, over_tcp, 30); }
void messages_over_shm(void **) { jobs("messages over shm", messages, over_shm, 20); }

// What a rank does after its part concerns none of the calls before.
enum class After { abort, mismatch };

void the_last_call_goes_wrong(After after, const ranks::Options &options) {
    constexpr int size = 3, calls = 5;
    for (int round = 0; round < 20; round++) {
        Job job;
        job.start(size, [&](int rank) {
            Life life(job, rank, size, options);
            // Rank 2 is late, so that the others' next calls are known before it has ended this.
            for (int i = 0; i < calls; i++) {
                if (rank == 2 && i == calls - 1) processes::nap();
                OK(dtrain_barrier(life.comm, nullptr, nullptr));
                life.done();
            }
            int32_t x[2] = {1, 1};
            if (after == After::mismatch)
                FAILS(DTRAIN_ERR_MISMATCH,
                      dtrain_allreduce(life.comm, x, x, rank == 0 ? 1 : 2, DTRAIN_I32, DTRAIN_SUM,
                                       nullptr, nullptr));
            else if (rank == 0)
                OK(dtrain_comm_abort(life.comm, "enough"));
            else
                FAILS(DTRAIN_ERR_ABORTED, dtrain_barrier(life.comm, nullptr, nullptr));
            OK(dtrain_comm_destroy(life.comm));
            OK(dtrain_context_destroy(life.context));
        });
        job.expect_good_ends();
        for (int r = 0; r < size; r++) assert_int_equal(job.seen(r).rounds, calls);
    }
}
void aborted_afterwards(void **) {
    the_last_call_goes_wrong(After::abort, over_tcp);
    the_last_call_goes_wrong(After::abort, over_shm);
}
void different_afterwards(void **) {
    the_last_call_goes_wrong(After::mismatch, over_tcp);
    the_last_call_goes_wrong(After::mismatch, over_shm);
}

// All ranks have just told of a stall, so the first report of a difference is left out, as too many
// would be sent otherwise. The next one is not.
void different_after_stalls(const ranks::Options &options) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int rank) {
        ranks::Options own = options;
        own.emplace_back("op.timeout", "60s");
        Life life(job, rank, size, own);
        for (int late = 0; late < size; late++) {
            for (int i = 0; rank == late && i < 200; i++) processes::nap();
            OK(dtrain_barrier(life.comm, nullptr, nullptr));
        }
        int32_t x[2] = {1, 1};
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_allreduce(life.comm, x, x, rank == 0 ? 1 : 2, DTRAIN_I32,
                                                    DTRAIN_SUM, nullptr, nullptr));
        OK(dtrain_comm_destroy(life.comm));
        OK(dtrain_context_destroy(life.context));
    });
    job.expect_good_ends();
}
void different_after_all_have_stalled(void **) {
    different_after_stalls(over_tcp);
    different_after_stalls(over_shm);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_tcp),
        cmocka_unit_test(sums_over_shm),
        cmocka_unit_test(large_sums_over_tcp),
        cmocka_unit_test(large_sums_over_shm),
        cmocka_unit_test(mixed_over_tcp),
        cmocka_unit_test(mixed_over_shm),
        cmocka_unit_test(messages_over_tcp),
        cmocka_unit_test(messages_over_shm),
        cmocka_unit_test(aborted_afterwards),
        cmocka_unit_test(different_afterwards),
        cmocka_unit_test(different_after_all_have_stalled),
    };
    return cmocka_run_group_tests_name("ends", tests, nullptr, nullptr);
}
