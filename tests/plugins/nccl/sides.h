// Two processes with the plugin, one that sends and one that receives. This process never loads it,
// since its children would inherit sockets that do not work in two processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "net.h"
#include "transport/child.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <sched.h>

namespace dtrain::test {

using Bytes = std::vector<uint8_t>;
using Settings = std::vector<std::pair<const char *, std::string>>;

inline double now_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
inline constexpr double ample_s = 120; // far more than anything takes on a busy machine

// Polls until the condition holds; between two polls others may run.
template <class Condition> void poll_until(Condition &&condition) {
    const double limit = now_s() + ample_s;
    while (!condition()) {
        assert_true(now_s() < limit);
        sched_yield();
    }
}

inline Bytes pattern(size_t length, uint64_t seed) {
    Bytes bytes(length);
    uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < length; i++) {
        if (i % 8 == 0) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        bytes[i] = uint8_t(x >> 8 * (i % 8));
    }
    return bytes;
}

// A connection's end with its calls, each of which must succeed unless `try_` says otherwise.
class End {
  public:
    End(Net &net, bool sends) : net_(net), sends_(sends) {}
    End(const End &) = delete;
    ~End() { close(); }
    void close() {
        if (comm == nullptr) return;
        assert_true((sends_ ? net_.close_send(comm) : net_.close_receive(comm)) == Result::success);
        comm = nullptr;
    }
    // Waits for room.
    void *send(Bytes &bytes, int tag, void *registration = nullptr) {
        void *request = nullptr;
        poll_until([&] {
            assert_true(net_.send(comm, bytes.data(), bytes.size(), tag, registration, request) ==
                        Result::success);
            return request != nullptr;
        });
        return request;
    }
    void *receive(std::vector<Bytes *> into, std::vector<int> tags) {
        std::vector<void *> data, registrations(into.size());
        std::vector<size_t> sizes;
        for (Bytes *one : into) data.push_back(one->data()), sizes.push_back(one->size());
        void *request = nullptr;
        poll_until([&] {
            assert_true(net_.receive(comm, int(into.size()), data.data(), sizes.data(), tags.data(),
                                     registrations.data(), request) == Result::success);
            return request != nullptr;
        });
        return request;
    }
    // Waits for its end; the lengths.
    std::vector<int> await(void *request) {
        std::vector<int> sizes(nccl::most_receives, -1);
        poll_until([&] {
            int done = 0;
            assert_true(net_.test(request, done, sizes.data()) == Result::success);
            return done != 0;
        });
        return sizes;
    }
    // Waits for its failure.
    Result await_failure(void *request) {
        Result result = Result::success;
        poll_until([&] {
            int done = 0;
            result = net_.test(request, done, nullptr);
            assert_int_equal(done, 0);
            return result != Result::success;
        });
        return result;
    }
    void *comm = nullptr;

  private:
    Net &net_;
    const bool sends_;
};

// One of the two processes.
struct Side {
    std::unique_ptr<Net> net;
    int fd; // to the other side

    // The receiving end: tells the other side the handle, and accepts.
    void accept(End &end, int device = 0) {
        NcclHandle handle{};
        void *listener = nullptr;
        assert_true(net->listen(device, handle, listener) == Result::success);
        give(fd, handle.data(), handle.size());
        accept_from(end, listener);
        assert_true(net->close_listen(listener) == Result::success);
    }
    void accept_from(End &end, void *listener) {
        poll_until([&] {
            assert_true(net->accept(listener, end.comm) == Result::success);
            return end.comm != nullptr;
        });
    }
    NcclHandle take_handle() {
        NcclHandle handle;
        take(fd, handle.data(), handle.size());
        return handle;
    }
    void connect(End &end, int device = 0) {
        NcclHandle handle = take_handle();
        poll_until([&] {
            assert_true(net->connect(device, handle, end.comm) == Result::success);
            return end.comm != nullptr;
        });
    }
    // Waits until the other side is here, too.
    void meet() {
        char token = 'x';
        give(fd, &token, 1);
        take(fd, &token, 1);
    }
    void finish() { assert_true(net->finalize() == Result::success); }
};

struct Setup {
    int version = newest;
    Settings settings = {}, sender_settings = {};                 // of both; of the sender besides
    std::function<void()> receiver_first = {}, sender_first = {}; // before the plugin is loaded
    enum { nobody, sender, receiver } killed = nobody;            // by the other side
};

using Role = std::function<void(Side &)>;

// Runs the two roles to their ends, which must be good.
inline void two_sides(const Setup &setup, const Role &receiver, const Role &sender) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const auto run = [&](bool sends) {
        close(ends[sends ? 0 : 1]);
        setenv("DTRAIN_PLUGIN_PATH", PLUGIN_FOLDER, 1);
        if (getenv("DTRAIN_TRANSPORTS") == nullptr) setenv("DTRAIN_TCP_INTERFACE", "lo", 1);
        for (const auto &[name, value] : setup.settings) setenv(name, value.c_str(), 1);
        if (sends)
            for (const auto &[name, value] : setup.sender_settings) setenv(name, value.c_str(), 1);
        const auto &first = sends ? setup.sender_first : setup.receiver_first;
        if (first) first();
        Side side{load(setup.version), ends[sends ? 1 : 0]};
        assert_true(side.net->init() == Result::success);
        (sends ? sender : receiver)(side);
    };
    Child one([&](int) { run(false); });
    Child two([&](int) { run(true); });
    close(ends[0]);
    close(ends[1]);
    if (setup.killed != Setup::receiver) one.join();
    if (setup.killed != Setup::sender) two.join(); // a child that is not joined is killed
}

} // namespace dtrain::test
