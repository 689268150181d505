// Requests that keep room for the rows of pushes of several requests.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

namespace dtrain::ps {

void ServerTable::keep_rows(const RequestHeader &header, const void *payload,
                            Answered::Entry &entry, Responses &out) {
    const Verdict verdict = may_push(header);
    if (verdict == Verdict::wait) return hold(header, entry);
    // If the worker may not push at all, the push itself gets the error.
    const bool takes = verdict == Verdict::go;
    const auto *keys = static_cast<const uint64_t *>(payload);
    finish(header, entry, takes ? take_room(header, keys) : Answer{}, out);
}

ServerTable::Answer ServerTable::take_room(const RequestHeader &header, const uint64_t *keys) {
    auto &rooms = members_[header.worker].rooms;
    auto found = rooms.find(header.argument);
    if (found == rooms.end()) {
        if (rooms.size() >= most_kept)
            return {Reason::window, {header.argument, rooms.rbegin()->first}};
        found = rooms.try_emplace(header.argument).first;
        if (collects(identity_.params)) found->second.sum = sum_of(header);
        rows_->begin_keeping(found->second);
    }
    return after_rows(rows_->keep(found->second, keys, header.count));
}

void ServerTable::end_keeping(Member &member, uint64_t push) {
    const auto found = member.rooms.find(push);
    if (found == member.rooms.end()) return;
    rows_->end_keeping(found->second);
    member.rooms.erase(found);
}

void ServerTable::end_keeping(Member &member) {
    for (const auto &[push, room] : member.rooms) rows_->end_keeping(room);
    member.rooms.clear();
}

} // namespace dtrain::ps
