// Times of the ciphers, of a handshake's keys, and of messages between two processes on one host,
// at each level in turns. usage: bench_protection [rounds [transport [option=value ...]]], as in
// bench_protection 5 ofi ofi.provider=net plugin.path=build/release/plugins; without these, tcp on
// the loopback. Not for ucx, whose user cannot be forked.
// SPDX-License-Identifier: Apache-2.0
#include "protection/guard.h"
#include "transport/device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::protection;

namespace {

[[noreturn]] void die(int line) {
    std::fprintf(stderr, "bench_protection: line %d failed: %s\n", line, error_text());
    std::exit(1);
}

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// Nanoseconds per call.
template <class Call> double time_of(Call &&call) {
    constexpr double enough = 2e8;
    uint64_t calls = 0;
    const auto begin = Clock::now();
    for (; ns_since(begin) < enough; calls += 16)
        for (int i = 0; i < 16; i++) call();
    return ns_since(begin) / double(calls);
}

void measure_cipher(Cipher cipher, Level level, size_t bytes) {
    std::vector<uint8_t> record(bytes + overhead_bytes, 7);
    alignas(16) CipherKey key(cipher, level, true), other(cipher, level, false);
    key.set(Key{1, 2, 3});
    other.set(Key{1, 2, 3});
    uint64_t number = 0;
    const double seal = time_of([&] { key.seal(number++, record.data(), bytes); });
    key.seal(0, record.data(), bytes);
    const std::vector<uint8_t> sealed = record;
    const double open = time_of([&] {
        if (level == Level::encrypted) memcpy(record.data(), sealed.data(), sealed.size());
        if (!other.open(0, record.data(), bytes)) die(__LINE__);
    });
    std::printf("%-18s %-10s %6zu bytes: seal %7.0f ns (%5.2f GB/s), open %7.0f ns (%5.2f GB/s)\n",
                name_of(cipher), name_of(level), bytes, seal, double(bytes) / seal, open,
                double(bytes) / open);
}

void measure_keys() {
    const std::vector<uint8_t> transcript(200, 1);
    const double both = time_of([&] {
        Guard a(Level::encrypted), b(Level::encrypted);
        if (a.agree(Role::initiator, "secret", b.offer(), false, transcript) != DTRAIN_OK ||
            b.agree(Role::responder, "secret", a.offer(), false, transcript) != DTRAIN_OK)
            die(__LINE__);
    });
    std::printf("keys of one connection: %.0f us on each side\n", both / 2e3);
}

// The transport, and its options.
const char *transport_name = "tcp";
std::vector<std::string> settings = {"tcp.interface=127.0.0.1"};

// One of the two processes: a device and the endpoint of the other's.
class End {
  public:
    End(Level level, int socket) : host_(options_, log_, monotonic_clock(), "secret", level) {
        for (const std::string &setting : settings) {
            const size_t equals = setting.find('=');
            if (equals == std::string::npos ||
                options_.set(setting.substr(0, equals), setting.substr(equals + 1)) != DTRAIN_OK)
                die(__LINE__);
        }
        if (options_.set("protection", name_of(level)) != DTRAIN_OK ||
            transport::Device::open(host_, transport_name, options_, devices_) != DTRAIN_OK)
            die(__LINE__);
        std::vector<uint8_t> own = devices_[0]->address(), other(own.size());
        if (write(socket, own.data(), own.size()) != ssize_t(own.size()) ||
            read(socket, other.data(), other.size()) != ssize_t(other.size()))
            die(__LINE__);
        ops().reachable(dev(), other.data(), other.size());
        if (ops().connect(dev(), other.data(), other.size(), 1, &ep_) != DTRAIN_OK) die(__LINE__);
        wait_for(DTRAIN_TP_CONNECT, 1);
    }
    ~End() { ops().disconnect(ep_); }

    void send(std::vector<uint8_t> &from) {
        dtrain_tp_iov_t iov = {from.data(), from.size(), nullptr};
        if (ops().send(ep_, 7, &iov, 1, 2) != DTRAIN_OK) die(__LINE__);
    }
    void recv(std::vector<uint8_t> &into) {
        dtrain_tp_iov_t iov = {into.data(), into.size(), nullptr};
        if (ops().recv(dev(), 7, UINT64_MAX, &iov, 1, 3) != DTRAIN_OK) die(__LINE__);
    }
    void wait_for(uint32_t kind, int count) {
        while (count > 0) {
            dtrain_tp_done_t done[16];
            const int32_t n = ops().progress(dev(), done, 16);
            for (int32_t i = 0; i < n; i++) {
                if (done[i].status != DTRAIN_OK) die(__LINE__);
                if (done[i].kind == kind && count > 0)
                    count--;
                else
                    early_[done[i].kind]++;
            }
            while (count > 0 && early_[kind] > 0) early_[kind]--, count--;
        }
    }

