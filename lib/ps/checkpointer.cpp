// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpointer.h"

#include "ps/archive.h"
#include "ps/client_table.h"
#include "ps/node.h"
#include "ps/part_heading.h"

#include <chrono>
#include <string>
#include <vector>

namespace dtrain::ps {

Checkpointer::Checkpointer(Node &node)
    : node_(node), folder_(std::string(node.session().options().text("checkpoint.directory")),
                           data::system_disk()),
      keep_(uint32_t(node.session().options().number("checkpoint.keep"))) {}

Status Checkpointer::check_folder() const {
    if (!folder_.path().empty()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG, "there is no folder for checkpoints: set the option "
                                   "checkpoint.directory, here and on all servers");
}

bool Checkpointer::due(uint64_t step, const Interval &interval) {
    if (interval.steps == 0 && interval.ns == 0) return true;
    if (!any_) note(step);
    const int64_t now = node_.agent().clock().now_ns();
    return (interval.steps > 0 && step >= last_step_ && step - last_step_ >= interval.steps) ||
           (interval.ns > 0 && now - last_ns_ >= interval.ns);
}

void Checkpointer::note(uint64_t step) {
    any_ = true;
    last_step_ = step;
    last_ns_ = node_.agent().clock().now_ns();
}

Status Checkpointer::run(std::span<ClientTable *const> tables, RequestKind kind, uint64_t step,
                         int64_t timeout_ns) {
    std::vector<engine::Request> requests(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
        Transfer transfer;
        transfer.kind = kind;
        transfer.table = tables[i];
        transfer.argument = step;
        node_.post(std::move(transfer), &requests[i], timeout_ns, false);
    }
    Status status = DTRAIN_OK;
    for (engine::Request &request : requests) {
        node_.agent().wait(request, INT64_MAX);
        if (status != DTRAIN_OK || request.outcome().status == DTRAIN_OK) continue;
        status = request.outcome().status;
        set_error_text(request.error());
    }
    return status;
}

Status Checkpointer::save(std::span<ClientTable *const> tables, uint64_t step,
                          const Interval &interval, int64_t timeout_ns, bool &saved) {
    saved = false;
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    const int64_t deadline_ns = node_.session().deadline(timeout_ns);
    std::unique_lock lock(mutex_, std::defer_lock);
    if (Status s = lock_until(deadline_ns, lock); s != DTRAIN_OK) return s;
    if (!due(step, interval)) return DTRAIN_OK;
    if (Status s = folder_.begin(step); s != DTRAIN_OK) return s;
    if (Status s = run(tables, RequestKind::save, step, node_.session().timeout_until(deadline_ns));
        s != DTRAIN_OK)
        return s;
    Manifest manifest = {.step = step, .tables = {}};
    for (const ClientTable *table : tables)
        manifest.tables.push_back({escaped(table->name), uint32_t(table->lanes.size())});
    if (Status s = folder_.complete(manifest); s != DTRAIN_OK) return s;
    saved = true;
    note(step);
    if (keep_ == 0 || folder_.remove_old(keep_) == DTRAIN_OK) return DTRAIN_OK;
    node_.agent().log().write(DTRAIN_LOG_WARN, "old checkpoints stay: %s", error_text());
    return DTRAIN_OK;
}

Status Checkpointer::lock_until(int64_t deadline_ns, std::unique_lock<std::timed_mutex> &lock) {
    const int64_t timeout_ns = node_.session().timeout_until(deadline_ns);
    if (timeout_ns < 0)
        lock.lock();
    else if (!lock.try_lock_for(std::chrono::nanoseconds(timeout_ns)))
        return fail(DTRAIN_ERR_TIMEOUT,
                    "another thread of this process saves or restores checkpoints, for longer than "
                    "this call waits");
    return DTRAIN_OK;
}

Status Checkpointer::restore(std::span<ClientTable *const> tables, int64_t deadline_ns,
                             uint64_t &step) {
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (Status s = lock_until(deadline_ns, lock); s != DTRAIN_OK) return s;
    uint64_t chosen = step;
    if (chosen == UINT64_MAX)
        if (Status s = folder_.latest(chosen); s != DTRAIN_OK) return s;
    // What is wrong at first sight is found before a table is changed.
    for (const ClientTable *table : tables)
        if (Status s = check_parts(folder_, chosen, table->name, table->params); s != DTRAIN_OK)
            return s;
    if (Status s = restore_all(tables, deadline_ns, chosen); s != DTRAIN_OK) return s;
    note(chosen);
    step = chosen;
    return DTRAIN_OK;
}

// No server takes anything over before all have read everything.
Status Checkpointer::restore_all(std::span<ClientTable *const> tables, int64_t deadline_ns,
                                 uint64_t step) {
    const cluster::Session &session = node_.session();
    Status status = run(tables, RequestKind::restore, step, session.timeout_until(deadline_ns));
    if (status == DTRAIN_OK) {
        status = run(tables, RequestKind::adopt, 0, session.timeout_until(deadline_ns));
        if (status == DTRAIN_OK) return status;
        (void)fail_within(status, "not every server has taken checkpoint %llu over, restore again",
                          static_cast<unsigned long long>(step));
    }
    const std::string why = error_text();
    run(tables, RequestKind::discard, 0,
        session.goodbye_ns); // a worker that dies here is enough, too
    set_error_text(why.c_str());
    return status;
}

Status Checkpointer::latest(uint64_t &step) {
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    return folder_.latest(step);
}

} // namespace dtrain::ps
