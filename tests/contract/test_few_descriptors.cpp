// Processes that may open too few file descriptors: they are told so, by name and with numbers, and
// nobody waits for them longer than joining may take.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

#include <filesystem>
#include <sys/resource.h>

namespace {

using processes::Job;

void set_limit(uint64_t descriptors) {
    rlimit limit{descriptors, descriptors};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

uint64_t open_now() {
    uint64_t count = 0;
    for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator("/proc/self/fd"))
        count++;
    return count;
}

// All ranks of a job try to join with so few, and say how that ended.
void join_with(int size, uint64_t descriptors, const ranks::Options &options,
               const std::function<void(int, dtrain_status_t, const std::string &)> &check) {
    Job job;
    const int64_t begin_ns = processes::now_ns();
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        set_limit(descriptors == 0 ? open_now() : descriptors);
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = size;
        params.rank = rank;
        dtrain_comm_t *comm = nullptr;
        const dtrain_status_t status =
            dtrain_comm_create(context, job.rendezvous(), &params, &comm);
        check(rank, status, ranks::last_error());
        std::vector<float> data(100'000, 1);
        if (status == DTRAIN_OK) {
            for (int i = 0; i < 10; i++)
                OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32,
                                    DTRAIN_MAX, nullptr, nullptr));
            OK(dtrain_comm_destroy(comm));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
    assert_true(processes::now_ns() - begin_ns < 30'000'000'000);
}

const ranks::Options soon = {{"join.timeout", "3s"}};

// Not even enough for what always goes on: refused before anything is waited for.
void too_few_to_join(void **) {
    join_with(8, 0, soon, [](int rank, dtrain_status_t status, const std::string &text) {
        if (rank == 0) std::printf("%s\n", text.c_str());
        REQUIRE(status == DTRAIN_ERR_LIMIT);
        REQUIRE(text.find("ulimit -n") != std::string::npos);
        REQUIRE(text.find("at least") != std::string::npos);
    });
}

// Whatever the limit, joining ends in time: in success, or in an error that names the cause.
void any_limit(void **) {
    for (uint64_t limit = 22; limit <= 64; limit += 3)
        join_with(8, limit, soon,
                  [limit](int rank, dtrain_status_t status, const std::string &text) {
                      if (rank == 0)
                          std::printf("%llu: %s\n", static_cast<unsigned long long>(limit),
                                      status == DTRAIN_OK ? "joined" : text.c_str());
                      const bool is_named =
                          status == DTRAIN_ERR_LIMIT && text.find("ulimit -n") != std::string::npos;
                      // The others may learn no more than who is missing.
                      const bool waits = rank != 0 && text.find("rank 0") != std::string::npos;
                      if (status != DTRAIN_OK && !is_named && !waits)
                          std::fprintf(stderr, "rank %d: %s\n", rank, text.c_str());
                      REQUIRE(status == DTRAIN_OK || is_named || waits);
                  });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(too_few_to_join),
        cmocka_unit_test(any_limit),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