  private:
    const dtrain_tp_ops_t &ops() const { return devices_[0]->ops(); }
    dtrain_tp_dev_t *dev() const { return devices_[0]->dev(); }

    Options options_;
    Log log_;
    transport::Host host_;
    std::vector<std::unique_ptr<transport::Device>> devices_;
    dtrain_tp_ep_t *ep_ = nullptr;
    int early_[8] = {};
};

// Half a round trip in ns.
double ping_pong(End &end, bool first, size_t bytes, int count) {
    std::vector<uint8_t> out(bytes, 1), in(bytes);
    const auto begin = Clock::now();
    for (int i = 0; i < count; i++) {
        end.recv(in);
        if (first) end.send(out);
        end.wait_for(DTRAIN_TP_RECV, 1);
        if (!first) end.send(out);
        end.wait_for(DTRAIN_TP_SEND, 1);
    }
    return ns_since(begin) / count / 2;
}

// ns per message of a stream with four in flight.
double stream(End &end, bool first, size_t bytes, int count) {
    constexpr int window = 4;
    std::vector<uint8_t> buffers[window];
    for (auto &buffer : buffers) buffer.assign(bytes, 1);
    const auto begin = Clock::now();
    const uint32_t kind = first ? DTRAIN_TP_SEND : DTRAIN_TP_RECV;
    for (int i = 0; i < count; i++) {
        if (i >= window) end.wait_for(kind, 1);
        first ? end.send(buffers[i % window]) : end.recv(buffers[i % window]);
    }
    end.wait_for(kind, window);
    std::vector<uint8_t> last(1);
    first ? end.recv(last) : end.send(last);
    end.wait_for(first ? DTRAIN_TP_RECV : DTRAIN_TP_SEND, 1);
    return ns_since(begin) / count;
}

constexpr size_t sizes[] = {8, 64 << 10, 1 << 20, 16 << 20};

struct Times {
    double half_round_trip[std::size(sizes)], per_message[std::size(sizes)];
};

Times measure_level(Level level) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) die(__LINE__);
    const pid_t child = fork();
    const bool first = child != 0;
    End end(level, sockets[first ? 0 : 1]);
    Times times{};
    for (size_t i = 0; i < std::size(sizes); i++) {
        const int count = int(std::clamp<size_t>((96 << 20) / sizes[i], 6, 4000));
        ping_pong(end, first, sizes[i], count / 10 + 1);
        times.half_round_trip[i] = ping_pong(end, first, sizes[i], count);
        times.per_message[i] = stream(end, first, sizes[i], count);
    }
    char over = 0; // what the child has sent last has arrived
    if (!first) _exit(read(sockets[1], &over, 1) == 1 ? 0 : 1);
    if (write(sockets[0], &over, 1) != 1) die(__LINE__);
    waitpid(child, nullptr, 0);
    close(sockets[0]);
    close(sockets[1]);
    return times;
}

double median(std::vector<double> all) {
    std::ranges::sort(all);
    return all[all.size() / 2];
}

void measure_messages(int rounds) {
    std::vector<Times> all[3];
    for (int round = 0; round < rounds; round++)
        for (int level = 0; level < 3; level++) all[level].push_back(measure_level(Level(level)));
    for (size_t i = 0; i < std::size(sizes); i++) {
        double plain_latency = 0, plain_rate = 0;
        for (int level = 0; level < 3; level++) {
            std::vector<double> latency, per_message;
            for (const Times &one : all[level]) {
                latency.push_back(one.half_round_trip[i]);
                per_message.push_back(one.per_message[i]);
            }
            const double ns = median(latency), rate = double(sizes[i]) / median(per_message);
            if (level == 0) plain_latency = ns, plain_rate = rate;
            std::printf("%s %-10s %8zu bytes: half a round trip %9.2f us (%+.2f us, %3.0f %% of "
                        "the speed), stream %5.2f GB/s (%3.0f %%)\n",
                        transport_name, name_of(Level(level)), sizes[i], ns / 1e3,
                        (ns - plain_latency) / 1e3, 100 * plain_latency / ns, rate,
                        100 * rate / plain_rate);
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // children inherit nothing
    for (const Cipher cipher : {Cipher::aes256_gcm, Cipher::chacha20_poly1305}) {
        if ((usable_ciphers() & bit_of(cipher)) == 0) continue;
        for (const Level level : {Level::integrity, Level::encrypted})
            for (const size_t bytes : {size_t{40}, size_t{1024}, size_t{16384}, max_payload})
                measure_cipher(cipher, level, bytes);
    }
    measure_keys();
    if (argc > 2) {
        transport_name = argv[2];
        settings.assign(argv + 3, argv + argc);
    }
    measure_messages(argc > 1 ? std::atoi(argv[1]) : 5);
}
