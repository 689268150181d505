// Memory that the members of a group load and store, with wake-ups for the members that sleep.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/list.h"
#include "shm/segment.h"
#include "shm/socket.h"

#include <atomic>

namespace dtrain::shm {

inline constexpr uint32_t max_members = 512;

struct WindowShape {
    uint64_t bytes = 0; // usable
    uint32_t members = 0;

    bool operator==(const WindowShape &) const = default;
    bool is_valid() const;
    // The usable part comes first; the transport's own part starts at this offset.
    uint64_t offset() const { return round_up(bytes, 4096); }
    uint64_t size() const;
};

class Device;

class Window {
  public:
    // fd: to be passed to the other members; empty unless the window was created here.
    Window(Device &device, Segment &&segment, Fd &&fd, const Name &id, WindowShape shape,
           uint32_t member, const Name &own, const Doorbell &bell);

    Device &device() const { return device_; }
    void *address() const { return segment_.data(); }
    const Name &id() const { return id_; }
    const WindowShape &shape() const { return shape_; }
    const Fd &fd() const { return fd_; }

    void set_asleep(bool asleep);
    // Wakes the members that sleep. Thread-safe.
    void ring() const;

    tp::Link<Window> link;

  private:
    // Which members sleep, one bit each, so that a single load tells that none does. The member
    // that clears a bit wakes its owner. It takes one cache line, whatever the number of members.
    struct Shared {
        alignas(128) std::atomic<uint64_t> asleep[max_members / 64];
        Name names[]; // of the members' doorbells
    };
    friend struct WindowShape;
    Shared *shared() const { return reinterpret_cast<Shared *>(segment_.data() + shape_.offset()); }

    Device &device_;
    Segment segment_;
    Fd fd_;
    Name id_;
    WindowShape shape_;
    uint32_t member_;
    const Doorbell &bell_;
};

} // namespace dtrain::shm
