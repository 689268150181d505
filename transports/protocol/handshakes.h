// What the handshakes of a device have in common, whatever carries them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/guests.h"

namespace dtrain::protocol {

using tp::DeviceId;
using tp::Verdict;

inline constexpr uint32_t max_strangers = 64; // incoming handshakes that a device keeps

// How a device handles the outcome of handshakes. `connection` is the one for which this side
// connected, or nullptr for a peer that connected to this device. Route is the way to the peer.
template <class Connection, class Route> class HandshakeOwner {
  public:
    // Whether this peer may connect to this device.
    virtual Verdict admit(const DeviceId &peer) = 0;
    // The core has asked about this peer. Others may be strangers: of those that are accepted and
    // do not confirm, most_guests are kept for guest_patience_ns.
    virtual bool is_expected(const DeviceId &peer) = 0;
    virtual void joined(Connection *connection, const DeviceId &peer, Route route) = 0;
    virtual void failed(Connection *connection, dtrain_status_t status, const char *reason) = 0;

  protected:
    ~HandshakeOwner() = default;
};

// The log of incoming handshakes that failed: a line a minute at most, as anybody can cause them.
class Refusals {
  public:
    Refusals(const tp::Host &host, const char *name) : host_(host), name_(name) {}

    void ended(dtrain_status_t status, const char *reason) {
        if (status != DTRAIN_ERR_PEER) return refused(reason);
        // Both sides connected at once, or the peer went away.
        host_.log(DTRAIN_LOG_DEBUG, "%s: an incoming connection ended: %s", name_, reason);
    }
    void refused(const char *reason) {
        count_++;
        const int64_t now = host_.now_ns();
        if (now - last_log_ns_ < log_interval_ns) return;
        host_.log(DTRAIN_LOG_WARN, "%s: refused %llu incoming connection(s), the last one: %s",
                  name_, static_cast<unsigned long long>(count_), reason);
        last_log_ns_ = now;
        count_ = 0;
    }

  private:
    static constexpr int64_t log_interval_ns = 60'000'000'000;

    const tp::Host &host_;
    const char *const name_;
    int64_t last_log_ns_ = -log_interval_ns;
    uint64_t count_ = 0; // since the last line
};

} // namespace dtrain::protocol
