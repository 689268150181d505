// Jobs in one process for tests: each rank a thread that joins, with a helper that calls work().
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include "base/clock.h"
#include "cluster/session/job.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace harness {

using namespace dtrain;
using namespace dtrain::cluster;

// Keeps what it is told, as lines: "lost 3 rank 3 (...) lost: connection closed".
class Recorder final : public Observer {
  public:
    void member_lost(int32_t m, Status, const std::string &text, bool) override {
        if (on_lost) on_lost();
        add("lost " + std::to_string(m) + " " + text);
    }
    void member_left(int32_t m) override { add("left " + std::to_string(m)); }
    void group_failed(uint64_t group, Status s, const std::string &text, int32_t guilty,
                      uint64_t) override {
        add("group " + std::to_string(group) + " " + status_name(s) + " " + text + " guilty " +
            std::to_string(guilty));
    }
    void calls_wanted(uint64_t group) override {
        add("wanted " + std::to_string(group));
        if (on_calls_wanted) on_calls_wanted(group);
    }
    void rank_behind(uint64_t group, int32_t rank, uint64_t seq) override {
        add("behind " + std::to_string(group) + " rank " + std::to_string(rank) + " at " +
            std::to_string(seq));
    }
    void message(int32_t from, uint32_t channel, std::span<const uint8_t> bytes) override {
        add("message " + std::to_string(from) + " " + std::to_string(channel) + " " +
            std::string(bytes.begin(), bytes.end()));
    }
    void job_failed(Status s, const std::string &text) override {
        add(std::string("over ") + status_name(s) + " " + text);
    }

    // The first line that contains `part`, waiting for it; "" after `timeout`.
    std::string wait_for(const std::string &part, int64_t timeout = 10 * second) {
        std::unique_lock lock(mutex_);
        std::string found;
        changed_.wait_for(lock, std::chrono::nanoseconds(timeout), [&] {
            for (const std::string &line : lines_)
                if (line.find(part) != std::string::npos) return found = line, true;
            return false;
        });
        return found;
    }
    bool has(const std::string &part) { return !wait_for(part, 0).empty(); }

    std::function<void(uint64_t)> on_calls_wanted;
    std::function<void()> on_lost; // before it is kept

  private:
    void add(std::string line) {
        std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
        changed_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
};

// A rank: its observer, its job, and the thread that works for it.
class Rank {
  public:
    JoinParams params;
    Recorder seen;
    std::unique_ptr<Job> job;
    Status status = DTRAIN_IN_PROGRESS;
    std::string text;

    ~Rank() { stop(); }
    Status join() {
        params.observer = &seen;
        status = Job::join(params, job);
        text = status == DTRAIN_OK ? "" : error_text();
        if (status == DTRAIN_OK) helper_ = std::thread([this] { help(); });
        return status;
    }
    void pause(bool on) { paused_ = on; } // its helper does nothing, as if the process were stopped
    void stop() {
        stopping_ = true;
        if (helper_.joinable()) helper_.join();
        job.reset();
    }

  private:
    void help() {
        while (!stopping_) {
            pollfd fd{job->event_fd(), POLLIN, 0};
            int64_t ns = job->next_deadline_ns() - monotonic_clock().now_ns();
            poll(&fd, 1, paused_ ? 0 : int(std::clamp<int64_t>(ns / ms + 1, 0, 20)));
            if (paused_) usleep(1000);
            if (!paused_) job->work();
        }
    }
    std::thread helper_;
    std::atomic<bool> stopping_ = false, paused_ = false;
};

inline JoinParams params_for(int32_t member, int32_t workers, int32_t servers,
                             const std::string &rendezvous) {
    JoinParams p;
    bool worker = member < workers;
    p.identity.role = worker ? Role::worker : Role::server;
    p.identity.index = worker ? member : member - workers;
    p.identity.workers = workers;
    p.identity.servers = servers;
    p.identity.rendezvous = rendezvous;
    p.timeout_ns = 20 * second;
    p.heartbeat_interval_ns = 100 * ms;
    p.heartbeat_timeout_ns = 1 * second;
    return p;
}

// A file name of this test process's own.
inline std::string rendezvous_file(const char *name) {
    return "file:///tmp/dtrain_test_" + std::to_string(getpid()) + "_" + name;
}

// Joins all ranks at once; the caller looks at each status.
inline void join_all(std::vector<std::unique_ptr<Rank>> &ranks) {
    std::vector<std::thread> threads;
    for (auto &rank : ranks) threads.emplace_back([&rank] { rank->join(); });
    for (std::thread &t : threads) t.join();
}

inline std::vector<std::unique_ptr<Rank>> make_ranks(int32_t workers, int32_t servers,
                                                     const std::string &rendezvous) {
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int32_t m = 0; m < workers + servers; m++) {
        ranks.push_back(std::make_unique<Rank>());
        ranks.back()->params = params_for(m, workers, servers, rendezvous);
    }
    return ranks;
}

// A rank in a process of its own, which then only works for its job, until it is killed.
inline pid_t fork_rank(const JoinParams &params) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    Rank rank;
    rank.params = params;
    if (rank.join() != DTRAIN_OK) _exit(1);
    for (;;) ::pause();
}

// A listening socket at a free port of 127.0.0.1, and that port.
inline int listen_somewhere(int &port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof a;
    assert_int_equal(bind(fd, reinterpret_cast<sockaddr *>(&a), length), 0);
    assert_int_equal(listen(fd, 100), 0);
    getsockname(fd, reinterpret_cast<sockaddr *>(&a), &length);
    port = ntohs(a.sin_port);
    return fd;
}

inline int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(uint16_t(port));
    if (connect(fd, reinterpret_cast<sockaddr *>(&a), sizeof a) == 0) return fd;
    close(fd);
    return -1;
}

inline std::string tcp_rendezvous(int port) { return "tcp://127.0.0.1:" + std::to_string(port); }

inline size_t open_descriptors() {
    size_t n = 0;
    for (int fd = 0; fd < 4096; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

} // namespace harness
