// Contexts that are members of several jobs at once: nothing of one meets anything of another.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

namespace {

using ranks::Exchange;
using ranks::last_error;

// Joins a job of threads. Several jobs may have the same ranks in different places.
dtrain_comm_t *join(dtrain_context_t *context, Exchange &exchange, int rank, int size) {
    ranks::Member member = {&exchange, rank};
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = size;
    params.rank = rank;
    params.oob = &ranks::Member::allgather;
    params.oob_arg = &member;
    params.timeout_ns = 60'000'000'000;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, "oob", &params, &comm));
    return comm;
}

dtrain_table_t *make_table(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_I32;
    params.length = 1000;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "same", &params, &table));
    return table;
}

// A place of a process in one of its jobs. Messages and sums carry the job's number.
struct Place {
    int job;
    dtrain_comm_t *comm;
    int rank() const { return dtrain_comm_rank(comm); }
    int size() const { return dtrain_comm_size(comm); }
};

struct Transfer {
    int32_t sent, received = -1;
    dtrain_request_t *send = nullptr, *receive = nullptr;
};

// Posts everywhere before it waits anywhere; the second job's waits come first.
void exchange_in_all(const std::vector<Place> &places, int step) {
    std::vector<Transfer> transfers(places.size());
    std::vector<std::vector<int32_t>> sums(places.size());
    std::vector<dtrain_request_t *> requests(places.size());
    for (size_t i = 0; i < places.size(); i++) {
        const Place &p = places[i];
        Transfer &t = transfers[i];
        t.sent = p.job * 1000 + step;
        const int next = (p.rank() + 1) % p.size(), last = (p.rank() + p.size() - 1) % p.size();
        OK(dtrain_recv(p.comm, &t.received, 1, DTRAIN_I32, step % 2 == 0 ? last : DTRAIN_ANY_RANK,
                       7, nullptr, &t.receive));
        OK(dtrain_send(p.comm, &t.sent, 1, DTRAIN_I32, next, 7, nullptr, &t.send));
        sums[i].assign(step % 3 == 0 ? 20'000 : 3, p.job + 1);
        OK(dtrain_allreduce(p.comm, sums[i].data(), sums[i].data(), sums[i].size(), DTRAIN_I32,
                            DTRAIN_SUM, nullptr, &requests[i]));
    }
    for (size_t i = places.size(); i-- > 0;) {
        const Place &p = places[i];
        for (dtrain_request_t *one : {transfers[i].send, transfers[i].receive, requests[i]}) {
            OK(dtrain_request_wait(one, -1));
            dtrain_request_free(one);
        }
        REQUIRE(transfers[i].received == p.job * 1000 + step);
        for (int32_t x : sums[i]) REQUIRE(x == p.size() * (p.job + 1));
    }
}

// Ranks 0 and 1 of job 0, with rank 0 of job 1; and 1 and 2 of job 2, in two orders: every process
// is in two or three of them.
struct Part {
    int job, rank;
};
constexpr int sizes[] = {3, 2, 2};
const std::vector<Part> parts[] = {{{0, 0}, {1, 1}}, {{0, 1}, {1, 0}, {2, 1}}, {{0, 2}, {2, 0}}};

void in_three_jobs(const ranks::Options &options) {
    Exchange exchanges[] = {Exchange(3), Exchange(2), Exchange(2)};
    std::vector<std::thread> threads;
    for (const std::vector<Part> &mine : parts)
        threads.emplace_back([&] {
            dtrain_context_t *context = ranks::make_context(options);
            std::vector<Place> places;
            for (const Part &part : mine)
                places.push_back(
                    {part.job, join(context, exchanges[part.job], part.rank, sizes[part.job])});
            std::vector<dtrain_table_t *> tables;
            for (const Place &p : places) tables.push_back(make_table(p.comm));
            const std::vector<int32_t> ones(1000, 1);
            for (int step = 0; step < 30; step++) {
                exchange_in_all(places, step);
                for (size_t i = 0; i < places.size(); i++) {
                    std::vector<int32_t> push(1000, places[i].job + 1);
                    OK(dtrain_table_push(tables[i], 0, push.size(), push.data(), nullptr, nullptr));
                }
            }
            for (size_t i = 0; i < places.size(); i++) {
                OK(dtrain_barrier(places[i].comm, nullptr, nullptr));
                std::vector<int32_t> all(1000);
                OK(dtrain_table_pull(tables[i], 0, all.size(), all.data(), nullptr, nullptr));
                for (int32_t x : all) REQUIRE(x == 30 * places[i].size() * (places[i].job + 1));
                OK(dtrain_barrier(places[i].comm, nullptr, nullptr));
                OK(dtrain_table_destroy(tables[i]));
            }
            // Job 0 ends; the others go on.
            OK(dtrain_comm_destroy(places[0].comm));
            places.erase(places.begin());
            for (int step = 30; step < 40; step++) exchange_in_all(places, step);
            for (const Place &p : places) OK(dtrain_comm_destroy(p.comm));
            OK(dtrain_context_destroy(context));
        });
    for (std::thread &thread : threads) thread.join();
}
void over_shm(void **) { in_three_jobs({}); }
void over_tcp(void **) { in_three_jobs({{"transports", "tcp"}}); }
void without_helper(void **) { in_three_jobs({{"progress", "manual"}}); }

// One after the other, and never more than eight at a time.
void as_many_as_there_may_be(void **) {
    dtrain_context_t *context = ranks::make_context({});
    Exchange exchange(1);
    std::vector<dtrain_comm_t *> comms;
    for (int round = 0; round < 3; round++) {
        while (comms.size() < 8) comms.push_back(join(context, exchange, 0, 1));
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = 1;
        dtrain_comm_t *more = nullptr;
        FAILS(DTRAIN_ERR_LIMIT, dtrain_comm_create(context, nullptr, &params, &more));
        REQUIRE(more == nullptr && last_error().find("8 jobs") != std::string::npos);
        for (dtrain_comm_t *comm : comms) OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comms[size_t(round)]));
        comms.erase(comms.begin() + round);
    }
    for (dtrain_comm_t *comm : comms) OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

