// One epoll set: all descriptors that a device waits for.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"

#include <cstdint>
#include <sys/epoll.h>

namespace dtrain::tcp {

using tp::Fd;

// The owner of a registered descriptor; base of the classes that own one.
struct Pollable {
    enum class Kind : uint8_t { listener, timer, handshake, connection };
    explicit Pollable(Kind k) : kind(k) {}
    const Kind kind;
};

class Poller {
  public:
    bool open() {
        epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
        return bool(epoll_);
    }
    int fd() const { return epoll_.get(); }

    bool add(int fd, Pollable *who, uint32_t events) {
        return control(EPOLL_CTL_ADD, fd, who, events);
    }
    bool change(int fd, Pollable *who, uint32_t events) {
        return control(EPOLL_CTL_MOD, fd, who, events);
    }
    // Also drops events that poll() has found for it and not dispatched yet.
    void remove(int fd, const Pollable *who) {
        control(EPOLL_CTL_DEL, fd, nullptr, 0);
        for (int i = 0; i < found_; i++)
            if (events_[i].data.ptr == who) events_[i].data.ptr = nullptr;
    }
    bool anything_ready() {
        epoll_event event;
        return epoll_wait(epoll_.get(), &event, 1, 0) > 0;
    }
    // Calls dispatch(Pollable *) for each one that is ready now. Not re-entrant.
    template <class Dispatch> void poll(Dispatch &&dispatch) {
        found_ = epoll_wait(epoll_.get(), events_, max_events, 0);
        for (int i = 0; i < found_; i++)
            if (events_[i].data.ptr) dispatch(static_cast<Pollable *>(events_[i].data.ptr));
        found_ = 0;
    }

  private:
    bool control(int operation, int fd, Pollable *who, uint32_t events) {
        epoll_event event{};
        event.events = events;
        event.data.ptr = who;
        return !epoll_ctl(epoll_.get(), operation, fd, &event);
    }
    static constexpr int max_events = 64;
    Fd epoll_;
    epoll_event events_[max_events];
    int found_ = 0;
};

} // namespace dtrain::tcp
