// Elastic jobs: workers come and go, and the others form the next generation with them.
// SPDX-License-Identifier: Apache-2.0
#include "contract/elastic.h"

using namespace elastic;

namespace {

// Workers, and two that come while they work.
void grow(const ranks::Options &options, int size = 2) {
    constexpr int more = 2;
    Job job;
    job.start(size + more, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        const bool first = process < size;
        if (!first)
            while (job.seen(0).rounds < 10) processes::nap();
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), first ? process : newcomer, size);
        if (first) {
            check_sum(comm, size);
            REQUIRE(changes(comm) == "{}");
            step_until_newcomers(comm, job.seen(process), more);
            reform(&comm, sizes(size + more));
            REQUIRE(dtrain_comm_rank(comm) == process);
            const char *ranks =
                size == 2 ? "\"ranks\": [0, 1, null, null]" : "\"ranks\": [0, null, null]";
            REQUIRE(changes(comm).find(ranks) != std::string::npos);
        }
        REQUIRE(first || dtrain_comm_rank(comm) >= size);
        const std::string now = "\"generation\": 1, \"size\": " + std::to_string(size + more);
        REQUIRE(changes(comm).find(now) != std::string::npos);
        check_sum(comm, size + more);
        REQUIRE(dtrain_comm_newcomers(comm) == 0);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}
void grows(void **) {
    grow(elastic_shm);
    grow(elastic_tcp);
    grow(elastic_manual);
    grow(elastic_manual, 1); // no call of the one ever waits
}

// A rank is killed, and another process takes its place.
void replace(int dead, const ranks::Options &options) {
    constexpr int size = 3;
    Job job;
    job.start(size + 1, [&](int process) {
        dtrain_context_t *context = ranks::make_context(options);
        if (process == size) { // once the other is dead
            while (job.seen(dead).go == 0) processes::nap();
            dtrain_comm_t *comm = join_as(context, job.rendezvous(), newcomer, size);
            REQUIRE(dtrain_comm_rank(comm) == size - 1);
            check_sum(comm, size);
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
            return;
        }
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
        int64_t one = 1, sum = 0;
        dtrain_status_t s;
        while ((s = dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I64, DTRAIN_SUM, nullptr,
                                     nullptr)) == DTRAIN_OK)
            job.seen(process).rounds++;
        REQUIRE(s == DTRAIN_ERR_PEER);
        reform(&comm, sizes(size));
        REQUIRE(dtrain_comm_rank(comm) == process - (process > dead ? 1 : 0));
        REQUIRE(changes(comm).find("rank " + std::to_string(dead)) != std::string::npos);
        REQUIRE(changes(comm).find("lost") != std::string::npos);
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 10);
    job.kill_now(dead);
    job.seen(dead).go = 1;
    job.expect_good_ends();
}
void replaces_a_lost_rank(void **) {
    replace(1, elastic_shm);
    replace(2, elastic_tcp);
    replace(1, elastic_manual);
}
void replaces_the_coordinator(void **) {
    replace(0, elastic_shm);
    replace(0, elastic_tcp);
    replace(0, elastic_manual);
}

// Workers leave one after the other, rank 0 first; somebody comes after each.
void every_rank_is_replaced(void **) {
    constexpr int size = 2, generations = 4;
    Job job;
    job.start(size + generations, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        const bool first = process < size;
        if (!first)
            while (job.seen(process).go == 0) processes::nap();
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), first ? process : newcomer, size);
        check_sum(comm, size);
        const int born = first ? 0 : process - size + 1;
        for (int generation = born; generation < generations; generation++) {
            job.seen(size + generation).go = 1;
            step_until_newcomers(comm, job.seen(process), 1);
            const bool leaves = dtrain_comm_rank(comm) == 0;
            reform(&comm, sizes(size, size, leaves ? 1 : 0));
            if (leaves) break;
            check_sum(comm, size);
        }
        if (comm != nullptr) OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// Too few, and then enough: an error says what is missing, and nothing is lost by it.
