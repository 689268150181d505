// The sending side of the link to one peer: connects, then sends. Only the peer's answers come back
// here.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/secret.h"
#include "shm/shared.h"

namespace dtrain::shm {

class Device;

class Endpoint final : public Watcher {
  public:
    Endpoint(Device &device, Shared &shared, const Address &peer, uint64_t cookie)
        : device_(device), shared_(shared), cookie_(cookie),
          sender_(shared.ops, shared.done, shared.bell, shared.most_eager) {
        transcript_.connector = shared.own;
        transcript_.acceptor = peer;
    }
    // Ends pending operations with DTRAIN_ERR_CANCELED.
    ~Endpoint();

    Device &device() const { return device_; }
    // Starts connecting. On failure there is nothing to disconnect.
    Status start();
    Status send(uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie);
    void withdraw(uint64_t cookie); // a send
    // Moves pending messages.
    void advance();
    bool is_pending() const { return sender_.is_pending(); }
    // Gets a descriptor of the peer's window; DTRAIN_ERR_BUSY until the answer has come.
    Status ask_window(const Name &id, WindowShape shape, Fd &out);

    void set_asleep(bool asleep) { sender_.set_asleep(asleep); }
    bool has_news() { return sender_.can_advance(); }

    void on_readable() override;

    tp::Link<Endpoint> link;

  private:
    enum class State { idle, greeting, proving, up, lost };
    struct Ask {
        Name id{};
        bool answered = false;
        Status status = DTRAIN_OK;
        Fd fd;
        tp::Link<Ask> link;
    };

    Status on_message(const std::byte *message, size_t len, Fd &passed);
    Status on_challenge(const Challenge &challenge);
    Status on_ready(const Ready &ready);
    Status on_window(const WindowGive &give, Fd &passed);
    Status start_ask(const Name &id, WindowShape shape);
    void settle(Ask &ask, Status status);
    void lose(Status status);
    void end(Status status);

    Device &device_;
    Shared &shared_;
    const uint64_t cookie_;
    State state_ = State::idle;
    Fd fd_;
    Transcript transcript_;
    Segment segment_;          // used until the connection is up
    PeerProcess peer_process_; // used until the connection is up
    Sender sender_;
    tp::List<Ask, &Ask::link> asks_; // owned
};

} // namespace dtrain::shm
