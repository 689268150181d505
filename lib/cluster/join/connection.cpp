// Reads and writes the handshake and the frames of a control connection.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/connection.h"

#include "wire/frame.h"

#include <algorithm>
#include <cerrno>

namespace dtrain::cluster {
namespace {

// Bytes per call, so that no connection keeps the others waiting.
constexpr size_t read_size = 16 << 10;

// The memory of a buffer that has been used up: it may have held a roster, and "= {}" would keep
// it.
void give_up(std::vector<uint8_t> &buffer) { buffer = std::vector<uint8_t>(); }

// Takes the first bytes out; no buffer is kept for messages that seldom come.
void take_out(std::vector<uint8_t> &buffer, size_t bytes) {
    if (bytes == buffer.size())
        give_up(buffer);
    else
        buffer.erase(buffer.begin(), buffer.begin() + long(bytes));
}

} // namespace

Connection::Connection(Fd fd, wire::Handshake::Side side, const wire::Credentials &own,
                       int32_t self, int32_t peer, int64_t deadline, uint16_t meeting)
    : fd_(std::move(fd)), side_(side),
      handshake_(std::make_unique<wire::Handshake>(side, own, self, peer, meeting)),
      state_(side == wire::Handshake::Side::dialler ? State::connecting : State::handshaking),
      deadline_(deadline) {}

void Connection::again(Fd fd, int64_t now) {
    dialled_->patience *= 2;
    dialled_->again_at = dialled_->patience > last_patience ? INT64_MAX : now + dialled_->patience;
    if (fd) fd_ = std::move(fd);
}

Status Connection::ready_to_write() {
    if (state_ == State::connecting) {
        if (int error = connect_result(fd_.get()); error != 0)
            return error == ECONNREFUSED
                       ? fail(DTRAIN_ERR_NOT_FOUND, "connection refused, no process listens there")
                       : fail_errno(error, "connecting");
        state_ = State::handshaking;
        if (Status s = handshake_->advance(in_, out_); s < 0) return s;
    }
    return flush();
}

Status Connection::ready_to_read(std::vector<wire::Message> &messages) {
    if (state_ == State::connecting) return ready_to_write(); // returns the socket's error, if any
    Status end = read_some();
    if (state_ == State::draining) { // only to notice the end
        in_.clear();
        return end;
    }
    if (state_ == State::handshaking) {
        Status s = handshake_->advance(in_, out_);
        if (s < 0) {
            flush(); // so that the other side can report the reason, too
            return s;
        }
        if (s == DTRAIN_OK) {
            state_ = State::open;
            guard_ = handshake_->take_guard();
            peer_ = handshake_->peer();
            handshake_.reset();
        }
        if (Status sent = flush(); sent != DTRAIN_OK) return sent;
    }
    if (state_ == State::open)
        if (Status s = take_frames(messages); s != DTRAIN_OK) return s;
    return end;
}

Status Connection::read_some() {
    uint8_t bytes[read_size];
    ssize_t n;
    // A peer that has not proven itself makes this process keep no more than a message of the
    // handshake.
    const bool handshakes = state_ == State::handshaking;
    const size_t room =
        handshakes ? wire::hello_size - std::min(in_.size(), wire::hello_size) : read_size;
    do n = recv(fd_.get(), bytes, room, 0);
    while (n < 0 && errno == EINTR);
    int error = errno;
    if (handshakes && n > 0) in_.reserve(in_.size() + size_t(n)); // no more than that
    if (n > 0) in_.insert(in_.end(), bytes, bytes + n);
    if (n > 0 || (n < 0 && (error == EAGAIN || error == EWOULDBLOCK))) return DTRAIN_OK;
    if (n == 0 || error == ECONNRESET) return fail(DTRAIN_ERR_PEER, "connection closed");
    return fail_errno(error, "receiving");
}

// Moves the payloads of whole records from in_ to opened_.
Status Connection::open_records() {
    using protection::Guard;
    size_t at = 0;
    while (in_.size() - at >= protection::header_bytes) {
        uint8_t *const record = in_.data() + at;
        const size_t length = Guard::length_of(record), whole = length + protection::overhead_bytes;
        if (length != 0 && in_.size() - at < whole) break;
        if (length == 0 || !guard_->open(record, length)) {
            const Endpoint there = remote_endpoint(fd_.get());
            return fail(DTRAIN_ERR_CORRUPT,
                        "its control connection (%s) carried what it did not send: record %llu was "
                        "changed, left out, repeated or forged on its way",
                        join_endpoint(there.host, there.port).c_str(),
                        static_cast<unsigned long long>(guard_->opened()));
        }
        uint8_t *const payload = record + protection::header_bytes;
        opened_.insert(opened_.end(), payload, payload + length);
        at += whole;
    }
    take_out(in_, at);
    return DTRAIN_OK;
}

Status Connection::take_frames(std::vector<wire::Message> &messages) {
    if (guard_ != nullptr)
        if (Status s = open_records(); s != DTRAIN_OK) return s;
    std::vector<uint8_t> &frames = guard_ != nullptr ? opened_ : in_;
    size_t at = 0;
    for (;;) {
        wire::Message message;
        size_t used = 0;
        Status s = wire::next_frame(std::span(frames).subspan(at), used, message);
        if (s == DTRAIN_IN_PROGRESS) break;
        if (s != DTRAIN_OK) return s;
        at += used;
        messages.push_back(std::move(message));
    }
    take_out(frames, at);
    return DTRAIN_OK;
}

Status Connection::send(std::span<const uint8_t> frame) {
    if (deaf_) return DTRAIN_OK;
    if (out_.size() - sent_ > wire::max_queued)
        return fail(DTRAIN_ERR_LIMIT, "it does not read its control messages");
    if (guard_ != nullptr)
        seal(frame);
    else
        out_.insert(out_.end(), frame.begin(), frame.end());
    return flush();
}

void Connection::seal(std::span<const uint8_t> frame) {
    while (!frame.empty()) {
        const auto part = frame.first(std::min(frame.size(), protection::max_payload));
        const size_t at = out_.size();
        out_.resize(at + part.size() + protection::overhead_bytes);
        std::ranges::copy(part, out_.begin() + long(at + protection::header_bytes));
        guard_->seal(out_.data() + at, part.size());
        frame = frame.subspan(part.size());
    }
}

Status Connection::flush() {
    while (sent_ < out_.size()) {
        ssize_t n = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return DTRAIN_OK;
        // The peer's last messages (its Leave) may still have to be read; then reading fails.
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            deaf_ = true;
            break;
        }
        if (n < 0) return fail_errno(errno, "sending");
        sent_ += size_t(n);
    }
    give_up(out_);
    sent_ = 0;
    return DTRAIN_OK;
}

void Connection::drain(int64_t deadline) {
    state_ = State::draining;
    deadline_ = deadline;
}

bool Connection::wind_up() {
    state_ = State::draining;
    if (flush() != DTRAIN_OK) return true;
    if (!wants_to_write()) shutdown(fd_.get(), SHUT_WR);
    Status end = read_some();
    in_.clear();
    return end != DTRAIN_OK;
}

} // namespace dtrain::cluster
