// Pushes that keep room for their rows before they send any, so that the server applies all of one
// or nothing. SPDX-License-Identifier: Apache-2.0
#include "ps/client_table.h"
#include "ps/lane.h"
#include "ps/row_batch.h"

#include <algorithm>

namespace dtrain::ps {

// Of keys alone many go in a request.
uint64_t Lane::chunk_of(const Piece &piece) const {
    if (piece.kind == RequestKind::keep_rows) return table_.chunk / sizeof(uint64_t);
    return piece.transfer->chunk;
}

void Lane::add_keeping(Piece piece) {
    piece.keeps = ++kept_;
    Piece asks = piece;
    asks.kind = RequestKind::keep_rows;
    asks.argument = piece.keeps;
    queue(asks);
    queue(piece);
}

bool Lane::keeps_room(uint64_t push) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot &s) {
        return s.state != State::free && s.keeps == push && s.header.kind == RequestKind::keep_rows;
    });
}

// It has no room: the push is over here.
void Lane::refuse_kept(const Slot &s) {
    uint64_t dropped = 0;
    for (const Piece &piece : queue_) {
        if (piece.keeps != s.keeps) continue;
        dropped += requests_of(piece);
        forget_pushes(piece);
    }
    std::erase_if(queue_, [&](const Piece &piece) { return piece.keeps == s.keeps; });
    if (dropped == 0) return;
    end_kept(s.keeps, dropped);
    settle_requests(*s.transfer, dropped); // not the last: that is the slot's own
}

void Lane::end_kept(uint64_t push, uint64_t requests) {
    const auto found = keeping_.find(push);
    if ((found->second -= requests) > 0) return;
    keeping_.erase(found);
    if (closed_) return;
    queue_.push_front({.kind = RequestKind::end_keeping, .argument = push});
    count_busy();
    look_at(0);
}

Lane::Refused Lane::take_refusal(const Transfer &transfer) {
    auto its = [&](const Refusal &refusal) { return refusal.transfer == &transfer; };
    const auto found = std::find_if(refusals_.begin(), refusals_.end(), its);
    if (found == refusals_.end()) return Refused::no;
    const bool whole = std::all_of(refusals_.begin(), refusals_.end(),
                                   [&](const Refusal &r) { return !its(r) || r.all; });
    std::erase_if(refusals_, its);
    return whole ? Refused::whole : Refused::in_part;
}

} // namespace dtrain::ps
