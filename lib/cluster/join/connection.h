// One control connection: a socket, its handshake, and its frames in both directions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/protocol.h"
#include "cluster/host/socket.h"
#include "wire/auth.h"

#include <memory>
#include <optional>
#include <vector>

namespace dtrain::cluster {

class Connection {
  public:
    enum class State {
        connecting,  // until the socket is writable
        handshaking, // no frame is read or written yet
        open,
        draining // sends what is queued, then is closed
    };

    // own, peer, meeting: as in wire::Handshake. As long as it handshakes, an incoming connection
    // holds at most 512 bytes (test_strangers).
    Connection(Fd fd, wire::Handshake::Side side, const wire::Credentials &own, int32_t self,
               int32_t peer, int64_t deadline, uint16_t meeting = 0);

    State state() const { return state_; }
    int fd() const { return fd_.get(); }
    int32_t peer() const { return handshake_ != nullptr ? handshake_->peer() : peer_; }
    // Whether the peer has said who it is, true or not.
    bool introduced() const { return handshake_ == nullptr || handshake_->introduced(); }
    // When dialing: the address that was dialed, known even before that peer answers.
    Endpoint where() const { return dialled_ != nullptr ? dialled_->where : Endpoint{}; }
    void set_where(Endpoint where, int64_t now) {
        dialled_.reset(new Dialled{std::move(where), now + first_patience, first_patience});
    }
    // While nobody answers at all: when another socket is to try the same. A system whose queue is
    // full answers nothing, and one's own repeats the question after a second only.
    int64_t again_at() const {
        return state_ == State::connecting && dialled_ != nullptr ? dialled_->again_at : INT64_MAX;
    }
    void again(Fd fd, int64_t now);                // with this one; an empty one: the first goes on
    int64_t deadline() const { return deadline_; } // of the handshake, or of draining
    bool dialling() const { return side_ == wire::Handshake::Side::dialler; }
    bool wants_to_write() const { return state_ == State::connecting || sent_ < out_.size(); }

    // To be called when the socket is ready. An error ends the connection; the fail() text says
    // why; DTRAIN_ERR_PEER means that the peer has just closed it, DTRAIN_ERR_CORRUPT that it
    // carried bytes which the peer did not send. When the state becomes `open`, the handshake is
    // done.
    Status ready_to_write();
    Status ready_to_read(std::vector<wire::Message> &messages);

    // Queues and tries to send; DTRAIN_ERR_LIMIT: the peer reads too slowly.
    Status send(std::span<const uint8_t> frame);
    void drain(int64_t deadline); // no more send() or reading; done once !wants_to_write()
    // Alternative to drain() when there is time to wait for the peer: call it whenever the socket
    // is ready; it returns true once the peer has closed the connection, too. Closing with unread
    // bytes would reset the connection, and the last messages might be lost.
    bool wind_up();

  private:
    static constexpr int64_t first_patience = 250 * ms, last_patience = 1 * second;

    Status flush();
    Status read_some();
    Status open_records();
    Status take_frames(std::vector<wire::Message> &messages);
    void seal(std::span<const uint8_t> frame);

    Fd fd_;
    wire::Handshake::Side side_;
    std::unique_ptr<wire::Handshake> handshake_; // until it is done
    int32_t peer_ = wire::Handshake::anybody;    // once it is
    State state_;
    int64_t deadline_;
    struct Dialled {
        Endpoint where;
        int64_t again_at, patience;
    };
    std::unique_ptr<Dialled> dialled_;
    std::unique_ptr<protection::Guard> guard_; // nullptr: frames are sent as they are
    std::vector<uint8_t> in_, out_;            // as they travel
    std::vector<uint8_t> opened_;              // frames out of records
    size_t sent_ = 0;                          // bytes of out_ that are sent
    bool deaf_ = false; // the peer reads no more; what it sent before is still to be read
};

} // namespace dtrain::cluster
