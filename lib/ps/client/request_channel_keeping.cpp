// Pushes that first reserve room for their rows on all servers that they go to, so that either all
// of a push is applied or nothing. This costs a round trip before the push.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"
#include "ps/client/request_channel.h"
#include "ps/client/row_batch.h"

#include <algorithm>

namespace dtrain::ps {

// A keep_rows request has only keys, so it takes more rows than the push.
uint64_t RequestChannel::chunk_of(const Piece &piece) const {
    if (piece.kind == RequestKind::keep_rows) return table_.chunk / sizeof(uint64_t);
    return piece.transfer->chunk;
}

void RequestChannel::add_keeping(Piece piece) {
    if (limited_) {
        piece.keeps = ++kept_;
        Piece asks = piece;
        asks.kind = RequestKind::keep_rows;
        asks.argument = piece.keeps;
        piece.transfer->asking += requests_of(asks);
        queue(asks);
    }
    queue(piece);
}

// After the last answer the channels of all servers may send the push.
void RequestChannel::note_room(const Slot &s, int64_t now) {
    if (s.transfer == nullptr || --s.transfer->asking > 0) return;
    for (const auto &channel : table_.channels)
        if (channel.get() != this) channel->pump(now); // the caller pumps this channel
}

void RequestChannel::drop_push(Transfer &transfer) {
    uint64_t dropped = 0, kept = 0, push = 0;
    auto its = [&](const Piece &piece) { return piece.transfer == &transfer && piece.waits; };
    for (const Piece &piece : queue_) {
        if (!its(piece)) continue;
        const uint64_t requests = requests_of(piece);
        dropped += requests;
        if (piece.kind == RequestKind::keep_rows) transfer.asking -= requests;
        if (piece.keeps != 0) kept += requests;
        push = piece.keeps;
        forget_pushes(piece);
    }
    if (dropped == 0) return;
    std::erase_if(queue_, its);
    refusals_.push_back({&transfer, Refused::whole});
    if (kept > 0) end_kept(push, kept);
    settle_requests(transfer, dropped); // the refused request is settled last
}

void RequestChannel::end_kept(uint64_t push, uint64_t requests) {
    const auto found = keeping_.find(push);
    if ((found->second -= requests) > 0) return;
    keeping_.erase(found);
    if (closed_) return;
    queue_.push_front({.kind = RequestKind::end_keeping, .argument = push});
    count_busy();
    look_at(0);
}

RequestChannel::Refused RequestChannel::take_refusal(const Transfer &transfer) {
    const auto has = [&](Refused how) {
        return std::any_of(refusals_.begin(), refusals_.end(), [&](const Refusal &refusal) {
            return refusal.transfer == &transfer && refusal.how == how;
        });
    };
    Refused how = Refused::no;
    for (const Refused each : {Refused::whole, Refused::in_part, Refused::lost})
        if (has(each)) how = each;
    std::erase_if(refusals_, [&](const Refusal &r) { return r.transfer == &transfer; });
    return how;
}

} // namespace dtrain::ps
