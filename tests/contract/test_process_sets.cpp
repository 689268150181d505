// Communicators given by lists of ranks; many that share ranks, made, used and ended all at once.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <algorithm>
#include <random>

namespace {

using ranks::last_error;

constexpr uint64_t seed = 20264;

dtrain_status_t subset(dtrain_comm_t *comm, const std::vector<int32_t> &list, dtrain_comm_t **out) {
    return dtrain_comm_subset(comm, list.data(), int32_t(list.size()), out);
}

// Sums numbers that tell who took part.
void expect_members(dtrain_comm_t *set, int world_rank, const std::vector<int32_t> &list,
                    size_t count) {
    std::vector<int64_t> x(count, int64_t{1} << world_rank);
    int64_t want = 0;
    for (int32_t r : list) want |= int64_t{1} << r;
    OK(dtrain_allreduce(set, x.data(), x.data(), count, DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr));
    for (int64_t value : x) REQUIRE(value == want);
}

void in_the_order_of_the_list(void **) {
    const std::vector<int32_t> lists[] = {{3, 0, 4}, {0, 1, 2, 3, 4}, {2}, {4, 3, 2, 1, 0}};
    ranks::run(5, {}, [&](int rank, dtrain_comm_t *comm) {
        for (const std::vector<int32_t> &list : lists) {
            dtrain_comm_t *set = comm; // to see that it becomes NULL
            OK(subset(comm, list, &set));
            auto at = std::find(list.begin(), list.end(), rank);
            if (at == list.end()) {
                REQUIRE(set == nullptr);
                continue;
            }
            REQUIRE(dtrain_comm_rank(set) == int32_t(at - list.begin()));
            REQUIRE(dtrain_comm_size(set) == int32_t(list.size()));
            expect_members(set, rank, list, 10);
            OK(dtrain_comm_destroy(set));
        }
    });
}

void refused(void **) {
    ranks::run(4, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *set = nullptr;
        auto fails = [&](dtrain_status_t status, const std::vector<int32_t> &list,
                         const char *text) {
            FAILS(status, subset(comm, list, &set));
            if (last_error().find(text) == std::string::npos)
                std::fprintf(stderr, "%s: no %s\n", last_error().c_str(), text), std::abort();
        };
        fails(DTRAIN_ERR_INVALID, {}, "no ranks");
        fails(DTRAIN_ERR_INVALID, {1, 4}, "rank 4");
        fails(DTRAIN_ERR_INVALID, {-1}, "rank -1");
        fails(DTRAIN_ERR_INVALID, {1, 2, 1}, "rank 1 is named twice");
        // One rank differs: in a rank, in the order, in the length, by a list that cannot be.
        for (const std::vector<int32_t> &odd :
             {std::vector<int32_t>{0, 1, 3}, {2, 1, 0}, {0, 1}, {0, 1, 2, 3}})
            fails(DTRAIN_ERR_MISMATCH, rank == 2 ? odd : std::vector<int32_t>{0, 1, 2},
                  "subset: rank 0 gives ");
        // What is wrong by itself all are told.
        fails(DTRAIN_ERR_INVALID,
              rank == 1 ? std::vector<int32_t>{0, 0} : std::vector<int32_t>{0, 1},
              rank == 1 ? "named twice" : "rank 1 cannot take part: subset: rank 0 is named twice");
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_subset(comm, nullptr, 2, &set));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_subset(comm, nullptr, -1, &set));
        REQUIRE(set == nullptr);
        OK(subset(comm, {0, 1, 2, 3}, &set)); // and comm is as good as before
        expect_members(set, rank, {0, 1, 2, 3}, 3);
        OK(dtrain_comm_destroy(set));
    });
}

struct Set {
    std::vector<int32_t> list;
    dtrain_comm_t *comm; // NULL: not of this rank
};

std::vector<int32_t> random_list(std::mt19937_64 &random, int size) {
    std::vector<int32_t> all;
    for (int32_t r = 0; r < size; r++) all.push_back(r);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % uint64_t(size));
    return all;
}

// Operations of all sets in flight together.
void use_all(std::vector<Set> &sets, int rank, std::mt19937_64 &random) {
    std::vector<std::vector<int64_t>> data;
    std::vector<dtrain_request_t *> requests(sets.size());
    for (size_t i = 0; i < sets.size(); i++) {
        data.emplace_back(random() % 3 == 0 ? 20000 : 1 + random() % 100, int64_t{1} << rank);
        if (sets[i].comm != nullptr)
            OK(dtrain_allreduce(sets[i].comm, data[i].data(), data[i].data(), data[i].size(),
                                DTRAIN_I64, DTRAIN_SUM, nullptr, &requests[i]));
    }
    for (size_t i = 0; i < sets.size(); i++) {
        if (sets[i].comm == nullptr) continue;
        OK(dtrain_request_wait(requests[i], -1));
        dtrain_request_free(requests[i]);
        int64_t want = 0;
        for (int32_t r : sets[i].list) want |= int64_t{1} << r;
        for (int64_t x : data[i]) REQUIRE(x == want);
    }
}

// One of a rank's threads: like the same thread of every other rank it makes sets from a
// communicator of its own, uses several at a time and ends them, while the other threads do so.
void lane(dtrain_comm_t *comm, int rank, uint64_t number, int steps) {
    std::mt19937_64 random(seed * 100 + number);
    std::vector<Set> sets;
    for (int step = 0; step < steps; step++) {
        Set set = {random_list(random, dtrain_comm_size(comm)), nullptr};
        OK(subset(comm, set.list, &set.comm));
        sets.push_back(set);
        use_all(sets, rank, random);
        while (sets.size() > 4 || (random() % 3 == 0 && !sets.empty())) {
            auto gone = sets.begin() + int64_t(random() % sets.size());
            OK(dtrain_comm_destroy(gone->comm));
            sets.erase(gone);
        }
    }
    for (Set &set : sets) OK(dtrain_comm_destroy(set.comm));
}

void overlapping(int size, int threads, int steps, const ranks::Options &options) {
    std::printf("%d ranks, %d threads each, seed %lu\n", size, threads, seed);
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        std::vector<dtrain_comm_t *> comms(size_t(threads), nullptr);
        for (dtrain_comm_t *&own : comms) OK(dtrain_comm_duplicate(comm, &own));
        std::vector<std::thread> running;
        for (size_t t = 0; t < comms.size(); t++)
            running.emplace_back([&, t] { lane(comms[t], rank, t, steps); });
        for (std::thread &thread : running) thread.join();
        for (dtrain_comm_t *own : comms) OK(dtrain_comm_destroy(own));
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void over_shm(void **) { overlapping(5, 4, 25, {}); }
void over_tcp(void **) { overlapping(4, 3, 20, {{"transports", "tcp"}}); }
void without_helper(void **) { overlapping(3, 3, 15, {{"progress", "manual"}}); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(in_the_order_of_the_list),
        cmocka_unit_test(refused),
        cmocka_unit_test(over_shm),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(without_helper),
    };
    return cmocka_run_group_tests_name("process_sets", tests, nullptr, nullptr);
}