// Processes 0 and 1 are a job, 1 and 2 another one. Process 2 is killed: process 1 hears of it in
// the second job, and the first goes on.
void kill_one(const ranks::Options &options) {
    processes::Job first,
        second; // the rendezvous of the second is used by the processes of the first
    first.start(3, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        processes::Seen &seen = first.seen(process);
        dtrain_comm_t *one = nullptr, *other = nullptr;
        if (process < 2) one = processes::join(first, context, process, 2);
        if (process > 0) other = processes::join(second, context, process - 1, 2);
        bool lost = false;
        for (bool all_seen = false; !all_seen;) {
            if (other != nullptr && !lost) {
                const dtrain_status_t s = dtrain_barrier(other, nullptr, nullptr);
                REQUIRE(s == DTRAIN_OK || (process == 1 && s == DTRAIN_ERR_PEER));
                lost = s != DTRAIN_OK;
                if (lost) processes::note_failure(seen, s);
            }
            if (one != nullptr) {
                int32_t x = 1 + process;
                OK(dtrain_allreduce(one, &x, &x, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
                REQUIRE(x == 3);
                int32_t done = process == 0 || (lost && seen.go != 0);
                OK(dtrain_allreduce(one, &done, &done, 1, DTRAIN_I32, DTRAIN_MIN, nullptr,
                                    nullptr));
                all_seen = done != 0;
            }
            seen.rounds++;
        }
        OK(dtrain_comm_status(one));
        if (other != nullptr) OK(dtrain_comm_destroy(other));
        OK(dtrain_barrier(one, nullptr, nullptr));
        OK(dtrain_comm_destroy(one));
        OK(dtrain_context_destroy(context));
    });
    first.wait_for_rounds(3, 20);
    first.kill_now(2);
    first.wait_for(1, [](const processes::Seen &seen) { return seen.status != 0; });
    assert_int_equal(first.seen(1).status, DTRAIN_ERR_PEER);
    assert_non_null(strstr(first.seen(1).text, "rank 1"));
    const int64_t rounds = first.seen(1).rounds;
    first.wait_for_rounds(2, rounds + 20); // and the first job goes on
    first.seen(1).go = 1;
    first.expect_good_ends();
}
void a_death_in_one_job(void **) { kill_one({}); }
void a_death_in_one_job_over_tcp(void **) { kill_one({{"transports", "tcp"}}); }

// Rank 0 waits in a call of one job, and is heard of in the other one meanwhile.
void a_call_of_one_job_serves_the_other(void **) {
    const ranks::Options options = {
        {"progress", "manual"}, {"heartbeat.interval", "200ms"}, {"heartbeat.timeout", "1s"}};
    Exchange exchanges[] = {Exchange(2), Exchange(2)};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; rank++)
        threads.emplace_back([&, rank] {
            dtrain_context_t *context = ranks::make_context(options);
            dtrain_comm_t *one = join(context, exchanges[0], rank, 2),
                          *other = join(context, exchanges[1], rank, 2), *group = nullptr;
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6);
            while (rank == 1 && std::chrono::steady_clock::now() < end) {
                REQUIRE(dtrain_context_progress(context) >= 0);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            const int32_t members[] = {0, 1};
            OK(dtrain_comm_create_group(one, members, 2, 0, 60'000'000'000, &group));
            for (int i = 0; i < 200; i++) { // news of a loss takes a moment
                REQUIRE(dtrain_context_progress(context) >= 0);
                OK(dtrain_barrier(other, nullptr, nullptr));
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            for (dtrain_comm_t *comm : {group, other, one}) OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        });
    for (std::thread &thread : threads) thread.join();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(over_shm),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(without_helper),
        cmocka_unit_test(as_many_as_there_may_be),
        cmocka_unit_test(a_call_of_one_job_serves_the_other),
        cmocka_unit_test(a_death_in_one_job),
        cmocka_unit_test(a_death_in_one_job_over_tcp),
    };
    return cmocka_run_group_tests_name("several_jobs", tests, nullptr, nullptr);
}
