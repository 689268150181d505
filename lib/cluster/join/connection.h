// One control connection: a socket, its handshake, and its frames in both directions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/protocol.h"
#include "cluster/host/socket.h"
#include "wire/auth.h"

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

    Connection(Fd fd, wire::Handshake::Side side, const std::string &secret, int32_t self,
               int32_t peer, int64_t deadline, uint16_t meeting = 0); // as wire::Handshake's

    State state() const { return state_; }
    int fd() const { return fd_.get(); }
    int32_t peer() const { return handshake_.peer(); }
    // Dialling: which address it is meant for, also while there is no answer from there.
    const Endpoint &where() const { return where_; }
    void set_where(Endpoint where) { where_ = std::move(where); }
    int64_t deadline() const { return deadline_; } // of the handshake, or of draining
    bool dialling() const { return side_ == wire::Handshake::Side::dialler; }
    bool wants_to_write() const { return state_ == State::connecting || sent_ < out_.size(); }

    // What the socket is ready for. Errors end the connection: fail() text says why, and a peer
    // that just closed it is DTRAIN_ERR_PEER. When the state becomes `open`, the handshake is done.
    Status ready_to_write();
    Status ready_to_read(std::vector<wire::Message> &messages);

    Status send(std::span<const uint8_t> frame); // queues and tries; DTRAIN_ERR_LIMIT: too slow
    void drain(int64_t deadline); // no more reading or sending; done once !wants_to_write()
    // Instead, when there is time to wait for the peer, whenever the socket is ready: true once it
    // has closed the connection, too. Closing with bytes unread would reset it, and what was said
    // last may be lost.
    bool wind_up();

  private:
    Status flush();
    Status read_some();
    Status take_frames(std::vector<wire::Message> &messages);

    Fd fd_;
    wire::Handshake::Side side_;
    wire::Handshake handshake_;
    State state_;
    int64_t deadline_;
    Endpoint where_;
    std::vector<uint8_t> in_, out_;
    size_t sent_ = 0;   // bytes of out_
    bool deaf_ = false; // the peer reads no more; what it said before is still to be read
};

} // namespace dtrain::cluster
