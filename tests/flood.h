// A process that opens very many connections to a port of the loopback, as a stranger may: it keeps
// some of them, sends nothing, a byte or rubbish, or closes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dtrain::test {

class Flood {
  public:
    // per_second: at most so many connections
    Flood(int port, uint32_t per_second) {
        void *shared = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        counts_ = new (shared) Counts;
        const pid_t parent = getpid();
        child_ = fork();
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent) run(port, per_second);
            _exit(1);
        }
    }
    ~Flood() {
        stop();
        munmap(counts_, sizeof(Counts));
    }
    Flood(const Flood &) = delete;
    void stop() {
        if (child_ <= 0) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
        child_ = -1;
    }
    uint64_t opened() const { return counts_->opened; } // so far

  private:
    struct Counts {
        std::atomic<uint64_t> opened = 0;
    };
    static constexpr uint32_t most_kept = 16'384;

    static int64_t now_ns() {
        timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    }

    // Source addresses of their own: a single one has too few ports.
    static int connect_from(uint32_t number, int port) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const linger reset = {1, 0}; // close() leaves nothing behind
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        sockaddr_in own{}, there{};
        own.sin_family = there.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(0x7F010001 + number % 60'000);
        there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        there.sin_port = htons(uint16_t(port));
        (void)bind(fd, reinterpret_cast<sockaddr *>(&own), sizeof own);
        (void)connect(fd, reinterpret_cast<sockaddr *>(&there), sizeof there);
        return fd;
    }

    [[noreturn]] void run(int port, uint32_t per_second) {
        close_range(3, ~0u, 0); // what the parent has open
        rlimit descriptors{};
        getrlimit(RLIMIT_NOFILE, &descriptors);
        descriptors.rlim_cur = std::min<rlim_t>(descriptors.rlim_max, most_kept + 100);
        setrlimit(RLIMIT_NOFILE, &descriptors);
        const uint32_t kept_at_once = uint32_t(descriptors.rlim_cur) - 100;
        static int kept[most_kept];
        for (int &fd : kept) fd = -1;
        const int64_t begin = now_ns();
        for (uint32_t i = 0, at = 0;; i++) {
            while (uint64_t(now_ns() - begin) * per_second / 1'000'000'000 < i)
                usleep(500); // then there are several at once
            const int fd = connect_from(i, port);
            if (fd < 0) { // makes room
                int &oldest = kept[at++ % kept_at_once];
                if (oldest >= 0) close(oldest);
                oldest = -1;
                continue;
            }
            counts_->opened++;
            static const char rubbish[200] = "GET / HTTP/1.1\r\n\r\n";
            const uint32_t what = i % 4; // nothing, a byte, rubbish; or it is closed at once
            if (what == 1) (void)send(fd, "d", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (what == 2) (void)send(fd, rubbish, sizeof rubbish, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (what == 3) {
                close(fd);
                continue;
            }
            int &place = kept[at++ % kept_at_once];
            if (place >= 0) close(place);
            place = fd;
        }
    }

    Counts *counts_;
    pid_t child_ = -1;
};

} // namespace dtrain::test
