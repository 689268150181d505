// One opened card.
// SPDX-License-Identifier: Apache-2.0
#include "card/wire.h"
#include "rdm/plugin.h"

#include <algorithm>
#include <cerrno>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace dtrain::card {

dtrain_status_t Wire::open(const char *) {
    epoll_ = tp::Fd(epoll_create1(EPOLL_CLOEXEC));
    timer_ = tp::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    listener_ = tp::Fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    socklen_t len = sizeof at;
    auto *address = reinterpret_cast<sockaddr *>(&at);
    if (!epoll_ || !timer_ || !listener_ || bind(listener_.get(), address, len) ||
        listen(listener_.get(), 64) || getsockname(listener_.get(), address, &len) ||
        !watch(timer_.get(), EPOLLIN, &timer_) || !watch(listener_.get(), EPOLLIN, &listener_))
        return host_.fail(DTRAIN_ERR_IO, "card: cannot be opened: %s", strerror(errno));
    own_ = {simulator_own_host(), ntohs(at.sin_port)};
    // Cards differ: libfabric takes announced memory back, and UCX does not.
    const uint64_t variant = number();
    takes_back_ = (variant & 1) != 0;
    attr_.breaks_off_any_time = (variant & 2) != 0;
    attr_.closes_quietly = (variant & 4) != 0;
    attr_.by_processors = (variant & 128) != 0;
    attr_.caps = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET;
    attr_.bulk_limit = uint64_t{1} << 30;
    attr_.packet_limit = attr_.head_limit = rdm::least_packet << (variant >> 3 & 1);
    attr_.copy_limit = (variant & 16) != 0 ? 256 : attr_.packet_limit;
    attr_.eager_limit = 1 << 10 << (variant >> 5 & 3);
    attr_.rkey_len = sizeof(Place);
    attr_.latency_ns = attr_.remote_latency_ns = 2000;
    attr_.bandwidth_bps = attr_.remote_bandwidth_bps = 10'000'000'000;
    return DTRAIN_OK;
}

size_t Wire::address(uint8_t out[rdm::max_fabric_address]) {
    memcpy(out, &own_, sizeof own_);
    return sizeof own_;
}

uint64_t Wire::number() const {
    uint64_t out = 0;
    host_.random(&out, sizeof out);
    return out | uint64_t{1} << 63;
}

bool Wire::arm() {
    int64_t next = INT64_MAX;
    for (Link &link : links_) {
        if (link.broken.why && !link.told) return false;
        if (link.broken.why) continue;
        epoll_event event{};
        event.events = EPOLLIN | (link.frames.empty() ? 0u : unsigned(EPOLLOUT));
        event.data.ptr = &link;
        epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd.get(), &event);
    }
    for (const Move &move : moves_) next = std::min(next, move.due_ns);
    if (next <= host_.now_ns()) return false;
    if (next != INT64_MAX) wake_at(next);
    return true;
}

// Others than the thread that sleeps may have begun something since it armed.
void Wire::wake_at(int64_t due_ns) {
    if (due_ns >= wakes_at_ns_) return;
    wakes_at_ns_ = due_ns;
    const int64_t ns = std::max(due_ns - host_.now_ns(), int64_t{1});
    itimerspec when{};
    when.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
    timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool Wire::progress() {
    entered_ = true;
    epoll_event events[16];
    const int n = epoll_wait(epoll_.get(), events, 16, 0);
    for (int i = 0; i < n; i++) {
        void *what = events[i].data.ptr;
        uint64_t times;
        if (what == &timer_) {
            if (read(timer_.get(), &times, sizeof times) > 0) wakes_at_ns_ = INT64_MAX;
        } else if (what == &listener_) {
            accept_all();
        } else if (auto link = std::find_if(links_.begin(), links_.end(),
                                            [&](Link &one) { return &one == what; });
                   link != links_.end()) {
            hear_back(*link);
        } else if (auto from = std::find_if(incoming_.begin(), incoming_.end(),
                                            [&](auto &one) { return one.get() == what; });
                   from != incoming_.end()) {
            receive(**from, *from);
        }
    }
    incoming_.remove_if([](const auto &from) { return from->ended; });
    for (Link &link : links_) flush(link);
    for (auto move = moves_.begin(); move != moves_.end();)
        move = advance(*move) ? moves_.erase(move) : std::next(move);
    for (Link &link : links_)
        if (link.broken.why && !std::exchange(link.told, true))
            protocol_.on_broken(&link, link.broken);
    entered_ = false;
    return true;
}

bool Wire::quiet() {
    for (Link &link : links_) {
        int unsent = 0;
        if (link.broken.why) continue;
        if (!link.frames.empty() || (ioctl(link.fd.get(), SIOCOUTQ, &unsent) == 0 && unsent > 0))
            return false;
    }
    return true;
}

} // namespace dtrain::card

namespace dtrain::rdm {

const char *const transport_name = "card";

dtrain_status_t list_devices(const tp::Host &, std::string *names) {
    *names = "card0";
    return DTRAIN_OK;
}

std::string kind_of(const char *) { return "card"; }

std::unique_ptr<Wire> make_wire(const tp::Host &host, Protocol *protocol) {
    return std::unique_ptr<Wire>(new (std::nothrow) card::Wire(host, *protocol));
}

} // namespace dtrain::rdm

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_card;
const dtrain_tp_plugin_t dtrain_tp_plugin_card{sizeof(dtrain_tp_plugin_t), DTRAIN_TP_ABI, "card",
                                               "0.1.0", &dtrain::rdm::ops};
}
