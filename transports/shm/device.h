// One opened transport: its connections, its windows, and its sleeping state.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/descriptors.h"
#include "shm/endpoint.h"
#include "shm/inbound.h"

#include <algorithm>

namespace dtrain::shm {

class Device final : private Watcher {
  public:
    explicit Device(const dtrain_tp_host_t *table) : shared_(table), bell_watcher_(shared_.bell) {}
    ~Device();
    Status open();
    // By a forked child, whose memory lacks the device's segments: it cannot be destroyed there.
    bool is_inherited() const { return generation_ != tp::Descriptors::generation(); }

    const Host &host() const { return shared_.host; }
    const Address &own() const { return shared_.own; }

    Status connect(const void *address, size_t len, uint64_t cookie, Endpoint **out);
    void disconnect(Endpoint *endpoint);
    Status recv(uint64_t wanted, uint64_t mask, const dtrain_tp_iov_t *iov, uint32_t n,
                uint64_t cookie);
    void cancel(uint64_t cookie);
    void withdraw(uint64_t cookie);
    void purge(uint64_t wanted, uint64_t mask);

    uint64_t moved() const { return shared_.done.moved; }
    void limit_eager(uint64_t bytes) { shared_.most_eager = std::min(bytes, eager_limit); }
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    int event_fd() const { return shared_.poller.fd(); }
    Status arm();

    Status create_window(WindowShape shape, uint32_t member, void *handle, Window **out);
    Status attach_window(Endpoint *creator, const void *handle, WindowShape shape, uint32_t member,
                         Window **out);
    void free_window(Window *window);

  private:
    const uint32_t generation_ = tp::Descriptors::generation();

    struct BellWatcher final : Watcher {
        explicit BellWatcher(const Doorbell &b) : bell(b) {}
        void on_readable() override { bell.drain(); }
        const Doorbell &bell;
    };

    Status listen();
    void on_readable() override; // a peer connects
    void refuse_one();
    bool make_room_for_stranger();
    bool is_time_for_sockets();
    void look_at_sockets();
    void set_asleep(bool asleep);
    bool has_news();
    Status add_window(Segment &&segment, Fd &&fd, const Name &id, WindowShape shape,
                      uint32_t member, Window **out);

    Shared shared_;
    Fd listener_;
    bool listening_ = false;
    Fd spare_; // closed to accept and close a connection if there are no descriptors left
    BellWatcher bell_watcher_;
    tp::List<Endpoint, &Endpoint::link> endpoints_;
    tp::List<Inbound, &Inbound::link> inbounds_;
    uint32_t calls_ = 0; // of progress()
    int64_t looked_ns_ = 0;
};

} // namespace dtrain::shm
