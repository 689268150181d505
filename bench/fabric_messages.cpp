// Messages over libfabric alone: two processes, each with the endpoint that the transport ofi opens
// (its queues can be slept on) and nothing above it. Prints bytes, half a round trip in us, and
// MB/s with sixteen messages under way.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_fabric_messages PROVIDER DOMAIN BYTES ROUNDS ("" as domain: the first)
#include "fabric.h"
#include "ofi/memory.h"

#include <chrono>
#include <rdma/fi_errno.h>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using bench::must;
using dtrain::ofi::Fabric;
using dtrain::ofi::Registration;

constexpr int window = 16;
constexpr unsigned patience = 60; // seconds, for all of it

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

class Side {
  public:
    Side(int rank, int other, const char *provider, const char *domain, size_t bytes)
        : rank_(rank), other_(other), bytes_(bytes) {
        must(fabric_.open(host_, provider, domain) == DTRAIN_OK, provider);
        const size_t whole = bytes * (1 + window);
        out_ = static_cast<uint8_t *>(mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
        must(out_ != MAP_FAILED, "this much memory");
        int error = 0;
        if (fabric_.needs(FI_MR_LOCAL))
            registration_ = Registration::make(secrets_, fabric_, out_, whole, &error);
        must(!error, "to register memory");
        if (registration_) descriptor_ = registration_->descriptor();
        introduce();
    }

    double latency(int rounds) {
        sent_ = expected_ = received_ = 0;
        receive(0);
        meet();
        const double begin = now();
        for (int round = 1; round <= rounds; round++) {
            if (rank_ == 0) send(0);
            while (received_ < round) look();
            if (round < rounds) receive(0);
            if (rank_ == 1) send(0);
        }
        const double time = now() - begin;
        while (sent_ < expected_) look();
        meet();
        return time / (2 * rounds);
    }

    double bandwidth(int rounds) {
        const int messages = rounds * window;
        sent_ = expected_ = received_ = 0;
        for (int i = 0; rank_ == 1 && i < window; i++) receive(i);
        meet();
        const double begin = now();
        if (rank_ == 0)
            for (int i = 0; i < messages; i++) {
                while (expected_ - sent_ >= window) look();
                send(i % window);
            }
        for (int got = 0; rank_ == 1 && got < messages; got++) {
            while (received_ <= got) look();
            if (got + window < messages) receive(got % window);
        }
        while (sent_ < expected_) look();
        meet();
        return double(bytes_) * messages / (now() - begin);
    }

  private:
    void introduce() {
        char own[256], peer[256];
        size_t length = sizeof own;
        must(!fi_getname(&fabric_.endpoint->fid, own, &length), "an address");
        must(::send(other_, own, sizeof own, 0) == sizeof own, "to tell the address");
        must(recv(other_, peer, sizeof peer, MSG_WAITALL) == sizeof peer, "to hear the address");
        must(fi_av_insert(fabric_.peers.get(), peer, 1, &peer_, 0, nullptr) == 1, "the address");
    }

    // Waits for the other side, which may need this one to go on meanwhile.
    void meet() {
        char word = 0;
        must(::send(other_, &word, 1, 0) == 1, "to meet");
        ssize_t n;
        while ((n = recv(other_, &word, 1, MSG_DONTWAIT)) < 0) look();
        must(n == 1, "to meet: the other process");
    }

    void receive(int place) {
        must(!fi_recv(fabric_.endpoint.get(), out_ + size_t(1 + place) * bytes_, bytes_,
                      descriptor_, FI_ADDR_UNSPEC, &receives_[place]),
             "to receive");
    }

    void send(int place) {
        const bool small = bytes_ <= fabric_.info->tx_attr->inject_size;
        fid_ep *endpoint = fabric_.endpoint.get();
        const auto attempt = [&] {
            return small ? fi_inject(endpoint, out_, bytes_, peer_)
                         : fi_send(endpoint, out_, bytes_, descriptor_, peer_, &sends_[place]);
        };
        ssize_t error;
        while ((error = attempt()) == -FI_EAGAIN) look();
        must(!error, "to send");
        expected_ += !small;
    }

    void look() {
        if (sent_ < expected_) sent_ += taken(fabric_.tx.get());
        received_ += taken(fabric_.rx.get());
    }

    static int taken(fid_cq *queue) {
        fi_cq_data_entry entries[window];
        const ssize_t n = fi_cq_read(queue, entries, window);
        must(n >= 0 || n == -FI_EAGAIN, "the next message");
        return n < 0 ? 0 : int(n);
    }

    const dtrain_tp_host_t table_ = bench::services();
    const dtrain::tp::Host host_{&table_};
    dtrain::tp::Secrets secrets_{host_};
    const int rank_, other_; // its number, and a socket to the other one
    const size_t bytes_;
    Fabric fabric_;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    uint8_t *out_ = nullptr; // then `window` places to receive
    std::unique_ptr<Registration> registration_;
    void *descriptor_ = nullptr;
    fi_context2 sends_[window], receives_[window];
    int expected_ = 0, sent_ = 0, received_ = 0; // completions of sends to come, and come
};

} // namespace

int main(int argc, char **argv) {
    const long bytes = argc == 5 ? std::atol(argv[3]) : 0,
               rounds = argc == 5 ? std::atol(argv[4]) : 0;
    if (bytes < 1 || rounds < 1 || bytes > 1 << 30 || rounds > 1 << 24) {
        std::fprintf(stderr, "usage: bench_fabric_messages PROVIDER DOMAIN BYTES ROUNDS\n");
        return EXIT_FAILURE;
    }
    int sockets[2];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "a pair of sockets");
    const pid_t child = fork(); // before libfabric is used
    must(child >= 0, "another process");
    const int rank = child == 0;
    close(sockets[1 - rank]);
    alarm(patience);
    Side side(rank, sockets[rank], argv[1], argv[2], size_t(bytes));
    side.latency(2); // connects
    const double time = side.latency(int(rounds));
    const double rate = side.bandwidth(1 + int(rounds) / window);
    if (rank == 0) std::printf("%ld %.2f %.1f\n", bytes, time * 1e6, rate * 1e-6);
    return EXIT_SUCCESS;
}
