// How workers join and leave a table, or are lost.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include "ps/table/table_wire.h"

#include <algorithm>

namespace dtrain::ps {

void ServerTable::join(const RequestHeader &header, const std::string &name,
                       const TableParams &params, Responses &out) {
    Member &member = members_[header.worker];
    if (!member.present) return respond(header, {Reason::unknown_table, {header.table, 0}}, out);
    if (unmade()) return respond(header, refused_, out);
    if (member.joined) { // a repetition: it waits with the others, or its answer was lost
        if (joined_ == present_) respond(header, {}, out);
        return;
    }
    const uint32_t field = first_difference(params, identity_.params);
    joining_.push_back(header);
    // The error text names the worker that asked first.
    if (name != identity_.name || field != field_count)
        return refuse(Reason::mismatch, name != identity_.name ? name_field : field,
                      joining_.front().worker, out);
    member.joined = true;
    ++joined_;
    check_joined(out);
}

void ServerTable::check_joined(Responses &out) {
    if (joined_ != present_) return;
    for (const RequestHeader &header : joining_) respond(header, {}, out);
    joining_.clear();
}

void ServerTable::refuse(Status status, const char *text, Responses &out) {
    const Answer answer = told(status, text);
    refuse(answer.reason, answer.numbers[0], answer.numbers[1], out);
}

void ServerTable::refuse(Reason reason, uint64_t number0, uint64_t number1, Responses &out) {
    refused_ = {reason, {number0, number1}};
    shard_.reset();
    rows_.reset();
    bytes_ = 0;
    for (const RequestHeader &header : joining_) respond(header, refused_, out);
    joining_.clear();
}

void ServerTable::remove(uint32_t worker) {
    Member &member = members_[worker];
    member.present = false;
    --present_;
    joined_ -= member.joined;
    member.answered.reset();
    member.texts.clear();
    end_keeping(member);
    if (restores(worker)) drop_restore();
    auto its = [&](const RequestHeader &header) { return header.worker == worker; };
    auto waits = [&](const Waiting &waiting) { return its(waiting.header); };
    std::erase_if(parked_, waits);
    std::erase_if(held_, waits);
    std::erase_if(joining_, its);
    std::erase_if(meeting_, its);
}

TableReport ServerTable::report() const {
    TableReport report;
    report.name = identity_.name;
    report.bytes = bytes();
    if (!unmade()) report.updates = updates();
    for (const Member &member : members_) report.workers.push_back(member.counters);
    return report;
}

void ServerTable::leave(uint32_t worker, Responses &out) {
    if (!members_[worker].present) return;
    remove(worker);
    clocks_.leave(worker);
    if (unmade()) return;
    check_joined(out);
    settle(out);
    meet(out);
}

void ServerTable::lose(uint32_t worker, Responses &out) {
    if (!members_[worker].present) return;
    bool unfinished = joined_ != present_;
    remove(worker);
    members_[worker].lost = true;
    clocks_.lose(worker);
    if (unmade()) return;
    if (unfinished) return refuse(Reason::worker_lost, worker, 0, out);
    settle(out);
    meet(out);
}

} // namespace dtrain::ps
