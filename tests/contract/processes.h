// Ranks as forked processes that meet at a file, with a page of memory to tell what they saw.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"
#include "temporary_folder.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace processes {

inline int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}
inline void nap() {
    timespec t = {0, 1'000'000};
    nanosleep(&t, nullptr);
}

struct Seen { // by one process
    std::atomic<int64_t> rounds{0}, failed_ns{0};
    std::atomic<int64_t> begun_ns{0}, slowest_ns{0};     // for tests of bounds
    std::atomic<int64_t> overslept_ns{0}, held_up_ns{0}; // oversleep.h
    std::atomic<int32_t> go{0};
    std::atomic<bool> go_on_failed{false};
    std::atomic<int32_t> status{0};
    char text[512] = {};
};

class Job {
  public:
    static constexpr int max_processes = 8;

    Job() {
        void *page = mmap(nullptr, sizeof(Seen) * max_processes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(page != MAP_FAILED);
        seen_ = new (page) Seen[max_processes];
    }
    ~Job() {
        for (pid_t pid : pids_)
            if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
        munmap(seen_, sizeof(Seen) * max_processes);
    }
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

    const char *rendezvous() const { return rendezvous_.c_str(); }
    Seen &seen(int process) { return seen_[process]; }

    // body(process) runs in each child, which must end well unless it is killed.
    void start(int count, const std::function<void(int)> &body) {
        for (int i = 0; i < count; i++) {
            pid_t pid = fork();
            REQUIRE(pid >= 0);
            if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL); // a stopped one would outlive a failed test
                // cmocka's handlers would go on with the next test here.
                for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, SIG_DFL);
                body(i);
                _exit(0);
            }
            pids_.push_back(pid);
        }
    }
    void signal(int process, int number) { REQUIRE(kill(pids_[size_t(process)], number) == 0); }
    void kill_now(int process) {
        signal(process, SIGKILL);
        REQUIRE(waitpid(pids_[size_t(process)], nullptr, 0) == pids_[size_t(process)]);
        pids_[size_t(process)] = 0;
    }
    // Until every process has done so many rounds.
    void wait_for_rounds(int count, int64_t rounds) {
        for (int i = 0; i < count; i++)
            wait_for(i, [&](const Seen &seen) { return seen.rounds >= rounds; });
    }
    // Until a process, which lives so long, has seen something.
    template <class Condition> void wait_for(int process, Condition &&has_seen) {
        while (!has_seen(seen_[process])) {
            int status;
            pid_t pid = pids_[size_t(process)];
            REQUIRE(pid == 0 || waitpid(pid, &status, WNOHANG) == 0);
            nap();
            tell_if_stuck();
        }
    }
    void wait_for_good_end(int process) { REQUIRE(end_of(size_t(process)) == 0); }
    // However they end.
    void wait_for_ends() {
        for (size_t i = 0; i < pids_.size(); i++)
            if (pids_[i] != 0) (void)end_of(i);
    }
    void expect_good_ends() {
        for (size_t i = 0; i < pids_.size(); i++) {
            if (pids_[i] == 0) continue;
            const int status = end_of(i);
            if (status != 0) std::fprintf(stderr, "process %zu ended with %#x\n", i, status);
            REQUIRE(status == 0);
        }
    }

  private:
    static constexpr int64_t stuck_ns = 800'000'000'000; // tests end after 900 s

    int end_of(size_t process) { // as waitpid() gives it
        int status = 0;
        pid_t ended;
        while ((ended = waitpid(pids_[process], &status, WNOHANG)) == 0) {
            nap();
            tell_if_stuck();
        }
        REQUIRE(ended == std::exchange(pids_[process], 0));
        return status;
    }
    // Once, for who reads the log of a test that took too long: where the processes are.
    void tell_if_stuck() {
        if (told_ || now_ns() - begun_ns_ < stuck_ns) return;
        told_ = true;
        for (size_t i = 0; i < pids_.size(); i++) {
            if (pids_[i] == 0) continue;
            std::fprintf(stderr, "process %zu after %lld rounds:\n", i,
                         static_cast<long long>(seen_[i].rounds));
            const std::string pid = std::to_string(pids_[i]);
            const std::string look = "gdb -p " + pid +
                                     " -batch -ex 'thread apply all bt' 2>/dev/null || "
                                     "grep . /proc/" +
                                     pid + "/task/*/wchan";
            if (std::system(look.c_str()) != 0) std::fprintf(stderr, "it cannot be looked at\n");
        }
    }

    const int64_t begun_ns_ = now_ns();
    bool told_ = false;
    TemporaryFolder folder_;
    const std::string rendezvous_ = "file://" + folder_.file("job");
    Seen *seen_ = nullptr;
    std::vector<pid_t> pids_;
};

inline dtrain_comm_t *join(Job &job, dtrain_context_t *context, int rank, int size,
                           int servers = 0) {
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = size;
    params.rank = rank;
    params.servers = servers;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, job.rendezvous(), &params, &comm));
    return comm;
}

// Notes how and when the call that failed ended.
inline void note_failure(Seen &seen, dtrain_status_t status) {
    seen.failed_ns = now_ns();
    dtrain_last_error(seen.text, sizeof seen.text);
    seen.status = status;
}

} // namespace processes
