// Shared memory that can be opened, but does not work, as sandboxes have it: a seccomp filter
// refuses a system call. Ranks say so once and use TCP; nothing waits for what will not come.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace {

using processes::Job;

#if defined(__x86_64__)
constexpr uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif

struct Refused {
    const char *name;
    long call;
    int64_t first; // only with this first argument; -1: with any
};
constexpr Refused memfd = {"memfd_create", SYS_memfd_create, -1},
                  truncating = {"ftruncate", SYS_ftruncate, -1},
                  allocating = {"fallocate", SYS_fallocate, -1},
                  passing = {"recvmsg", SYS_recvmsg,
                             -1}, // of this library only the way of descriptors
    sockets = {"socket(AF_UNIX)", SYS_socket, AF_UNIX};

// For this process from now on. False: the kernel has no filters here.
bool refuse(const Refused &what) {
    const auto load = [](uint32_t at) {
        return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
    };
    const uint32_t any = what.first < 0 ? 1 : 0;
    sock_filter program[] = {
        load(offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 0, 5),
        load(offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(what.call), 0, 3),
        load(offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(what.first), 0, uint8_t(1 - any)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (what.first < 0) program[5] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const sock_fprog filter = {sizeof program / sizeof *program, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool filters_work() {
    const pid_t child = fork();
    if (child == 0) _exit(refuse(memfd) ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

// all: both ranks, or only the first.
void run_without(const Refused &what, bool all) {
    Job job;
    const int64_t begin = processes::now_ns();
    job.start(2, [&](int rank) {
        const bool is_refused = all || rank == 0;
        if (is_refused) REQUIRE(refuse(what));
        FILE *lines = std::tmpfile();
        REQUIRE(lines != nullptr);
        const int before = dup(2);
        REQUIRE(dup2(fileno(lines), 2) == 2);
        dtrain_context_t *context = ranks::make_context({}); // before it has a log of its own
        REQUIRE(dup2(before, 2) == 2);
        char text[4096] = "";
        std::rewind(lines);
        (void)!std::fread(text, 1, sizeof text - 1, lines);
        const char *said = std::strstr(text, "the transport is not used");
        REQUIRE((said != nullptr) == is_refused);
        if (is_refused) {
            REQUIRE(std::strstr(text, "transport shm") != nullptr);
            REQUIRE(std::strstr(said + 1, "the transport is not used") == nullptr); // once
            if (rank == 0) std::fprintf(stderr, "without %s: %s", what.name, text);
        }
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        std::vector<float> data(100'000, float(rank + 1));
        OK(dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        for (float x : data) REQUIRE(x == 3);
        dtrain_mem_t *memory = nullptr;
        OK(dtrain_mem_alloc(context, 1 << 20, &memory)); // ordinary, then
        OK(dtrain_mem_deregister(memory));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
    assert_true(processes::now_ns() - begin < 15'000'000'000); // a connection is tried for longer
}

void no_shared_memory(void **) {
    if (!filters_work()) {
        print_message("skipped: the kernel lets no seccomp filter be set here\n");
        skip();
    }
    for (const Refused &what : {memfd, truncating, allocating, passing, sockets})
        for (bool all : {true, false}) run_without(what, all);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(no_shared_memory)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
