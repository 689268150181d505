// A device of a transport with the lock that its operations need, and what is in flight on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/messages.h"
#include "transport/device.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace dtrain::nccl {

// A send or a receive. The rail owns it; it is the cookie of the transport's operation.
struct Operation {
    bool done = false;
    bool dropped = false; // nobody waits for it; it is reused when it is done
    Status status = DTRAIN_OK;
    uint64_t bytes = 0;
    Bytes buffer; // of a control message
};

// An endpoint of a peer's device.
struct Link {
    enum class State : uint8_t { connecting, up, failed, lost };
    State state = State::connecting;
    Status status = DTRAIN_OK; // of a failed one, with the reason
    std::string reason;
    dtrain_tp_ep_t *endpoint = nullptr;
    uint64_t number = 0; // its cookie
    bool ended() const { return state == State::failed || state == State::lost; }
};

// This side's end of a connection between two ranks. Each end tells the other one when it closes.
struct End {
    Link *link = nullptr;
    uint32_t own = 0, peer = 0;  // numbers
    Operation *closed = nullptr; // the receive of the peer's notice

    bool peer_closed() const { return closed->done && closed->status == DTRAIN_OK; }
    bool ended() const { return link->ended() || peer_closed(); }
    std::string reason() const;
};

// All functions but lock() need the lock. Text of a failure: error_text().
class Rail {
  public:
    using Lock = std::unique_lock<std::mutex>;

    explicit Rail(std::unique_ptr<transport::Device> device);
    ~Rail(); // nothing made from it is used any more
    Rail(const Rail &) = delete;
    Rail &operator=(const Rail &) = delete;

    Lock lock() { return Lock(mutex_); }
    const transport::Device &device() const { return *device_; }
    std::string text() const; // "tcp:eth0"

    // Moves bytes, and notes what has ended. A device that breaks does so for good.
    Status progress();
    // How often the device was called to move bytes, and to send.
    uint64_t calls() const { return calls_; }
    uint64_t sends() const { return sends_; }

    // The address comes from a peer; the device checks it. The link fails or comes up later.
    Status connect(const Bytes &address, Link *&link);
    void disconnect(Link *link); // then the link is gone

    // BUSY: nothing happened, call again later. iov is read during the call only.
    Status send(Link &link, uint64_t tag, const dtrain_tp_iov_t &iov, Operation *&out);
    Status receive(uint64_t tag, const dtrain_tp_iov_t &iov, Operation *&out);
    // The same with a buffer of the operation: a copy of `bytes`; room for `most` bytes.
    Status send_copy(Link &link, uint64_t tag, const Bytes &bytes, Operation *&out);
    Status receive_some(uint64_t tag, size_t most, Operation *&out);
    // The operation is done, or its memory is its own.
    void release(Operation *operation);
    // Asks the transport to end it; it takes until progress() has reported it, 50 ms at most.
    void withdraw(Operation *operation) { device_->withdraw(cookie_of(operation)); }
    // Both, for one with a buffer of its own.
    void drop(Operation *operation) {
        if (!operation->done) withdraw(operation);
        release(operation);
    }
    // Forgets messages that were not received.
    void purge(uint64_t tag, uint64_t mask) { device_->ops().purge(device_->dev(), tag, mask); }

    // A connection to the device at this address, which comes from a peer. discard_end(): nothing
    // was sent on it, and nothing will come. retire_end(): what the peer still sends is received
    // and dropped until it closes, too, as it would take up room forever.
    Status open_end(const Bytes &address, End &out);
    void discard_end(const End &end);
    void retire_end(const End &end);

    // A number of 31 bits, not 0, that nothing else on this rail has.
    uint32_t take_number();
    void give_number(uint32_t number) { numbers_.erase(number); }

  private:
    static uint64_t cookie_of(Operation *operation) {
        return reinterpret_cast<uintptr_t>(operation);
    }
    Operation &take();
    Status begun(Status status, Operation &operation, Operation *&out);
    void note(const dtrain_tp_done_t &done);
    void note_link(const dtrain_tp_done_t &done);
    void reap();

    std::mutex mutex_;
    std::unique_ptr<transport::Device> device_;
    Status broken_ = DTRAIN_OK;
    uint64_t calls_ = 0, sends_ = 0;
    std::deque<Operation> operations_; // never shrinks, so that addresses stay valid
    std::vector<Operation *> free_;
    std::map<uint64_t, std::unique_ptr<Link>> links_;
    uint64_t next_link_ = 1;
    size_t connecting_ = 0;
    std::vector<End> retired_;
    std::set<uint32_t> numbers_;
    uint32_t next_number_;
};

} // namespace dtrain::nccl
