// The receiving side of a connection. Everything in a frame is checked before it is used.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace dtrain::tcp {
namespace {

constexpr uint64_t read_budget = 1 << 20; // bytes per call, so that writing gets its turn

} // namespace

Connection::Read Connection::read() {
    if (records_) return read_records();
    for (uint64_t total = 0; total < read_budget;) {
        iovec iov[tp::max_iov + 1];
        const int pieces = describe_payload(iov);
        size_t direct = 0;
        for (int i = 0; i < pieces; i++) direct += iov[i].iov_len;
        iov[pieces] = {shared_.scratch, sizeof shared_.scratch};
        // recv() costs a third less than readv(), which matters while there is nothing to read.
        const ssize_t got =
            pieces ? readv(fd_.get(), iov, pieces + 1)
                   : recv(fd_.get(), shared_.scratch, sizeof shared_.scratch, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return Read::drained;
        if (got <= 0) {
            fail(got ? strerrordesc_np(errno) : "closed by the peer");
            return Read::lost;
        }
        shared_.completions.moved += uint64_t(got);
        const size_t placed = std::min(size_t(got), direct);
        if (placed) payload_written(placed);
        if (!consume(shared_.scratch, size_t(got) - placed)) return Read::lost;
        if (size_t(got) < direct + sizeof shared_.scratch) return Read::drained;
        total += size_t(got);
    }
    return Read::more;
}

Connection::Read Connection::read_records() {
    for (uint64_t total = 0; total < read_budget;) {
        bool drained;
        const ssize_t got = records_->read(fd_.get(), &drained);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return Read::drained;
        if (got <= 0) {
            fail(got ? strerrordesc_np(errno) : "closed by the peer");
            return Read::lost;
        }
        shared_.completions.moved += uint64_t(got);
        const uint8_t *bytes;
        for (size_t len; records_->next(&bytes, &len);)
            if (!consume(bytes, len)) return Read::lost;
        if (records_->corrupt()) {
            on_corrupt("it carried bytes that were changed, left out, repeated or forged");
            write_corrupt();
            return Read::lost;
        }
        if (drained) return Read::drained;
        total += uint64_t(got);
    }
    return Read::more;
}

bool Connection::on_corrupt(const char *reason) {
    failure_ = DTRAIN_ERR_CORRUPT;
    return fail(reason);
}

// Processes bytes as they arrive: the rest of a payload, headers, payloads, a part of a header.
bool Connection::consume(const uint8_t *bytes, size_t len) {
    while (len) {
        if (in_payload_left_) {
            const size_t part = size_t(std::min<uint64_t>(len, in_payload_left_));
            if (tp::IovCursor *into = payload_place()) {
                into->scatter(bytes, part);
            } else if (in_message_) {
                memcpy(in_message_->data + in_message_->arrived, bytes, part);
                in_message_->arrived += part;
            }
            bytes += part;
            len -= part;
            in_payload_left_ -= part;
            if (!in_payload_left_) payload_complete();
            continue;
        }
        const size_t part = std::min(len, sizeof in_header_ - in_header_have_);
        memcpy(in_header_ + in_header_have_, bytes, part);
        in_header_have_ += part;
        bytes += part;
        len -= part;
        if (in_header_have_ < sizeof in_header_) break;
        in_header_have_ = 0;
        in_.decode(in_header_);
        if (!on_frame()) return false;
    }
    return true;
}

// The rest of the receive that gets the payload; nullptr: it is kept, or dropped.
tp::IovCursor *Connection::payload_place() {
    tp::Receive *receive = in_transfer_ ? in_transfer_->receive : in_receive_;
    return receive ? &receive->into : nullptr;
}

// Describes where the kernel can write the payload directly.
int Connection::describe_payload(iovec *out) {
    if (!in_payload_left_) return 0;
    if (tp::IovCursor *into = payload_place()) return into->describe(out, in_payload_left_);
    if (!in_message_) return 0;
    out[0] = {in_message_->data + in_message_->arrived, in_payload_left_};
    return 1;
}

void Connection::payload_written(uint64_t len) {
    if (tp::IovCursor *into = payload_place())
        into->advance(len);
    else
        in_message_->arrived += len;
    in_payload_left_ -= len;
    if (!in_payload_left_) payload_complete();
}

void Connection::payload_complete() {
    if (tp::Receive *receive = std::exchange(in_receive_, nullptr)) {
        shared_.receives.complete(receive, in_.tag, in_.length);
    } else if (Transfer *transfer = std::exchange(in_transfer_, nullptr)) {
        if (!transfer->left) finish(transfer);
    } else if (tp::Message *message = std::exchange(in_message_, nullptr)) {
        if (message->taken_by) deliver(shared_, message, message->taken_by);
    }
}

bool Connection::on_frame() {
    if (!window_.refill(in_.credit)) return fail("protocol error: more credit than was used");
    switch (in_.kind) {
    case FrameKind::eager: return on_eager();
    case FrameKind::announce: return on_announce();
    case FrameKind::grant: return on_grant();
    case FrameKind::data: return on_data();
    case FrameKind::withdraw: return on_withdraw();
    case FrameKind::credit: return true;
    case FrameKind::corrupt:
        if (!records_) break; // anybody may have written it
        return on_corrupt("the peer got bytes that were changed, left out, repeated or forged");
    }
    return fail("protocol error: unknown frame");
}

bool Connection::on_eager() {
    if (in_.length > eager_limit || !window_.take(in_.length))
        return fail("protocol error: a message larger than the window allows");
    in_payload_left_ = in_.length;
    if ((in_receive_ = shared_.receives.match(in_.tag))) {
        give_credit(in_.length);
    } else {
        in_message_ = shared_.receives.keep(in_.tag, in_.length, this);
        if (!in_message_) return starve();
    }
    if (!in_payload_left_) payload_complete();
    return true;
}

bool Connection::on_announce() {
    if (in_.length > message_limit || !rendezvous_.may_announce())
        return fail("protocol error: an announcement that exceeds the limits");
    if (tp::Receive *receive = shared_.receives.match(in_.tag)) {
        grant(receive, in_.tag, in_.length, in_.id);
        return true;
    }
    if (rendezvous_.keep(shared_.receives, in_.tag, in_.length, in_.id, this)) return true;
    return starve();
}

void Connection::grant(tp::Receive *receive, uint64_t message_tag, uint64_t length,
                       uint32_t send_id) {
    const uint64_t granted = std::min(length, receive->capacity);
    Frame frame{FrameKind::grant, 0, 0, granted, send_id, 0};
    if (granted) {
        Transfer *transfer = shared_.transfers.get();
        if (!transfer || !transfers_.insert(transfer, &frame.peer_id)) {
            if (transfer) shared_.transfers.put(transfer);
            starve();
            return shared_.receives.fail(receive, DTRAIN_ERR_NO_MEMORY);
        }
        receive->into.truncate(granted);
        *transfer = {receive, message_tag, length, granted, frame.peer_id, send_id};
    } else {
        shared_.receives.complete(receive, message_tag, length);
    }
    control(frame);
}

bool Connection::on_grant() {
    Send *send = rendezvous_.find(in_.id);
    if (!send) return true; // withdrawn meanwhile
    if (in_.length > send->length)
        return fail("protocol error: a grant of more bytes than announced");
    rendezvous_.end(send);
    send->peer_id = in_.peer_id;
    send->from.truncate(in_.length);
    if (in_.length)
        streams_.push_back(send);
    else
        finish(send, DTRAIN_OK);
    return true;
}

bool Connection::on_data() {
    Transfer *transfer = transfers_.find(in_.id);
    if (!transfer || !in_.length || in_.length > data_limit || in_.length > transfer->left)
        return fail("protocol error: data that was not requested");
    transfer->left -= in_.length;
    in_payload_left_ = in_.length;
    in_transfer_ = transfer;
    return true;
}

bool Connection::on_withdraw() {
    const uint32_t id = in_.id;
    if (Transfer *t = transfers_.find_if([id](const Transfer &x) { return x.send_id == id; })) {
        finish(t, DTRAIN_ERR_PEER);
        return true;
    }
    if (tp::Message *message = shared_.receives.take_announced(this, id)) {
        rendezvous_.taken();
        shared_.receives.release(message);
    }
    return true;
}

void Connection::finish(Transfer *transfer, dtrain_status_t failure) {
    if (tp::Receive *receive = transfer->receive; receive && failure == DTRAIN_OK)
        shared_.receives.complete(receive, transfer->tag, transfer->length);
    else if (receive)
        shared_.receives.fail(receive, failure);
    transfers_.remove(transfer->id);
    shared_.transfers.put(transfer);
}

// Data that still arrives for them is dropped, so that the connection can serve the others.
void Connection::withdraw_receives(uint64_t cookie) {
    const auto is_it = [cookie](const tp::Receive *r) { return r && r->cookie == cookie; };
    if (is_it(in_receive_))
        shared_.receives.fail(std::exchange(in_receive_, nullptr), DTRAIN_ERR_CANCELED);
    if (in_message_ && is_it(in_message_->taken_by)) {
        shared_.receives.fail(in_message_->taken_by, DTRAIN_ERR_CANCELED);
        drop_arriving();
    }
    const auto goes_there = [&](const Transfer &t) { return is_it(t.receive); };
    while (Transfer *transfer = transfers_.find_if(goes_there))
        shared_.receives.fail(std::exchange(transfer->receive, nullptr), DTRAIN_ERR_CANCELED);
}

// The rest of the message being kept is no longer wanted.
void Connection::drop_arriving() {
    tp::Message *message = std::exchange(in_message_, nullptr);
    give_credit(message->length);
    shared_.receives.release(message);
}

bool Connection::fail(const char *reason) {
    broken_ = true;
    reason_ = reason;
    return false;
}

bool Connection::starve() {
    failure_ = DTRAIN_ERR_NO_MEMORY;
    shared_.attention = true;
    return fail("out of memory");
}

} // namespace dtrain::tcp
