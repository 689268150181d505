// Saves and restores tables on all servers, one call at a time.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/checkpointer.h"

#include "base/random.h"
#include "ps/checkpoint/archive.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/client/client_table.h"
#include "ps/node/node.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace dtrain::ps {
namespace {

// A wait for a checkpoint: how often it looks, and when it logs.
constexpr int64_t look_every_ns = 100 * ms, first_line_ns = 2 * second, next_line_ns = 10 * second;

std::vector<std::string> names_of(std::span<ClientTable *const> tables) {
    std::vector<std::string> names;
    for (const ClientTable *table : tables) names.push_back(table->name);
    return names;
}

} // namespace

Checkpointer::Checkpointer(Node &node)
    : node_(node), folder_(std::string(node.session().options().text("checkpoint.directory")),
                           data::system_disk()),
      keep_(uint32_t(node.session().options().number("checkpoint.keep"))),
      lineage_(node.session().job().id()) {}

Status Checkpointer::check_folder() const {
    if (!folder_.path().empty()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG, "there is no folder for checkpoints: set the option "
                                   "checkpoint.directory, here and on all servers");
}

bool Checkpointer::due(uint64_t step, const Interval &interval) {
    if (interval.steps == 0 && interval.ns == 0) return true;
    std::lock_guard known(known_);
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

Status Checkpointer::run(std::span<ClientTable *const> tables, RequestKind kind,
                         const Manifest &manifest, int64_t timeout_ns) {
    std::vector<engine::Request> requests(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) {
        Transfer transfer;
        transfer.kind = kind;
        transfer.table = tables[i];
        if (has_trait(kind, Trait::files)) {
            transfer.range.first = manifest.id;
            transfer.argument = manifest.step;
        }
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

Status Checkpointer::begin(std::span<ClientTable *const> tables, uint64_t step,
                           Manifest &manifest) {
    std::vector<Manifest> all;
    // The new one gets a number after those of all others, so that it is the newest.
    const Status listed = folder_.list(all);
    if (CheckpointFolder::is_unread(listed))
        return fail_within(listed, "not saved, since its place after the others is not known");
    if (listed != DTRAIN_OK)
        node_.agent().log().write(DTRAIN_LOG_WARN, "ignoring a checkpoint that cannot be read: %s",
                                  error_text());
    const Manifest *replaced = nullptr;
    {
        std::lock_guard known(known_);
        if (Status s = lineage_.next(all, names_of(tables), step, folder_.folder(step), manifest,
                                     replaced);
            s != DTRAIN_OK)
            return s;
    }
    random_bytes(&manifest.id, sizeof manifest.id);
    if (replaced != nullptr)
        if (Status s = folder_.reopen(step); s != DTRAIN_OK) return s;
    return folder_.begin(step, manifest.lineage);
}

Status Checkpointer::save(std::span<ClientTable *const> tables, uint64_t step,
                          const Interval &interval, int64_t timeout_ns, bool &saved) {
    saved = false;
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    const int64_t deadline_ns = node_.session().deadline(timeout_ns);
    Turn turn(*this);
    if (Status s = turn.take(deadline_ns); s != DTRAIN_OK) return s;
    if (!due(step, interval)) return DTRAIN_OK;
    Manifest manifest;
    if (Status s = begin(tables, step, manifest); s != DTRAIN_OK) return s;
    if (Status s =
            run(tables, RequestKind::save, manifest, node_.session().timeout_until(deadline_ns));
        s != DTRAIN_OK)
        return s;
    // A checkpoint becomes complete only if this process could restore it from its folder.
    for (const ClientTable *table : tables)
        if (Status s = add_parts(folder_, manifest, table->name, uint32_t(table->channels.size()),
                                 table->params);
            s != DTRAIN_OK)
            return s;
    if (Status s = folder_.complete(manifest); s != DTRAIN_OK) return s;
    saved = true;
    {
        std::lock_guard known(known_);
        note(step);
        lineage_.saved(manifest);
    }
    if (keep_ == 0 || folder_.remove_old(manifest.lineage, keep_, step) == DTRAIN_OK)
        return DTRAIN_OK;
    node_.agent().log().write(DTRAIN_LOG_WARN, "cannot remove old checkpoints: %s", error_text());
    return DTRAIN_OK;
}

// Does not use std::timed_mutex, which libtsan of GCC 12 does not support.
Status Checkpointer::Turn::take(int64_t deadline_ns) {
    const int64_t timeout_ns = owner_.node_.session().timeout_until(deadline_ns);
    const auto free = [this] { return !owner_.busy_; };
    std::unique_lock lock(owner_.mutex_);
    if (timeout_ns < 0)
        owner_.free_.wait(lock, free);
    else if (!owner_.free_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), free))
        return fail(DTRAIN_ERR_TIMEOUT,
                    "timed out waiting for another thread of this process, which saves or restores "
                    "checkpoints");
    mine_ = owner_.busy_ = true;
    return DTRAIN_OK;
}

Checkpointer::Turn::~Turn() {
    if (!mine_) return;
    {
        std::lock_guard lock(owner_.mutex_);
        owner_.busy_ = false;
    }
    owner_.free_.notify_one();
}

Status Checkpointer::choose(std::span<ClientTable *const> tables, uint64_t step, Manifest &chosen) {
    if (step != UINT64_MAX) return folder_.read(step, chosen);
    std::vector<Manifest> all;
    if (Status s = folder_.list(all); s != DTRAIN_OK) return s;
    const Manifest *found = nullptr;
    std::lock_guard known(known_);
    if (Status s = lineage_.newest(all, names_of(tables), found); s != DTRAIN_OK)
        return fail_within(s, "%s", folder_.path().c_str());
    chosen = *found;
    return DTRAIN_OK;
}

Status Checkpointer::restore(std::span<ClientTable *const> tables, int64_t deadline_ns,
                             uint64_t &step, Lineage::Point *point) {
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    Turn turn(*this);
    if (Status s = turn.take(deadline_ns); s != DTRAIN_OK) return s;
    Manifest chosen;
    if (Status s = choose(tables, step, chosen); s != DTRAIN_OK) return s;
    // Finds errors in the files' headings before any table is changed.
    for (const ClientTable *table : tables)
        if (Status s = check_parts(folder_, chosen, table->name, table->params); s != DTRAIN_OK)
            return s;
    if (Status s = restore_all(tables, deadline_ns, chosen); s != DTRAIN_OK) return s;
    std::vector<Manifest> all;
    (void)folder_.list(all); // checkpoints that cannot be read do not matter here
    std::lock_guard known(known_);
    const Lineage::Point reached = lineage_.restored(all, chosen, names_of(tables));
    if (point != nullptr) *point = reached;
    note(chosen.step);
    step = chosen.step;
    return DTRAIN_OK;
}

// No server takes over restored data before all servers have read all of it.
Status Checkpointer::restore_all(std::span<ClientTable *const> tables, int64_t deadline_ns,
                                 const Manifest &manifest) {
    const cluster::Session &session = node_.session();
    Status status = run(tables, RequestKind::restore, manifest, session.timeout_until(deadline_ns));
    if (status == DTRAIN_OK) {
        status = run(tables, RequestKind::adopt, manifest, session.timeout_until(deadline_ns));
        if (status == DTRAIN_OK) return status;
        (void)fail_within(status, "not every server has taken over checkpoint %llu; restore again",
                          static_cast<unsigned long long>(manifest.step));
    }
    const std::string why = error_text();
    // If this worker dies before the discard, the servers drop the data when they notice that.
    run(tables, RequestKind::discard, manifest, session.goodbye_ns);
    set_error_text(why.c_str());
    return status;
}

void Checkpointer::take(const Lineage::Point &point, const ClientTable &table) {
    std::lock_guard known(known_);
    lineage_.take(point, table.name);
    note(point.step);
}

Status Checkpointer::newest(ClientTable *table, uint64_t &step) {
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    Manifest chosen;
    if (Status s = choose({&table, 1}, UINT64_MAX, chosen); s != DTRAIN_OK) return s;
    step = chosen.step;
    return DTRAIN_OK;
}

// A call that follows another one for the same checkpoint at once, with a short timeout each, waits
// on: the log and the error count from the first of them.
void Checkpointer::Waiting::begin(uint64_t step, int64_t now_ns) {
    if (step == after && now_ns - looked_ns < second) return;
    *this = {.after = step, .begun_ns = now_ns, .line_ns = now_ns + first_line_ns};
}

bool Checkpointer::Waiting::due(int64_t now_ns) {
    looked_ns = now_ns;
    if (now_ns < line_ns) return false;
    line_ns += next_line_ns;
    return true;
}

Status Checkpointer::wait(std::span<ClientTable *const> tables, uint64_t after, int64_t deadline_ns,
                          uint64_t &step) {
    if (Status s = check_folder(); s != DTRAIN_OK) return s;
    Clock &clock = node_.agent().clock();
    const std::string awaited = "a checkpoint in " + folder_.path() +
                                (after == UINT64_MAX ? " with table \"" + tables[0]->name + "\""
                                                     : " newer than step " + std::to_string(after));
    for (bool first = true;; first = false) {
        Manifest chosen;
        const Status s = choose(tables, UINT64_MAX, chosen);
        if (s != DTRAIN_OK && s != DTRAIN_ERR_NOT_FOUND) return s;
        if (s == DTRAIN_OK && chosen.step != after) return step = chosen.step, DTRAIN_OK;
        const int64_t now_ns = clock.now_ns();
        std::unique_lock known(known_);
        if (first) waiting_.begin(after, now_ns);
        const bool line = waiting_.due(now_ns);
        const double waited = double(now_ns - waiting_.begun_ns) / double(second);
        known.unlock();
        if (line)
            node_.agent().log().write(DTRAIN_LOG_WARN, "waiting for %s: %.0f s", awaited.c_str(),
                                      waited);
        if (now_ns >= deadline_ns)
            return fail(DTRAIN_ERR_TIMEOUT, "waited %.1f s for %s", waited, awaited.c_str());
        std::this_thread::sleep_for(
            std::chrono::nanoseconds(std::min(look_every_ns, deadline_ns - now_ns)));
    }
}

} // namespace dtrain::ps
