// Processes that fork, are killed, and whose children live on.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"
#include "ports.h"

#include <fstream>

namespace {

using dtrain::test::free_port;
using processes::Job;

const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}};

// A child that does nothing but live, as a worker of the program's own would.
pid_t fork_idle() {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(120);
        for (;;) pause();
    }
    return child;
}

// Ends a child of a killed process, which is not ours to wait for.
struct Idle {
    explicit Idle(processes::Seen &seen) : pid(pid_t(seen.status.load())) {}
    ~Idle() { kill(pid, SIGKILL); }
    const pid_t pid;
};

dtrain_comm_t *join_at(const std::string &where, dtrain_context_t *context, int rank, int size) {
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = size;
    params.rank = rank;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, where.c_str(), &params, &comm));
    return comm;
}

// All of them are killed, and begin again.
void the_port_is_free_again(void **) {
    const std::string where = "tcp://127.0.0.1:" + std::to_string(free_port());
    ranks::Options options = over_tcp;
    options.emplace_back("join.timeout", "30s");
    Job first, second;
    first.start(2, [&](int rank) {
        join_at(where, ranks::make_context(options), rank, 2);
        first.seen(rank).status = fork_idle();
        first.seen(rank).rounds = 1;
        for (;;) pause();
    });
    first.wait_for_rounds(2, 1);
    Idle zero(first.seen(0)), one(first.seen(1));
    for (int rank : {0, 1}) first.kill_now(rank);
    second.start(2, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = join_at(where, context, rank, 2);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    second.expect_good_ends();
    REQUIRE(kill(zero.pid, 0) == 0 && kill(one.pid, 0) == 0); // they still were there
}

// Long before its heartbeat would be missed.
void notices(const ranks::Options &options, int dead) {
    constexpr int size = 3;
    Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        int32_t value = rank;
        OK(dtrain_allreduce(comm, &value, &value, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
        if (rank == dead) {
            job.seen(rank).status = fork_idle();
            job.seen(rank).rounds = 1;
            for (;;) pause();
        }
        job.seen(rank).rounds = 1;
        dtrain_status_t s = dtrain_barrier(comm, nullptr, nullptr);
        processes::note_failure(job.seen(rank), s);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(size, 1);
    Idle child(job.seen(dead));
    const int64_t begin = processes::now_ns();
    job.kill_now(dead);
    job.expect_good_ends();
    for (int rank = 0; rank < size; rank++) {
        if (rank == dead) continue;
        processes::Seen &seen = job.seen(rank);
        std::printf("rank %d knew after %.1f ms\n", rank, double(seen.failed_ns - begin) / 1e6);
        assert_int_equal(seen.status, DTRAIN_ERR_PEER);
        assert_true(seen.failed_ns - begin < 15'000'000'000); // heartbeat.timeout is 30 s
    }
    REQUIRE(kill(child.pid, 0) == 0);
}

void a_rank_with_a_child_is_missed(void **) {
    notices(over_shm, 1);
    notices(over_tcp, 1);
}
void the_coordinator_with_a_child_is_missed(void **) {
    notices(over_shm, 0);
    notices(over_tcp, 0);
}

// Of this process: what it shares with others, and its children with it.
std::string shared_mappings() {
    std::string out, line;
    std::ifstream maps("/proc/self/maps");
    while (std::getline(maps, line))
        if (line.find("/memfd:dtrain") != std::string::npos) out += line + "\n";
    return out;
}

// It would keep it when nobody else has it any more. What the program allocated is the child's,
// too.
void a_child_has_no_memory_of_the_librarys(void **) {
    constexpr uint64_t bytes = 4096;
    Job job;
    job.start(2, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(over_shm);
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        std::vector<float> data(1'000'000, 1);
        OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        dtrain_mem_t *memory = nullptr;
        REQUIRE(!shared_mappings().empty()); // the window
        const auto in_child = [](const std::function<bool()> &good) {
            const pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) _exit(good() ? 0 : 1);
            int status = -1;
            REQUIRE(waitpid(child, &status, 0) == child);
            return status == 0;
        };
        REQUIRE(in_child([] {
            const std::string kept = shared_mappings();
            std::fputs(kept.c_str(), stderr);
            return kept.empty();
        }));
        OK(dtrain_mem_alloc(context, bytes, &memory));
        auto *own = static_cast<char *>(dtrain_mem_address(memory));
        own[0] = 1;
        REQUIRE(in_child([&] { return own[0]++ == 1; }));
        REQUIRE(own[0] == 2);
        auto *pages = static_cast<char *>(std::aligned_alloc(bytes, bytes));
        pages[0] = 1;
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.address = pages;
        params.length = bytes;
        params.flags = DTRAIN_MEM_SHARED;
        dtrain_mem_t *registered = nullptr;
        OK(dtrain_mem_register(context, &params, &registered));
        REQUIRE(in_child([&] { return pages[0]++ == 1; }));
        REQUIRE(pages[0] == 2);
        OK(dtrain_mem_deregister(registered));
        REQUIRE(in_child([&] { return pages[0]++ == 2; })); // a copy again
        REQUIRE(pages[0] == 2);
        std::free(pages);
        OK(dtrain_mem_deregister(memory));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// Copy-on-write moves nothing that a peer writes to.
void forks_while_messages_arrive(void **) {
    constexpr size_t elements = 4 << 20;
    constexpr int rounds = 20;
    Job job;
    job.start(2, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(over_shm);
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        std::vector<int32_t> data(elements);
        for (int32_t round = 1; round <= rounds; round++) {
            dtrain_request_t *request = nullptr;
            if (rank == 0) {
                std::fill(data.begin(), data.end(), round);
                OK(dtrain_send(comm, data.data(), elements, DTRAIN_I32, 1, 0, nullptr, nullptr));
                continue;
            }
            OK(dtrain_recv(comm, data.data(), elements, DTRAIN_I32, 0, 0, nullptr, &request));
            std::vector<pid_t> children;
            do children.push_back(fork_idle());
            while (dtrain_request_test(request) == DTRAIN_IN_PROGRESS && children.size() < 20);
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
            for (int32_t value : data) REQUIRE(value == round);
            for (pid_t child : children) kill(child, SIGKILL), waitpid(child, nullptr, 0);
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A child does what it likes, and so does its parent meanwhile.
void a_child_joins_a_job_of_its_own(void **) {
    for (const ranks::Options &options : {over_shm, over_tcp}) {
        Job job, other;
        job.start(2, [&](int rank) {
            dtrain_context_t *context = ranks::make_context(options);
            dtrain_comm_t *comm = processes::join(job, context, rank, 2);
            std::vector<float> data(100'000, 1);
            const pid_t child = fork();
            REQUIRE(child >= 0);
            dtrain_context_t *own = child == 0 ? ranks::make_context(options) : context;
            dtrain_comm_t *used = child == 0 ? processes::join(other, own, rank, 2) : comm;
            for (int i = 0; i < 20; i++)
                OK(dtrain_allreduce(used, data.data(), data.data(), data.size(), DTRAIN_F32,
                                    DTRAIN_AVG, nullptr, nullptr));
            for (float x : data) REQUIRE(x == 1);
            if (child == 0) {
                OK(dtrain_comm_destroy(comm)); // nothing of the parent's
                OK(dtrain_context_destroy(context));
                OK(dtrain_barrier(used, nullptr, nullptr));
            }
            OK(dtrain_comm_destroy(used));
            OK(dtrain_context_destroy(own));
            if (child == 0) _exit(0);
            int status = -1;
            REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        });
        job.expect_good_ends();
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_port_is_free_again),
        cmocka_unit_test(a_rank_with_a_child_is_missed),
        cmocka_unit_test(the_coordinator_with_a_child_is_missed),
        cmocka_unit_test(a_child_has_no_memory_of_the_librarys),
        cmocka_unit_test(forks_while_messages_arrive),
        cmocka_unit_test(a_child_joins_a_job_of_its_own),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
