// The join of a job while strangers open very many connections to its coordinator's port.
// SPDX-License-Identifier: Apache-2.0
//
// usage: bench_flood [CONNECTIONS_PER_SECOND [RANKS [ROUNDS [LEAD_MS [SECRET]]]]]
//
// Prints how long a job takes to join and to meet once, over tcp alone: without a flood, with one
// (tests/flood.h) at the port of another program, which takes the same of the processors, and with
// one at its own port. Medians of rounds that alternate. The flood begins LEAD_MS before the ranks'
// processes do, at a port that is open already, as one is that a launcher holds for rank 0.
#include "tests/flood.h"
#include "dtrain.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <vector>

namespace {

int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

int listen_somewhere(int &port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto *generic = reinterpret_cast<sockaddr *>(&address);
    if (bind(fd, generic, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, generic, &length) != 0)
        exit((perror("listening"), 1));
    port = ntohs(address.sin_port);
    return fd;
}

void must(dtrain_status_t status) {
    if (status == DTRAIN_OK) return;
    char text[512];
    dtrain_last_error(text, sizeof text);
    std::fprintf(stderr, "%s\n", text);
    _exit(1);
}

// In a process of its own: joins, and writes when all have met.
[[noreturn]] void be(int rank, int ranks, int port, int listener, const char *secret, int out) {
    setenv("DTRAIN_TRANSPORTS", "tcp", 1);
    if (*secret != 0) setenv("DTRAIN_SECRET", secret, 1);
    if (rank == 0)
        setenv("DTRAIN_LISTEN_FD", std::to_string(listener).c_str(), 1);
    else
        close(listener);
    dtrain_context_t *context = nullptr;
    dtrain_comm_t *comm = nullptr;
    setenv("DTRAIN_RENDEZVOUS", ("tcp://127.0.0.1:" + std::to_string(port)).c_str(), 1);
    setenv("DTRAIN_SIZE", std::to_string(ranks).c_str(), 1);
    setenv("DTRAIN_RANK", std::to_string(rank).c_str(), 1);
    setenv("DTRAIN_JOIN_TIMEOUT", "60s", 0);
    must(dtrain_context_create(DTRAIN_API_VERSION, nullptr, &context));
    must(dtrain_comm_create(context, nullptr, nullptr, &comm));
    must(dtrain_barrier(comm, nullptr, nullptr));
    const int64_t met = now_ns();
    if (write(out, &met, sizeof met) != ssize_t(sizeof met)) _exit(1);
    must(dtrain_comm_destroy(comm));
    must(dtrain_context_destroy(context));
    _exit(0);
}

struct Round {
    double ms, per_second; // of the join; connections that came
};

// A program that closes each connection to its port at once.
pid_t fork_closer(int listener) {
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) close(accept(listener, nullptr, nullptr));
}

enum class Target { none, other, job };

Round join(int ranks, Target target, uint32_t per_second, int lead_ms, const char *secret) {
    int port = 0, other_port = 0, times[2];
    const int listener = listen_somewhere(port), other = listen_somewhere(other_port);
    std::unique_ptr<dtrain::test::Flood> flood;
    const int64_t flood_ns = now_ns();
    const pid_t closer = target == Target::other ? fork_closer(other) : -1;
    close(other);
    if (target != Target::none)
        flood = std::make_unique<dtrain::test::Flood>(target == Target::job ? port : other_port,
                                                      per_second);
    if (pipe(times) != 0) exit((perror("pipe"), 1)); // the flood's process must not have it
    usleep(1000 * useconds_t(lead_ms));
    const int64_t begin = now_ns();
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; rank++) {
        children.push_back(fork());
        if (children.back() == 0) be(rank, ranks, port, listener, secret, times[1]);
    }
    close(listener);
    close(times[1]);
    int64_t last = 0, met;
    int heard = 0;
    for (; read(times[0], &met, sizeof met) == ssize_t(sizeof met); heard++)
        last = std::max(last, met);
    close(times[0]);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    if (closer > 0) {
        kill(closer, SIGKILL);
        waitpid(closer, nullptr, 0);
    }
    if (heard != ranks) exit((std::fprintf(stderr, "a rank has failed\n"), 1));
    const double seconds = double(now_ns() - flood_ns) / 1e9;
    return {double(last - begin) / 1e6, flood ? double(flood->opened()) / seconds : 0};
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
    const auto number = [&](int i, int otherwise) { return argc > i ? atoi(argv[i]) : otherwise; };
    const int per_second = number(1, 20'000), ranks = number(2, 4), rounds = number(3, 21);
    const int lead_ms = number(4, 1);
    const char *secret = argc > 5 ? argv[5] : "";
    std::vector<double> calm, beside, flooded, came;
    for (int i = 0; i < rounds; i++) {
        calm.push_back(join(ranks, Target::none, 0, lead_ms, secret).ms);
        beside.push_back(join(ranks, Target::other, uint32_t(per_second), lead_ms, secret).ms);
        const Round round = join(ranks, Target::job, uint32_t(per_second), lead_ms, secret);
        flooded.push_back(round.ms);
        came.push_back(round.per_second);
    }
    const auto line = [&](const char *what, const std::vector<double> &values) {
        std::printf("%-40s %8.1f ms, %.2f times; at most %.1f ms\n", what, median(values),
                    median(values) / median(calm), *std::ranges::max_element(values));
    };
    std::printf("%d ranks join over tcp: medians of %d rounds, with %.0f connections/s\n", ranks,
                rounds, median(came));
    line("without a flood", calm);
    line("with one at another program's port", beside);
    line("with one at the port where they meet", flooded);
    return 0;
}
