// A connection that a peer made to this device: it only receives messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/receiver.h"
#include "shm/secret.h"
#include "shm/shared.h"

namespace dtrain::shm {

// Limit on connections that have not proven themselves, and the time that each of them has. To make
// room, one that has said nothing is closed at once, since a peer says hello before it is accepted;
// one that has said hello only when its time is over, since it may be busy elsewhere.
inline constexpr uint32_t max_strangers = 64;
inline constexpr int64_t stranger_deadline_ns = 3'000'000'000;

class Inbound final : public Watcher {
  public:
    Inbound(Shared &shared, Fd &&fd)
        : shared_(shared), accepted_ns_(shared.host.now_ns()), fd_(std::move(fd)),
          receiver_(shared.host, shared.matcher, shared.done, shared.bell) {
        transcript_.acceptor = shared.own;
    }
    ~Inbound() { close(); }

    Status start();
    // Processes what has arrived.
    void receive();
    void withdraw(uint64_t cookie) { receiver_.withdraw(cookie); } // a receive that has matched
    bool is_up() const { return state_ == State::up; }
    bool is_stranger() const { return state_ == State::greeting || state_ == State::proving; }
    bool is_silent() const { return state_ == State::greeting; }
    bool is_late(int64_t now_ns) const {
        return is_stranger() && now_ns - accepted_ns_ > stranger_deadline_ns;
    }
    // Nothing will arrive any more, and nothing that has arrived is kept: it may be deleted.
    bool is_over() const { return state_ == State::closed && !receiver_.is_keeping(); }
    void close();

    void set_asleep(bool asleep) { receiver_.set_asleep(asleep); } // only while is_up()
    bool has_news() { return receiver_.has_news(); }               // only while is_up()

    void on_readable() override;

    tp::Link<Inbound> link;

  private:
    enum class State { idle, greeting, proving, up, closed };

    Status on_message(const std::byte *message, size_t len, Fd &passed);
    Status on_hello(const Hello &hello);
    Status on_proof(const Proof &proof, Fd &passed);
    Status on_window_ask(const WindowAsk &ask);
    void lose(Status status);

    Shared &shared_;
    const int64_t accepted_ns_;
    State state_ = State::idle;
    Fd fd_;
    Transcript transcript_;
    uint64_t nonce_address_ = 0; // sent by the connector
    Receiver receiver_;
};

} // namespace dtrain::shm
