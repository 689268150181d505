// The sending side of a connection.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/connection.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace dtrain::tcp {
namespace {

constexpr uint64_t write_budget = 1 << 20; // bytes per call, so that reading gets its turn

} // namespace

void Connection::post(Send *send) {
    queue_.push_back(send);
    if (!blocked_) write();
}

// Writes until there is nothing left, the socket is full, or the budget is used up.
void Connection::write() {
    if (!up() || broken_) return;
    for (uint64_t bytes = 0; bytes < write_budget;) {
        if (!out_header_left_ && !out_payload_left_ && !next_frame()) return;
        if (!write_frame(&bytes)) return;
    }
    shared_.attention = true;
}

// Writes once. False: stop, because the socket is full or broken.
bool Connection::write_frame(uint64_t *bytes) {
    iovec iov[tp::max_iov + 2];
    int n = 0;
    if (out_header_left_)
        iov[n++] = {out_header_ + sizeof out_header_ - out_header_left_, out_header_left_};
    if (out_word_left_) iov[n++] = {out_word_ + sizeof out_word_ - out_word_left_, out_word_left_};
    const uint64_t more = out_payload_left_ - out_word_left_;
    // A payload always has its send.
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage)
    if (more) n += out_send_->from.describe(iov + n, more);
    msghdr message{};
    message.msg_iov = iov;
    message.msg_iovlen = size_t(n);
    const ssize_t written = records_ ? records_->write(fd_.get(), iov, n)
                                     : sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && errno == EINTR) return true;
    if (written < 0 && errno != EAGAIN) {
        broken_ = shared_.attention = true;
        reason_ = strerrordesc_np(errno);
        return false;
    }
    uint64_t rest = written < 0 ? 0 : uint64_t(written);
    *bytes += rest;
    shared_.completions.moved += rest;
    const size_t header = std::min<size_t>(rest, out_header_left_);
    out_header_left_ -= header;
    rest -= header;
    out_payload_left_ -= rest;
    const uint32_t word = uint32_t(std::min<uint64_t>(rest, out_word_left_));
    out_word_left_ -= word;
    rest -= word;
    if (rest) out_send_->from.advance(rest);
    if (rest && out_payload_left_ && !records_) keep_word();
    const bool whole = !out_header_left_ && !out_payload_left_;
    blocked_ = records_ ? written < 0 : !whole; // a frame may take several records
    if (blocked_ != bool(interest_ & EPOLLOUT)) shared_.stale_interest = true;
    if (whole) frame_written();
    return !blocked_;
}

// Of a table's values, which may change before the socket takes more: a number that was begun is
// sent as it was. (Records end between words: their length and that of headers are multiples.)
void Connection::keep_word() {
    iovec next[tp::max_iov];
    out_send_->from.describe(next, std::min<uint64_t>(out_payload_left_, sizeof out_word_));
    const size_t in_word = reinterpret_cast<uintptr_t>(next[0].iov_base) % sizeof out_word_;
    if (!in_word) return;
    out_word_left_ = uint32_t(std::min(sizeof out_word_ - in_word, next[0].iov_len));
    memcpy(out_word_ + sizeof out_word_ - out_word_left_, next[0].iov_base, out_word_left_);
    out_send_->from.advance(out_word_left_);
}

// The last frame, as far as there is room for it: the peer learns why the connection ends.
void Connection::write_corrupt() {
    if (out_header_left_ || out_payload_left_) return; // a frame has begun
    begin({FrameKind::corrupt, 0, 0, 0, 0, 0}, nullptr, 0);
    uint64_t bytes = 0;
    write_frame(&bytes);
}

void Connection::frame_written() {
    Send *send = std::exchange(out_send_, nullptr);
    if (!send) return;
    if (send->from.remaining())
        streams_.push_back(send);
    else
        finish(send, DTRAIN_OK);
}

bool Connection::next_frame() {
    if (!control_.empty()) {
        begin(control_.pop(), nullptr, 0);
        return true;
    }
    if (next_message()) return true;
    if (streams_.empty()) return false;
    next_piece();
    return true;
}

