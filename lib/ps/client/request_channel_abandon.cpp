// How a channel abandons requests: of a canceled operation, or all when the server is lost.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/request_channel.h"

#include <algorithm>

namespace dtrain::ps {

bool RequestChannel::carries(const Transfer &transfer) const {
    auto its = [&](const auto &part) { return part.transfer == &transfer; };
    return std::any_of(queue_.begin(), queue_.end(), its) ||
           std::any_of(slots_.begin(), slots_.end(), its);
}

// The queued part of a push will never be sent, so the clock's count must not include it.
void RequestChannel::forget_pushes(const Piece &piece) {
    if (!has_trait(piece.kind, Trait::pushes)) return;
    auto ends_it = [&](const Piece &other) {
        return other.kind == RequestKind::clock && other.clock == piece.clock;
    };
    auto clock = std::find_if(queue_.begin(), queue_.end(), ends_it);
    uint32_t &count = clock == queue_.end() ? pushes_ : clock->pushes;
    count -= static_cast<uint32_t>(requests_of(piece));
}

uint64_t RequestChannel::abandon(Transfer &transfer) {
    uint64_t settled = 0, kept = 0, push = 0;
    for (Piece &piece : queue_) {
        if (piece.transfer != &transfer) continue;
        settled += requests_of(piece);
        if (piece.keeps != 0) {
            push = piece.keeps;
            kept += requests_of(piece);
        }
        forget_pushes(piece);
        if (!has_trait(piece.kind, Trait::ranged))
            piece.transfer = nullptr; // uses no memory of the caller, so it is still sent
    }
    std::erase_if(queue_, [&](const Piece &piece) { return piece.transfer == &transfer; });
    if (kept > 0) end_kept(push, kept);
    count_busy();
    for (Slot &s : slots_) {
        if (s.transfer != &transfer || s.state == State::withdrawing || s.state == State::ending)
            continue;
        if (has_trait(s.header.kind, Trait::ranged)) {
            withdraw(s);
        } else {
            s.transfer = nullptr;
            ++settled;
        }
    }
    return settled;
}

// An answer may come although the send does not end: a network card tells the sender by another
// way that it has read the memory.
void RequestChannel::withdraw(Slot &s) {
    s.state = s.state == State::answered ? State::ending : State::withdrawing;
    context_.wire.withdraw(server_, s);
}

void RequestChannel::on_withdrawn(Outgoing &request, int64_t now) {
    auto &s = static_cast<Slot &>(request);
    s.sends = 0;
    if (closed_ || s.state == State::ending) return settle(s);
    Transfer *transfer = s.transfer;
    RequestHeader &header = s.header;
    header.flags = has_trait(header.kind, Trait::pushes) ? counted_push : 0;
    header.kind = RequestKind::cancel;
    header.first = header.count = header.argument = 0;
    s.payload = s.answer = nullptr;
    s.payload_bytes = s.answer_bytes = 0;
    s.transfer = nullptr;
    s.attempts = 0;
    s.state = State::active;
    send(s, now);
    if (transfer != nullptr) settle_requests(*transfer, 1);
}

void RequestChannel::close() {
    closed_ = true;
    queue_.clear();
    count_busy();
    for (Slot &s : slots_)
        if (s.state == State::active || s.state == State::answered) withdraw(s);
}

} // namespace dtrain::ps
