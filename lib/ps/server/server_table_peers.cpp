// Limits the memory that a table's server holds for each worker: answers and waiting requests.
// SPDX-License-Identifier: Apache-2.0
//
// A worker over its limit gets an error instead of values that would need a copy. A request that
// would have to wait is dropped as if it had been lost; its sender repeats it, so it does not fail.
// Therefore no request that other workers wait for is refused.
#include "ps/server/server_table.h"

#include <algorithm>

namespace dtrain::ps {

bool ServerTable::copies(const RequestHeader &header) const {
    if (rows_ != nullptr) return true;
    if (header.kind != RequestKind::pull_state) return shard_->copies_values();
    StateArray array;
    return find_state(identity_.params, header.argument, array) && array.steps;
}

bool ServerTable::fits_limit(const RequestHeader &header) const {
    if (!has_trait(header.kind, Trait::receives) || !copies(header)) return true;
    const Item item = item_of(identity_.params, header.kind, header.argument);
    const uint64_t values = bytes_on_wire(identity_.params, header.kind, item, header.count);
    return peers_[header.worker].fits(rows_ != nullptr ? rows_->copy_bytes(values)
                                                       : shard_->copy_bytes(values));
}

ServerTable::Answer ServerTable::over_limit(uint32_t worker) const {
    return {Reason::peer_limit, {peers_[worker].held(), peers_[worker].limit()}};
}

void ServerTable::park(const RequestHeader &header, Answered::Entry &entry) {
    if (keep(parked_, header)) entry.progress = Progress::parked;
}

bool ServerTable::keep(std::vector<Waiting> &list, const RequestHeader &header) {
    PeerMemory &memory = peers_[header.worker];
    if (!memory.may_wait(sizeof(Waiting))) return false;
    list.push_back({header, Charge(memory, sizeof(Waiting))});
    return true;
}

void ServerTable::keep_text(const RequestHeader &header, Answered::Entry &entry) {
    Member &member = members_[header.worker];
    const uint64_t newest = member.answered->newest();
    std::erase_if(member.texts,
                  [&](const auto &text) { return text.first + request_window <= newest; });
    PeerMemory &memory = peers_[header.worker];
    if (memory.may_wait(told_->bytes())) {
        member.texts[header.sequence] = {told_, Charge(memory, told_->bytes())};
    } else {
        const Answer instead = over_limit(header.worker);
        entry.reason = instead.reason;
        std::copy_n(instead.numbers, 2, entry.numbers);
    }
}

} // namespace dtrain::ps