bool Connection::next_message() {
    Send *send = queue_.front();
    if (!send) return false;
    if (send->length <= shared_.eager_limit && window_.has_room(send->length)) {
        window_.sent(send->length);
        queue_.remove(send);
        begin({FrameKind::eager, 0, send->tag, send->length, 0, 0}, send, send->length);
        return true;
    }
    if (!rendezvous_.announce(send)) return false;
    queue_.remove(send);
    begin({FrameKind::announce, 0, send->tag, send->length, send->id, 0}, nullptr, 0);
    return true;
}

void Connection::next_piece() {
    Send *send = streams_.pop_front();
    const uint64_t length = std::min(send->from.remaining(), data_limit);
    begin({FrameKind::data, 0, 0, length, send->peer_id, 0}, send, length);
}

// Every frame carries the credit that is due.
void Connection::begin(Frame frame, Send *payload, uint64_t payload_length) {
    frame.credit = window_.due();
    window_.told();
    frame.encode(out_header_);
    out_header_left_ = sizeof out_header_;
    out_payload_left_ = payload_length;
    out_send_ = payload;
}

// Queues a control frame; the caller then calls write().
void Connection::control(const Frame &frame) {
    if (!control_.push(frame)) starve();
}

// Returns the credit for a message of that length.
void Connection::give_credit(uint64_t length) {
    if (window_.give_back(length) && control_.empty()) control({FrameKind::credit, 0, 0, 0, 0, 0});
}

void Connection::finish(Send *send, dtrain_status_t status) {
    if (!send->orphan)
        shared_.completions.push(
            {send->cookie, send->length, send->tag, 0, status, DTRAIN_TP_SEND, 0});
    shared_.sends.put(send);
}

void Connection::withdraw(const Endpoint *endpoint) {
    withdraw_sends([endpoint](const Send &send) { return send.endpoint == endpoint; });
}

void Connection::withdraw(uint64_t cookie) {
    withdraw_receives(cookie);
    withdraw_sends([cookie](const Send &send) { return send.cookie == cookie; });
}

template <class Which> void Connection::withdraw_sends(const Which &which) {
    withdraw_queued(&queue_, which, false);
    withdraw_queued(&streams_, which, true);
    while (Send *send = rendezvous_.find_if(which)) {
        rendezvous_.end(send);
        control({FrameKind::withdraw, 0, 0, 0, send->id, 0});
        finish(send, DTRAIN_ERR_CANCELED);
    }
    if (out_send_ && !out_send_->orphan && which(*out_send_)) orphan_current();
    write();
}

template <class Which>
void Connection::withdraw_queued(SendList *list, const Which &which, bool is_announced) {
    for (Send *send = list->front(), *next; send; send = next) {
        next = SendList::next(send);
        if (!which(*send)) continue;
        list->remove(send);
        if (is_announced) control({FrameKind::withdraw, 0, 0, 0, send->id, 0});
        finish(send, DTRAIN_ERR_CANCELED);
    }
}

// A frame that has begun must be completed, but the caller wants its buffer back: sends a copy.
void Connection::orphan_current() {
    Send *send = out_send_;
    const uint64_t left = out_payload_left_ - out_word_left_;
    const bool withdraw = send->from.remaining() > left;
    std::unique_ptr<uint8_t[]> copy(new (std::nothrow) uint8_t[left + 1]);
    if (!copy) {
        starve();
        finish(std::exchange(out_send_, nullptr), DTRAIN_ERR_CANCELED);
        out_payload_left_ = out_word_left_ = 0;
        return;
    }
    send->from.gather(copy.get(), left);
    shared_.completions.push(
        {send->cookie, send->length, send->tag, 0, DTRAIN_ERR_CANCELED, DTRAIN_TP_SEND, 0});
    const dtrain_tp_iov_t rest{copy.get(), left, nullptr};
    send->from.assign(&rest, 1, left);
    send->orphan = std::move(copy);
    if (withdraw) control({FrameKind::withdraw, 0, 0, 0, send->id, 0});
}

} // namespace dtrain::tcp
