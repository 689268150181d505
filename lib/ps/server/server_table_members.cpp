// How workers join and leave a table, or are lost.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include "ps/table/table_wire.h"

#include <algorithm>

namespace dtrain::ps {

void ServerTable::join(const RequestHeader &header, const std::string &name,
                       const TableParams &params, uint8_t rights, Responses &out) {
    if (!members_.present(header.worker))
        return respond(header, {Reason::unknown_table, {header.table, 0}}, out);
    if (!made()) return respond(header, refused_, out);
    if (members_.joined(
            header.worker)) { // a repetition: it waits with the others, or its answer was lost
        if (members_.complete()) respond(header, {}, out);
        return;
    }
    const uint32_t field = first_difference(params, identity_.params);
    members_.ask(header);
    // The error text names the worker that asked first.
    if (name != identity_.name || field != field_count)
        return refuse({Reason::mismatch,
                       {name != identity_.name ? name_field : field, members_.first_asking()}},
                      out);
    if (rights == 0) return refuse({Reason::no_right, {0, header.worker}}, out);
    workers_[header.worker].rights = rights;
    creators_ += (rights & Right::create) != 0;
    members_.join(header.worker);
    answer_joined(out);
}

void ServerTable::answer_joined(Responses &out) {
    if (!members_.complete()) return;
    if (creators_ == 0 && !inherited_ && members_.count() > 0)
        return refuse({Reason::no_right, {Right::create, members_.first_asking()}}, out);
    for (const RequestHeader &header : members_.take_asking()) respond(header, {}, out);
}

void ServerTable::refuse(Status status, const char *text, Responses &out) {
    refuse(texts_.tell(status, text), out);
}

void ServerTable::refuse(const Answer &answer, Responses &out) {
    refused_ = answer;
    if (inherited_ && made()) kept_ = legacy();
    storage_.reset();
    for (const RequestHeader &header : members_.take_asking()) respond(header, refused_, out);
}

void ServerTable::forget(uint32_t worker) {
    workers_[worker].log.clear();
    workers_[worker].rooms.end_all(made() ? storage_->sparse() : nullptr);
    checkpoints_.leave(worker);
    waiting_.leave(worker);
    mode_change_.leave(worker);
}

TableReport ServerTable::report() const {
    TableReport report;
    report.name = identity_.name;
    report.bytes = bytes();
    if (made()) report.updates = storage_->updates();
    if (made()) report.device_bytes = storage_->device_bytes();
    for (const Worker &worker : workers_) report.workers.push_back(worker.counters);
    return report;
}

void ServerTable::leave(uint32_t worker, Responses &out) {
    if (!members_.present(worker)) return;
    members_.leave(worker);
    forget(worker);
    clocks_.leave(worker);
    if (!made()) return;
    answer_joined(out);
    settle(out);
    meet(out);
}

// Where it is not open yet, the others learn from the worker itself why it gives up.
void ServerTable::give_up(uint32_t worker, Responses &out) {
    opening_failed_ = true;
    if (!made() || !members_.present(worker) || !members_.complete()) return;
    members_.note_give_up(worker);
    lose(worker, out);
}

void ServerTable::lose(uint32_t worker, Responses &out) {
    if (!members_.present(worker)) return;
    const bool unfinished = !members_.complete();
    members_.lose(worker);
    forget(worker);
    clocks_.lose(worker);
    if (!made()) return;
    if (unfinished) return refuse({Reason::worker_lost, {worker, 0}}, out);
    settle(out);
    meet(out);
}

} // namespace dtrain::ps