void too_few(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size + 1, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        if (process == size)
            while (job.seen(0).go == 0) processes::nap();
        dtrain_comm_t *comm =
            join_as(context, job.rendezvous(), process < size ? process : newcomer, size);
        if (process < size) {
            dtrain_reform_params_t params = sizes(3);
            params.timeout_ns = 1'000'000'000;
            dtrain_comm_t *next = nullptr;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
            REQUIRE(next == nullptr);
            REQUIRE(ranks::last_error().find("2 workers stay and 0 processes wait") !=
                    std::string::npos);
            check_sum(comm, size);
            job.seen(0).go = 1;
            reform(&comm, sizes(3));
        }
        check_sum(comm, 3);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

void one_does_not_call(void **) {
    constexpr int size = 3;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_shm);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
        if (process != 1) {
            dtrain_reform_params_t params = sizes(1);
            params.timeout_ns = 1'000'000'000;
            dtrain_comm_t *next = nullptr;
            FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
            REQUIRE(ranks::last_error().find("still waiting for rank 1") != std::string::npos);
        }
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A newcomer whose options do not fit is told so, and the others go on without it.
void one_that_does_not_fit(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size + 1, [&](int process) {
        ranks::Options options = elastic_tcp;
        if (process == size) options.back() = {"transports", "shm"};
        dtrain_context_t *context = ranks::make_context(options);
        if (process == size) {
            dtrain_comm_params_t params;
            DTRAIN_INIT(&params);
            params.size = DTRAIN_NEWCOMER;
            dtrain_comm_t *comm = nullptr;
            const dtrain_status_t s = dtrain_comm_create(context, job.rendezvous(), &params, &comm);
            REQUIRE(s != DTRAIN_OK);
            REQUIRE(ranks::last_error().find("no transport reaches") != std::string::npos);
        } else {
            dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
            step_until_newcomers(comm, job.seen(process), 1);
            reform(&comm, sizes(1));
            REQUIRE(changes(comm).find("\"ranks\": [0, 1]") != std::string::npos);
            check_sum(comm, size);
            OK(dtrain_comm_destroy(comm));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// Sizes that a call does not name are those of the options.
void sizes_of_the_options(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        ranks::Options options = elastic_shm;
        options.emplace_back("elastic.min", "3");
        options.emplace_back("elastic.max", "4");
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        dtrain_reform_params_t params = sizes(0);
        params.timeout_ns = 1'000'000'000;
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("the job needs 3 workers") != std::string::npos);
        params.min_size = 5;
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("at most 4 (option elastic.max)") != std::string::npos);
        reform(&comm, sizes(size));
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

void bad_input(void **) {
    constexpr int size = 2;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context({});
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        dtrain_reform_params_t params = sizes(1);
        FAILS(DTRAIN_ERR_STATE, dtrain_comm_reform(comm, &params, &next));
        REQUIRE(ranks::last_error().find("elastic=yes") != std::string::npos);
        params.max_size = -1;
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        params = sizes(3, 2);
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, &next));
        FAILS(DTRAIN_ERR_INVALID, dtrain_comm_reform(comm, &params, nullptr));
        check_sum(comm, size);
        OK(dtrain_comm_destroy(comm));
        // A newcomer to a job that takes nobody in; one that is told no rendezvous.
        dtrain_comm_params_t join;
        DTRAIN_INIT(&join);
        join.size = DTRAIN_NEWCOMER;
        FAILS(DTRAIN_ERR_CONFIG, dtrain_comm_create(context, job.rendezvous(), &join, &comm));
        REQUIRE(ranks::last_error().find("elastic=yes") != std::string::npos);
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(replaces_a_lost_rank),
        cmocka_unit_test(replaces_the_coordinator),
        cmocka_unit_test(every_rank_is_replaced),
        cmocka_unit_test(too_few),
        cmocka_unit_test(one_does_not_call),
        cmocka_unit_test(one_that_does_not_fit),
        cmocka_unit_test(sizes_of_the_options),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests_name("elastic", tests, nullptr, nullptr);
}
