// Opens tables in an accelerator's memory, and goes on with what waits for the accelerator.
// SPDX-License-Identifier: Apache-2.0
//
// Opening a device, loading its kernels and allocating its memory take long, so another thread does
// it. Who asks for the table meanwhile is asked again once it is there.
#include "ps/server/server.h"

#include <algorithm>
#include <new>
#include <utility>

namespace dtrain::ps {
namespace {

struct Wanted {
    accel::Domains *accelerators;
    int32_t device;
    Chores *chores;
    Log *log;
    std::string name;
    TableParams params;
    Part part;
    uint32_t workers;
};

// On a stage of its own, so that it neither waits for other tables nor holds them up.
Status make_on_device(const Wanted &wanted, DeviceMade &out) {
    accel::Domain *domain = nullptr;
    if (Status s = wanted.accelerators->find_device("cuda", wanted.device, domain); s != DTRAIN_OK)
        return fail_within(s, "its option ps.device is %d", wanted.device);
    if (Status s = DeviceStage::open(*domain, wanted.chores, out.stage); s != DTRAIN_OK) return s;
    return DeviceShard::create({out.stage, wanted.log}, wanted.name, wanted.params, wanted.part,
                               wanted.workers, out.shard);
}

} // namespace

bool Server::opens(const RequestHeader &header, const std::string &name,
                   const TableParams &params) {
    auto found = openings_.find(header.table);
    const bool fresh = found == openings_.end();
    if (fresh) {
        const uint64_t needed = Storage::bytes_needed(params, part_of(params), config_.workers);
        const bool can = config_.accelerators != nullptr && config_.chores != nullptr;
        if (!is_on_device(params) || !can || needed > memory_left()) return false;
        found =
            openings_.try_emplace(header.table, TableOpening{header, name, params, {}, {}}).first;
    }
    std::vector<RequestHeader> &early = found->second.early;
    const bool repeated = std::any_of(early.begin(), early.end(), [&](const RequestHeader &its) {
        return its.worker == header.worker && its.kind == header.kind;
    });
    if (!repeated) early.push_back(header);
    if (fresh) open_on_device(header.table);
    return true;
}

void Server::open_on_device(uint32_t table) {
    const TableOpening &opening = openings_.at(table);
    auto made = std::make_shared<DeviceMade>();
    const auto work = [made, wanted = Wanted{config_.accelerators, config_.device, config_.chores,
                                             config_.log, opening.name, opening.params,
                                             part_of(opening.params), config_.workers}] {
        try {
            made->status = make_on_device(wanted, *made);
        } catch (const std::bad_alloc &) {
            made->status = fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
        }
        if (made->status != DTRAIN_OK) made->why = error_text();
    };
    const auto done = [this, made, table] { openings_.at(table).made = std::move(*made); };
    if (const Status s = config_.chores->start(work, done); s != DTRAIN_OK) {
        *made = {.status = s, .why = error_text(), .stage = nullptr, .shard = nullptr};
        done();
    }
}

void Server::look_at_tables(Responses &out) {
    for (auto at = openings_.begin(); at != openings_.end();) {
        const uint32_t table = at->first;
        const bool made = at->second.made.has_value();
        ++at;
        if (made) end_opening(table, out);
    }
    if (stage_ != nullptr) stage_->go_on();
    for (auto &[id, table] : tables_)
        if (table != nullptr) table->look_at_device(out);
}

void Server::end_opening(uint32_t id, Responses &out) {
    TableOpening opening = std::move(openings_.extract(id).mapped());
    DeviceMade &made = *opening.made;
    if (made.shard != nullptr && stage_ == nullptr) stage_ = made.stage;
    if (made.shard != nullptr && stage_ != made.stage) made.shard->move_to(stage_);
    retire(std::move(made.stage));
    std::unique_ptr<ServerTable> &table = tables_[id];
    table = make(opening.first, opening.name, opening.params, Right::all, out, &made);
    for (const RequestHeader &header : opening.early) {
        if (header.kind == RequestKind::create)
            respond(header.worker, header, Reason::resend, 0, 0, out);
        else if (table != nullptr)
            destroy(table, header, out);
    }
}

// The accelerator's library may take long to close a queue.
void Server::retire(std::shared_ptr<DeviceStage> stage) {
    if (stage != nullptr && config_.chores != nullptr)
        (void)config_.chores->start([stage = std::move(stage)]() mutable { stage.reset(); },
                                    nullptr);
}

} // namespace dtrain::ps
