// Somebody between two ends of TCP connections, who passes on what he likes: a listener, and for
// each connection that it accepts one onward. One change is made to all of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <list>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace dtrain::test {

enum class Harm { none, flip, drop, repeat, swap, inject, reflect, truncate, delay };
constexpr const char *harm_names[] = {"none",   "flip",    "drop",     "repeat", "swap",
                                      "inject", "reflect", "truncate", "delay"};

// What is done to the bytes from `offset` on in one direction of a connection: of the one that has
// carried most when this is planned, or else of the first.
struct Change {
    Harm harm = Harm::none;
    bool onward = true; // of what the dialing side sends
    uint64_t offset = 0;
    uint32_t length = 1; // bytes concerned; of swap: of each half
    uint8_t bit = 0;     // flip
    uint64_t seed = 0;   // inject
};

class Relay {
  public:
    // port: where the other end listens on the loopback.
    explicit Relay(uint16_t port = 0) : onward_port_(port) {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_in at = address(0);
        socklen_t length = sizeof at;
        assert_int_equal(bind(listener_, reinterpret_cast<sockaddr *>(&at), length), 0);
        assert_int_equal(listen(listener_, 64), 0);
        getsockname(listener_, reinterpret_cast<sockaddr *>(&at), &length);
        port_ = ntohs(at.sin_port);
    }
    Relay(const Relay &) = delete;
    ~Relay() {
        for (Line &line : lines_)
            for (const int fd : line.fds) close(fd);
        close(listener_);
    }

    uint16_t port() const { return port_; }
    void lead_to(uint16_t port) { onward_port_ = port; }
    void plan(const Change &change) {
        change_ = change;
        harmed_ = false;
        target_ = busiest();
    }
    bool harmed() const { return harmed_; } // the change was made
    bool holds() const {                    // bytes that have arrived and were not passed on
        for (const Line &line : lines_)
            for (const Flow &flow : line.flows)
                if (!flow.held.empty()) return true;
        return false;
    }
    uint64_t passed(bool onward) { // on the connection that has carried most
        const Line *line = busiest();
        return line == nullptr ? 0 : line->flows[onward ? 0 : 1].seen;
    }

    // Passes on what has arrived; returns whether anything moved.
    bool work() {
        bool moved = false;
        for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;
             moved = true)
            open_line(fd);
        for (Line &line : lines_)
            for (const int way : {0, 1}) moved |= pass(line, way);
        return moved;
    }

  private:
    struct Flow {
        std::vector<uint8_t> held; // read, not written yet
        uint64_t seen = 0;         // bytes that have been read
        bool ended = false;
        int patience = 0; // of a delay
    };
    struct Line {
        int fds[2]; // of the dialing side, of the listening side
        Flow flows[2];
    };

    Line *busiest() {
        const auto carried = [](const Line &line) {
            return line.flows[0].seen + line.flows[1].seen;
        };
        Line *most = nullptr;
        for (Line &line : lines_)
            if (most == nullptr || carried(line) > carried(*most)) most = &line;
        return most;
    }

    static sockaddr_in address(uint16_t port) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons(port);
        return at;
    }
    void open_line(int fd) {
        const int onward = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in at = address(onward_port_);
        const int on = 1;
        for (const int one : {fd, onward})
            setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        // As a system call, since a test may have a connect() of its own.
        if (syscall(SYS_connect, onward, &at, sizeof at) != 0) {
            close(onward);
            close(fd);
            return;
        }
        lines_.push_back({{fd, onward}, {}});
        if (target_ == nullptr) target_ = &lines_.back();
    }
    bool pass(Line &line, int way) {
        Flow &flow = line.flows[way];
        bool moved = false;
        uint8_t bytes[64 << 10];
        ssize_t n = 0;
        if (flow.held.size() < 4 * sizeof bytes)
            while ((n = recv(line.fds[way], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
                flow.held.insert(flow.held.end(), bytes, bytes + n);
                flow.seen += uint64_t(n);
                moved = true;
                if (flow.held.size() >= 4 * sizeof bytes) break;
            }
        if (n == 0 || (n < 0 && errno != EAGAIN)) flow.ended = true;
        size_t ready = flow.held.size();
        const bool concerned = &line == target_ && !harmed_ && change_.harm != Harm::none &&
                               (way == 0) == change_.onward;
        if (concerned) ready = harm(line, flow, way);
        while (ready > 0) {
            n = send(line.fds[1 - way], flow.held.data(), ready, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n <= 0) break;
            flow.held.erase(flow.held.begin(), flow.held.begin() + n);
            ready -= size_t(n);
            moved = true;
        }
        if (n < 0 && errno != EAGAIN) flow.held.clear(); // nobody reads it
        if (flow.ended && (flow.held.empty() || concerned)) shutdown(line.fds[1 - way], SHUT_WR);
        return moved;
    }
    // Changes what is held, once it is all there; returns how much of it may go on.
    size_t harm(Line &line, Flow &flow, int way) {
        std::vector<uint8_t> &held = flow.held;
        const uint64_t first = flow.seen - held.size();
        if (change_.offset < first) return held.size(); // it has passed: nothing is done
        const uint64_t at = change_.offset - first;
        if (at >= held.size()) return held.size();
        const size_t length = change_.length;
        const size_t needed = change_.harm == Harm::swap       ? 2 * length
                              : change_.harm == Harm::inject   ? 0
                              : change_.harm == Harm::truncate ? 0
                                                               : length;
        if (held.size() < at + needed) return at;
        const auto from = held.begin() + long(at), to = from + long(length);
        switch (change_.harm) {
        case Harm::none: break;
        case Harm::flip: *from ^= uint8_t(1 << change_.bit); break;
        case Harm::drop: held.erase(from, to); break;
        case Harm::repeat: {
            const std::vector<uint8_t> copy(from, to);
            held.insert(to, copy.begin(), copy.end());
            break;
        }
        case Harm::swap:
            if (std::equal(from, to, to)) change_.harm = Harm::none;
            std::swap_ranges(from, to, to);
            break;
        case Harm::inject: {
            std::vector<uint8_t> fresh(length);
            uint64_t x = change_.seed | 1;
            for (uint8_t &byte : fresh) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                byte = uint8_t(x >> 32);
            }
            held.insert(from, fresh.begin(), fresh.end());
            break;
        }
        case Harm::reflect: { // back to who has sent it, in the place of what the other end sends
            Flow &back = line.flows[1 - way];
            back.held.insert(back.held.begin(), from, to);
            held.erase(from, to);
            break;
        }
        case Harm::truncate:
            held.resize(at);
            shutdown(line.fds[way], SHUT_RD);
            flow.ended = true;
            break;
        case Harm::delay:
            if (++flow.patience < 200) return at;
            break;
        }
        harmed_ = change_.harm != Harm::none;
        return held.size();
    }

    int listener_ = -1;
    uint16_t port_ = 0, onward_port_;
    std::list<Line> lines_; // which do not move
    const Line *target_ = nullptr;
    Change change_;
    bool harmed_ = false;
};

} // namespace dtrain::test
