// Messages through the net plugin of NCCL between two processes of this host, beside a plain TCP
// stream: half a round trip, and GB/s with eight messages in flight. Options of dtrain choose the
// network. usage: bench_nccl_net PLUGIN
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v11.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace nccl = dtrain::nccl;

namespace {

constexpr size_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};
constexpr int in_flight = 8;

[[noreturn]] void quit(const char *what) {
    std::fprintf(stderr, "bench_nccl_net: %s failed\n", what);
    std::exit(1);
}
void must(nccl::Result result, const char *what) {
    if (result != nccl::Result::success) quit(what);
}
void say(int level, unsigned long, const char *, int, const char *format, ...) {
    if (level != nccl::log_warn) return;
    va_list args;
    va_start(args, format);
    std::vfprintf(stderr, format, args);
    va_end(args);
    std::fputc('\n', stderr);
}
double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
int rounds_of(size_t size) { return std::clamp(int((64 << 20) / (size + 1)), 20, 2000); }

void transfer(int fd, char *data, size_t size, bool sends) {
    for (size_t at = 0; at < size;) {
        const ssize_t n = sends ? send(fd, data + at, size - at, MSG_NOSIGNAL)
                                : recv(fd, data + at, size - at, 0);
        if (n <= 0) quit("a socket");
        at += size_t(n);
    }
}

// A connection in each direction through the plugin.
class Plugin {
  public:
    Plugin(const char *file, int meeting, bool first) {
        void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (opened == nullptr) quit(dlerror());
        table_ = static_cast<const nccl::Table11 *>(dlsym(opened, "ncclNetPlugin_v11"));
        if (table_ == nullptr) quit("dlsym");
        nccl::CommConfig config{-1};
        must(table_->init(&context_, 1, &config, say, nullptr), "init");
        std::array<char, nccl::handle_bytes> own{}, peer{};
        void *listener = nullptr;
        must(table_->listen(context_, 0, own.data(), &listener), "listen");
        transfer(meeting, first ? own.data() : peer.data(), own.size(), first);
        transfer(meeting, first ? peer.data() : own.data(), own.size(), !first);
        nccl::DeviceHandle *none = nullptr;
        while (out_ == nullptr || in_ == nullptr) {
            if (out_ == nullptr)
                must(table_->connect(context_, 0, peer.data(), &out_, &none), "connect");
            if (in_ == nullptr) must(table_->accept(listener, &in_, &none), "accept");
        }
        must(table_->close_listen(listener), "closeListen");
    }
    ~Plugin() {
        must(table_->close_send(out_), "closeSend");
        must(table_->close_receive(in_), "closeRecv");
        must(table_->finalize(context_), "finalize");
    }
    Plugin(const Plugin &) = delete;
    void *post_send(char *data, size_t size) {
        void *request = nullptr;
        while (request == nullptr)
            must(table_->send(out_, data, size, 0, nullptr, nullptr, &request), "isend");
        return request;
    }
    void *post_receive(char *data, size_t size) {
        void *request = nullptr, *at = data, *no_registration = nullptr;
        int tag = 0;
        while (request == nullptr)
            must(table_->receive(in_, 1, &at, &size, &tag, &no_registration, nullptr, &request),
                 "irecv");
        return request;
    }
    void await(void *request) {
        for (int done = 0; done == 0;) must(table_->test(request, &done, nullptr), "test");
    }
    void move(char *data, size_t size, bool sends) {
        await(sends ? post_send(data, size) : post_receive(data, size));
    }

  private:
    const nccl::Table11 *table_ = nullptr;
    void *context_ = nullptr, *out_ = nullptr, *in_ = nullptr;
};

// The median of half a round trip, in us.
template <class Move> double half_round_trip(size_t size, bool first, const Move &move) {
    std::vector<double> took;
    for (int i = 0; i < rounds_of(size); i++) {
        const double begun = now_us();
        move(first);
        move(!first);
        took.push_back((now_us() - begun) / 2);
    }
    std::nth_element(took.begin(), took.begin() + long(took.size() / 2), took.end());
    return took[took.size() / 2];
}

// From the first side to the second, in GB/s.
double stream(Plugin &plugin, char *data, size_t size, bool first) {
    const int rounds = rounds_of(size);
    void *requests[in_flight] = {};
    const double begun = now_us();
    for (int i = 0; i < rounds; i++) {
        void *&request = requests[i % in_flight];
        if (request != nullptr) plugin.await(request);
        request = first ? plugin.post_send(data, size) : plugin.post_receive(data, size);
    }
    for (void *request : requests)
        if (request != nullptr) plugin.await(request);
    char token[8];
    plugin.move(token, sizeof token, !first); // everything has arrived
    return double(size) * rounds / (now_us() - begun) * 1e-3;
}

void run(const char *file, int meeting, bool first) {
    Plugin plugin(file, meeting, first);
    std::vector<char> data(*std::ranges::max_element(sizes), 'x');
    if (first) std::printf("%10s %12s %12s %12s\n", "bytes", "tcp us", "plugin us", "plugin GB/s");
    for (const size_t size : sizes) {
        const double plain = half_round_trip(
            size, first, [&](bool sends) { transfer(meeting, data.data(), size, sends); });
        const double ours = half_round_trip(
            size, first, [&](bool sends) { plugin.move(data.data(), size, sends); });
        const double speed = stream(plugin, data.data(), size, first);
        if (first) std::printf("%10zu %12.1f %12.1f %12.2f\n", size, plain, ours, speed);
    }
}

// Two ends of a connection over the loopback.
void connect_ends(int ends[2]) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto *any = reinterpret_cast<sockaddr *>(&address);
    socklen_t length = sizeof address;
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, any, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, any, &length) != 0 || connect(ends[0], any, length) != 0)
        quit("a socket");
    ends[1] = accept(listener, nullptr, nullptr);
    for (int i = 0; i < 2; i++)
        if (setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
            quit("TCP_NODELAY");
    close(listener);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: bench_nccl_net PLUGIN\n");
        return 2;
    }
    int ends[2];
    connect_ends(ends);
    const pid_t other = fork();
    if (other < 0) quit("fork");
    run(argv[1], ends[other == 0 ? 1 : 0], other != 0);
    int status = 0;
    if (other != 0 && (waitpid(other, &status, 0) != other || status != 0)) quit("the other side");
    return 0;
}
