// Communicators made by their members alone, while the other ranks do something else, or are dead.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

#include <algorithm>
#include <random>

namespace {

using ranks::last_error;
using List = std::vector<int32_t>;

constexpr int64_t second = 1'000'000'000;
constexpr uint64_t seed = 20282;

dtrain_status_t create(dtrain_comm_t *comm, const List &list, int32_t tag, dtrain_comm_t **out,
                       int64_t timeout_ns = 0) {
    return dtrain_comm_create_group(comm, list.data(), int32_t(list.size()), tag, timeout_ns, out);
}

bool has(const List &list, int rank) {
    return std::find(list.begin(), list.end(), rank) != list.end();
}

void expect_text(const char *text) {
    if (last_error().find(text) != std::string::npos) return;
    std::fprintf(stderr, "%s: no %s\n", last_error().c_str(), text);
    std::abort();
}

// Each rank has its place in the list; a sum tells who took part.
void expect_members(dtrain_comm_t *group, int rank, const List &list, size_t count) {
    REQUIRE(dtrain_comm_size(group) == int32_t(list.size()));
    REQUIRE(list[size_t(dtrain_comm_rank(group))] == rank);
    std::vector<int64_t> x(count, int64_t{1} << rank);
    int64_t want = 0;
    for (int32_t r : list) want |= int64_t{1} << r;
    OK(dtrain_allreduce(group, x.data(), x.data(), count, DTRAIN_I64, DTRAIN_SUM, nullptr,
                        nullptr));
    for (int64_t value : x) REQUIRE(value == want);
}

void members_only(const ranks::Options &options) {
    const List lists[] = {{3, 0, 4}, {1}, {4, 3, 2, 1, 0}, {1, 2}};
    ranks::run(5, options, [&](int rank, dtrain_comm_t *comm) {
        for (const List &list : lists) {
            if (!has(list, rank)) continue;
            dtrain_comm_t *group = nullptr;
            OK(create(comm, list, 0, &group));
            for (size_t count : {1u, 10'000u}) expect_members(group, rank, list, count);
            dtrain_comm_t *part = nullptr; // a group of a group
            const List last = {int32_t(list.size()) - 1};
            if (dtrain_comm_rank(group) == last[0]) {
                OK(create(group, last, 0, &part));
                expect_members(part, rank, {rank}, 3);
                OK(dtrain_comm_destroy(part));
            }
            OK(dtrain_comm_destroy(group));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void over_shm(void **) { members_only({}); }
void over_tcp(void **) { members_only({{"transports", "tcp"}}); }
void without_helper(void **) { members_only({{"progress", "manual"}}); }

// A group's end leaves the messages of all others, whatever numbers their tags have got.
void many_groups_lose_no_message(void **) {
    constexpr int32_t groups = 3000, ahead = 16;
    ranks::run(2, {{"transports", "tcp"}, {"op.timeout", "20s"}},
               [](int rank, dtrain_comm_t *comm) {
                   for (int32_t i = 0; i < groups + ahead; i++) {
                       if (rank == 0) {
                           OK(dtrain_send(comm, &i, 1, DTRAIN_I32, 1, 0, nullptr, nullptr));
                           if (i % ahead == 0) OK(dtrain_barrier(comm, nullptr, nullptr));
                           continue;
                       }
                       if (i % ahead == 0) OK(dtrain_barrier(comm, nullptr, nullptr));
                       if (i < ahead) continue;
                       dtrain_comm_t *alone = nullptr;
                       OK(create(comm, {1}, i, &alone));
                       OK(dtrain_comm_destroy(alone));
                       int32_t got = -1;
                       OK(dtrain_recv(comm, &got, 1, DTRAIN_I32, 0, 0, nullptr, nullptr));
                       REQUIRE(got == i - ahead);
                   }
                   OK(dtrain_barrier(comm, nullptr, nullptr));
               });
}

// All ranks reduce on the communicator, while a thread of some makes groups of them.
void others_are_busy(void **) {
    ranks::run(4, {}, [](int rank, dtrain_comm_t *comm) {
        std::thread makes([&] {
            const List list = {2, 0};
            for (int i = 0; i < 20 && has(list, rank); i++) {
                dtrain_comm_t *group = nullptr;
                OK(create(comm, list, i, &group));
                expect_members(group, rank, list, 5);
                OK(dtrain_comm_destroy(group));
            }
        });
        for (int i = 0; i < 200; i++) {
            int32_t x = i;
            OK(dtrain_allreduce(comm, &x, &x, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
            REQUIRE(x == 4 * i);
        }
        makes.join();
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// A thread of a rank. Like its twin of every other rank, it makes groups that share ranks with
// those of the other threads.
void lane(dtrain_comm_t *comm, int rank, int number, int steps) {
    std::mt19937_64 random(seed * 100 + uint64_t(number));
    std::vector<dtrain_comm_t *> kept;
    for (int step = 0; step < steps; step++) {
        List list;
        for (int32_t r = 0; r < dtrain_comm_size(comm); r++) list.push_back(r);
        std::shuffle(list.begin(), list.end(), random);
        list.resize(1 + random() % list.size());
        if (!has(list, rank)) continue;
        dtrain_comm_t *group = nullptr;
        OK(create(comm, list, number, &group));
        expect_members(group, rank, list, 1 + step % 3 * 3000);
        kept.push_back(group);
    }
    for (dtrain_comm_t *group : kept) OK(dtrain_comm_destroy(group));
}

void overlapping(int size, int threads, int steps, const ranks::Options &options) {
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        std::vector<std::thread> running;
        for (int t = 0; t < threads; t++)
            running.emplace_back([&, t] { lane(comm, rank, t, steps); });
        for (std::thread &thread : running) thread.join();
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}
void threads_over_shm(void **) { overlapping(4, 4, 12, {}); }
void threads_over_tcp(void **) { overlapping(3, 3, 10, {{"transports", "tcp"}}); }

void bad_lists(void **) {
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *group = nullptr;
        const auto fails = [&](const List &list, const char *text) {
            FAILS(DTRAIN_ERR_INVALID, create(comm, list, 0, &group));
            expect_text(text);
        };
        fails({}, "create_group: no ranks");
        fails({rank, 3}, "rank 3 is not in");
        fails({-1, rank}, "rank -1");
        fails({rank, (rank + 1) % 3, rank}, "is named twice");
        fails({(rank + 1) % 3}, "is not in the list");
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_create_group(comm, nullptr, 2, 0, 0, &group));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_create_group(comm, nullptr, -1, 0, 0, &group));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_create_group(nullptr, &rank, 1, 0, 0, &group));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_create_group(comm, &rank, 1, 0, 0, nullptr));
        REQUIRE(group == nullptr);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// Nobody else is told, and the same call may be repeated.
void a_member_that_does_not_call(void **) {
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *group = nullptr;
        if (rank != 1) {
            FAILS(DTRAIN_ERR_TIMEOUT, create(comm, {2, 1, 0}, 5, &group, second));
            expect_text("create_group: still waiting for rank 1");
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(create(comm, {2, 1, 0}, 5, &group, 60 * second));
        expect_members(group, rank, {2, 1, 0}, 3);
        OK(dtrain_comm_destroy(group));
    });
}

void lists_that_differ(void **) {
    ranks::run(3, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *group = nullptr;
        if (rank != 2) {
            const List list = rank == 0 ? List{0, 1} : List{1, 0};
            FAILS(DTRAIN_ERR_MISMATCH, create(comm, list, -3, &group, second));
            expect_text("gives ranks 0-1");
            expect_text("gives ranks 1,0");
            expect_text("tag -3");
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void the_same_from_two_threads(void **) {
    ranks::run(2, {}, [](int rank, dtrain_comm_t *comm) {
        if (rank == 0) {
            dtrain_status_t status[2];
            std::thread threads[2];
            for (int t = 0; t < 2; t++)
                threads[t] = std::thread([&, t] {
                    dtrain_comm_t *group = nullptr;
                    status[t] = create(comm, {0, 1}, 1, &group, second);
                });
            for (std::thread &thread : threads) thread.join();
            std::sort(status, status + 2);
            // Unless one was over before the other began.
            REQUIRE(status[1] == DTRAIN_ERR_TIMEOUT || status[0] == DTRAIN_ERR_TIMEOUT);
            for (dtrain_status_t s : status)
                REQUIRE(s == DTRAIN_ERR_TIMEOUT || s == DTRAIN_ERR_BUSY);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

// One of four is killed; two of the others go on together in a group of the broken communicator,
// and hear of the dead one when they want it in a group.
void kill_one(int dead, const ranks::Options &options) {
    processes::Job job;
    job.start(4, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, 4);
        processes::Seen &seen = job.seen(rank);
        dtrain_status_t s;
        while ((s = dtrain_barrier(comm, nullptr, nullptr)) == DTRAIN_OK) seen.rounds++;
        REQUIRE(s == DTRAIN_ERR_PEER);
        const int other = dead == 2 ? 1 : 2;
        const List pair = {3, other};
        if (has(pair, rank)) {
            dtrain_comm_t *group = nullptr;
            OK(create(comm, pair, 0, &group));
            expect_members(group, rank, pair, 1000);
            FAILS(DTRAIN_ERR_PEER, create(comm, {3, other, dead}, 0, &group));
            expect_text(("create_group: rank " + std::to_string(dead)).c_str());
            expect_members(group, rank, pair, 1);
            OK(dtrain_comm_destroy(group));
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(4, 20);
    job.kill_now(dead);
    job.expect_good_ends();
}
void a_dead_rank(void **) {
    kill_one(2, {});
    kill_one(0, {}); // the coordinator's process
}
void a_dead_rank_over_tcp(void **) { kill_one(1, {{"transports", "tcp"}}); }

// It dies while the others wait for it.
void a_rank_that_dies_meanwhile(void **) {
    processes::Job job;
    job.start(3, [&](int rank) {
        dtrain_context_t *context = ranks::make_context({});
        dtrain_comm_t *comm = processes::join(job, context, rank, 3);
        job.seen(rank).rounds++;
        while (rank == 1) processes::nap();
        dtrain_comm_t *group = nullptr;
        FAILS(DTRAIN_ERR_PEER, create(comm, {0, 1, 2}, 0, &group, 120 * second));
        expect_text("create_group: rank 1");
        OK(create(comm, {2, 0}, 0, &group));
        expect_members(group, rank, {2, 0}, 4);
        OK(dtrain_comm_destroy(group));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(3, 1);
    for (int i = 0; i < 50; i++) processes::nap();
    job.kill_now(1);
    job.expect_good_ends();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(over_shm),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(without_helper),
        cmocka_unit_test(many_groups_lose_no_message),
        cmocka_unit_test(others_are_busy),
        cmocka_unit_test(threads_over_shm),
        cmocka_unit_test(threads_over_tcp),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(a_member_that_does_not_call),
        cmocka_unit_test(lists_that_differ),
        cmocka_unit_test(the_same_from_two_threads),
        cmocka_unit_test(a_dead_rank),
        cmocka_unit_test(a_dead_rank_over_tcp),
        cmocka_unit_test(a_rank_that_dies_meanwhile),
    };
    return cmocka_run_group_tests_name("create_group", tests, nullptr, nullptr);
}
