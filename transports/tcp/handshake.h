// The handshake of one connection: from connect() or accept() until both sides trust each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"
#include "common/list.h"
#include "tcp/address.h"
#include "tcp/poller.h"

namespace dtrain::tcp {

using tp::Hello;
using tp::Proof;
using tp::Role;
using tp::Verdict;

class Connection;

class Handshake : public Pollable {
  public:
    enum class Step {
        wait,      // until the socket is ready
        authentic, // responder: the peer has proven itself; call answer()
        done,      // the socket is ready for frames
        duplicate, // initiator: the peer prefers its own connection to this device
        failed     // status() and reason() say why
    };

    Handshake(Fd fd, Role role, const Hello &own, int64_t deadline_ns)
        : Pollable(Kind::handshake), role_(role), own_(own), fd_(std::move(fd)),
          deadline_ns_(deadline_ns),
          phase_(role == Role::initiator ? Phase::connect : Phase::hello) {}

    Step step(const tp::Host &host); // call when the socket is ready
    Step answer(Verdict verdict);    // after Step::authentic

    int fd() const { return fd_.get(); }
    Fd take_fd() { return std::move(fd_); }
    tp::Guard take_guard() { return std::move(guard_); } // after Step::done
    Role role() const { return role_; }
    const DeviceId &peer() const { return other_.from; }            // after Step::authentic or done
    bool accepted() const { return phase_ == Phase::confirmation; } // responder: it told the peer
    bool connecting() const { return phase_ == Phase::connect; }
    // Responder: the peer's hello has arrived, and is one.
    bool introduced() const { return phase_ != Phase::hello; }
    int64_t deadline_ns() const { return deadline_ns_; } // INT64_MAX: none
    void wait_until(int64_t deadline_ns) { deadline_ns_ = deadline_ns; }
    // The error text when the deadline has passed.
    const char *timeout_reason() const;
    // Records a failure that happened outside; returns its status, and reason() its text.
    dtrain_status_t fail_errno(int error);
    dtrain_status_t status() const { return status_; }
    const char *reason() const { return reason_; }

    Connection *connection = nullptr; // initiator: the connection it is for
    bool trial = false;               // initiator: there are other targets left
    bool spoken = false;              // responder: it is listed among those who are introduced
    tp::Link<Handshake> link;

  private:
    enum class Phase : uint8_t {
        connect,
        hello,
        verdict,
        reply,
        reply_proof,
        proof,
        decide,
        last_verdict,
        confirmation
    };

    Step on_connected(const tp::Host &host);
    Step on_hello(const tp::Host &host);
    Step on_verdict();
    Step on_reply();
    Step on_reply_proof(const tp::Host &host);
    Step on_proof();
    Step on_confirmation();
    Step offer(const tp::Host &host);
    // false: not all has arrived (or step_ is `failed`). into: the same until it has.
    bool read(void *into, size_t len);
    Step send(const void *bytes, size_t len, Phase next);
    Step refuse(Verdict verdict);
    Step fail(dtrain_status_t status, const char *reason);
    Step system_error(int error);

    const Role role_;
    Hello own_; // a responder does not know the receiver until it has read the other
    Hello other_;
    Proof expected_{}; // responder: the proof that the initiator must send
    tp::Guard guard_;
    Fd fd_;
    int64_t deadline_ns_;
    Phase phase_;
    Step step_ = Step::wait;
    dtrain_status_t status_ = DTRAIN_OK;
    const char *reason_ = "";
    size_t have_ = 0;   // bytes that this phase has read
    uint32_t code_ = 0; // a verdict that is being read
    Proof proof_{};     // a proof that is being read
};
// The core's guard adds a little more than 100 bytes.
static_assert(sizeof(Handshake) <= 400, "state that an unauthenticated peer can make us hold");

} // namespace dtrain::tcp
