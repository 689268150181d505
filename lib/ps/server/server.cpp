// Creates and drops tables, passes requests to them, and accounts for memory.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server.h"

#include "ps/placement/placement_map.h"
#include "ps/table/table_wire.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace dtrain::ps {

Server::Server(const Config &config)
    : config_(config), workers_(config.workers),
      peers_(config.workers, PeerMemory(config.peer_limit)), present_(config.workers) {}

Server::~Server() {
    tables_.clear();
    retire(std::move(stage_));
}

void Server::respond(uint32_t worker, const RequestHeader &header, Reason reason, uint64_t number0,
                     uint64_t number1, Responses &out) {
    Response &response = out.emplace_back();
    response.packed = (header.flags & packed_answer) != 0;
    response.worker = worker;
    response.header.kind = header.kind;
    response.header.reason = reason;
    response.header.table = header.table;
    response.header.server = config_.index;
    response.header.sequence = header.sequence;
    response.header.numbers[0] = number0;
    response.header.numbers[1] = number1;
}

void Server::prefetch(const RequestHeader &header, const void *payload, uint64_t bytes,
                      bool rows) const {
    constexpr uint64_t most = RowStore::few; // with more, the request itself has enough to fetch
    const uint64_t count = header.count;
    if (!prefetches(header.kind) || count == 0 || count > most) return;
    if (bytes < count * sizeof(uint64_t)) return;
    const auto found = tables_.find(header.table);
    if (found == tables_.end() || found->second == nullptr) return;
    uint64_t keys[most];
    std::memcpy(keys, payload, count * sizeof(uint64_t));
    found->second->prefetch(keys, count, rows);
}

void Server::on_request(uint32_t worker, const RequestHeader &header, const void *payload,
                        uint64_t bytes, Responses &out) {
    if (worker >= config_.workers || workers_[worker] != State::present) return;
    if (peers_[worker].full()) return; // it does not receive its answers; it will ask again
    Reason reason = check_request(header, bytes, worker);
    if (reason == Reason::bad_version)
        return respond(worker, header, reason, header.version, protocol_version, out);
    if (reason != Reason::none) return respond(worker, header, reason, header.worker, worker, out);
    if (header.kind == RequestKind::create) return create(header, payload, bytes, out);
    auto found = tables_.find(header.table);
    bool exists = found != tables_.end() && found->second != nullptr;
    if (header.kind == RequestKind::destroy) {
        if (exists) destroy(found->second, header, out);
        if (auto opening = openings_.find(header.table); opening != openings_.end())
            opening->second.early.push_back(header);
        return respond(worker, header, Reason::none, 0, 0, out); // also to a repetition
    }
    if (!exists) return respond(worker, header, Reason::unknown_table, header.table, 0, out);
    ServerTable &table = *found->second;
    if (config_.memory_limit > 0 && table.grows(header.kind)) table.set_room(memory_left());
    table.request(header, payload, bytes, out);
}

void Server::create(const RequestHeader &header, const void *payload, uint64_t bytes,
                    Responses &out) {
    uint32_t worker = header.worker;
    TableParams params;
    std::string name;
    uint32_t bad = field_count;
    std::string_view proofs;
    if (!decode_table(payload, bytes, params, name, bad, &proofs))
        return respond(worker, header, Reason::bad_size, bytes, sizeof(TableFields) + 1, out);
    if (header.table >= max_tables)
        return respond(worker, header, Reason::too_many_tables, header.table, max_tables, out);
    if (bad == field_count) bad = first_unfit_field(params, config_.workers);
    if (bad == field_count && !fits_servers(params, config_.servers)) bad = placement_field;
    if (bad != field_count) return respond(worker, header, Reason::bad_parameter, bad, 0, out);

    const uint8_t rights = config_.access == nullptr
                               ? uint8_t{Right::all}
                               : config_.access->rights({config_.job, worker, name}, proofs);
    if (!tables_.contains(header.table) && rights != 0 && opens(header, name, params)) return;
    auto [entry, fresh] = tables_.try_emplace(header.table);
    if (fresh) entry->second = make(header, name, params, rights, out);
    if (entry->second == nullptr)
        return respond(worker, header, Reason::unknown_table, header.table, 0, out);
    entry->second->join(header, name, params, rights, out);
}

std::unique_ptr<ServerTable> Server::make(const RequestHeader &header, const std::string &name,
                                          TableParams params, uint8_t rights, Responses &out,
                                          DeviceMade *device) {
    const dtrain_function_t *function = has_function(params) ? find_function(params) : nullptr;
    const bool lacks = has_function(params) && function == nullptr;
    const Part part = part_of(params);
    const uint64_t needed = Storage::bytes_needed(params, part, config_.workers);
    const uint64_t left = memory_left();
    const bool fits = needed <= left && !lacks && rights != 0;
    DeviceMade no_device{DTRAIN_ERR_UNSUPPORTED, "this server uses no accelerators", {}, {}};
    if (device == nullptr) device = &no_device;
    std::unique_ptr<Storage> storage;
    if (fits && is_on_device(params))
        storage = std::move(device->shard);
    else if (fits)
        storage = Storage::create(params, part, function, config_.workers);
    const bool made = storage != nullptr;
    const bool inherited = made && take_over(name, params, *storage);
    auto table = std::make_unique<ServerTable>(
        ServerTable::Identity{header.table, config_.index, config_.servers, config_.workers, name,
                              params, config_.memory_limit > 0, config_.copies_answers},
        make_key_partition(params, config_.servers, header.partition), part, std::move(storage),
        config_.archive, peers_.data());
    if (inherited)
        table->set_inherited();
    else if (params.placement.among > 0)
        table->set_lost();
    for (uint32_t w = 0; w < config_.workers; ++w) {
        if (workers_[w] == State::left) table->leave(w, out);
        if (workers_[w] == State::lost) table->lose(w, out);
    }
    if (rights == 0)
        table->refuse({Reason::no_right, {0, header.worker}}, out);
    else if (lacks)
        table->refuse(DTRAIN_ERR_NOT_FOUND, error_text(), out);
    else if (needed > left)
        table->refuse({Reason::memory_limit, {needed, left}}, out);
    else if (is_on_device(params) && device->status != DTRAIN_OK)
        table->refuse(device->status, device->why.c_str(), out);
    else if (!made)
        table->refuse({Reason::no_memory, {needed, 0}}, out);
    return table;
}

Part Server::part_of(const TableParams &params) const {
    return make_partition(params, config_.servers).part(config_.index);
}

std::map<std::string, LegacyPart> Server::legacy() const {
    std::map<std::string, LegacyPart> parts = inherited_; // those that nobody has opened yet
    for (const auto &[id, table] : tables_) {
        if (table == nullptr) continue;
        LegacyPart part = table->legacy();
        const bool has_values = part.image != nullptr;
        if (has_values || !parts.contains(table->name())) parts[table->name()] = std::move(part);
    }
    return parts;
}

bool Server::take_over(const std::string &name, const TableParams &params, Storage &storage) {
    auto found = inherited_.find(name);
    if (found == inherited_.end()) return false;
    LegacyPart &part = found->second;
    TableParams now = params;
    now.placement.among = params.placement.servers_of(config_.servers);
    if (part.image == nullptr || part.server != config_.index || !goes_on(part.params, now))
        return false;
    storage.adopt(std::move(*part.image));
    inherited_.erase(found);
    return true;
}

const LegacyPart *Server::inherited(const std::string &name) const {
    const auto found = inherited_.find(name);
    return found != inherited_.end() && found->second.image != nullptr ? &found->second : nullptr;
}

std::optional<LegacyPart> Server::take_inherited(const std::string &name) {
    auto entry = inherited_.extract(name);
    if (entry.empty()) return std::nullopt;
    return std::move(entry.mapped());
}

const dtrain_function_t *Server::find_function(TableParams &params) const {
    std::string names;
    const dtrain_function_t *function = nullptr;
    if (config_.functions != nullptr) function = config_.functions->find(params.function, names);
    if (function == nullptr) {
        (void)fail(DTRAIN_ERR_NOT_FOUND,
                   "it has no function \"%s\" (it has: %.100s): register it there "
                   "(dtrain_function_register), or name its shared object in the option "
                   "ps.functions",
                   params.function.c_str(), names.empty() ? "none" : names.c_str());
        return nullptr;
    }
    std::vector<FunctionState> states = states_of(*function);
    if (!may_keep(params, states)) {
        (void)fail(DTRAIN_ERR_NOT_FOUND,
                   "its function \"%s\" keeps state per row: give the table a row_length",
                   params.function.c_str());
        return nullptr;
    }
    params.states = std::move(states);
    return function;
}

void Server::destroy(std::unique_ptr<ServerTable> &table, const RequestHeader &header,
                     Responses &out) {
    if ((header.flags & gives_up) != 0) table->give_up(header.worker, out);
    leave_table(table, header.worker, out);
}

void Server::leave_table(std::unique_ptr<ServerTable> &table, uint32_t worker, Responses &out) {
    table->leave(worker, out);
    release_unused(table);
}

void Server::release_unused(std::unique_ptr<ServerTable> &table) {
    if (!table->unused()) return;
    if (table->has_values()) inherited_.erase(table->name()); // it has replaced what was kept
    if (std::optional<LegacyPart> part = table->take_back())
        inherited_.insert_or_assign(table->name(), std::move(*part));
    table.reset();
}

uint64_t Server::memory_used() const {
    uint64_t used = 0;
    for (const auto &[id, table] : tables_)
        if (table != nullptr) used += table->bytes();
    return used;
}

uint64_t Server::memory_left() const {
    if (config_.memory_limit == 0) return UINT64_MAX;
    return config_.memory_limit - std::min(memory_used(), config_.memory_limit);
}

ServerReport Server::report() const {
    ServerReport report;
    for (const auto &[id, table] : tables_)
        if (table != nullptr) report.tables.push_back(table->report());
    report.peers = peers_;
    return report;
}

void Server::on_archived(std::unique_ptr<ArchiveJob> &&job, Responses &out) {
    auto found = tables_.find(job->request.table);
    if (found == tables_.end() || found->second == nullptr) return;
    found->second->on_archived(std::move(job), out);
}

uint64_t Server::reserve(ArchiveJob &job, uint64_t bytes) {
    auto found = tables_.find(job.request.table);
    if (found == tables_.end() || found->second == nullptr) return 0;
    return found->second->reserve(job, std::min(bytes, memory_left()));
}

void Server::on_worker_left(uint32_t worker, Responses &out) {
    if (worker >= config_.workers || workers_[worker] != State::present) return;
    workers_[worker] = State::left;
    --present_;
    for (auto &[id, table] : tables_)
        if (table != nullptr) leave_table(table, worker, out);
}

void Server::on_worker_lost(uint32_t worker, Responses &out) {
    if (worker >= config_.workers || workers_[worker] != State::present) return;
    workers_[worker] = State::lost;
    --present_;
    for (auto &[id, table] : tables_) {
        if (table == nullptr) continue;
        table->lose(worker, out);
        release_unused(table);
    }
}

} // namespace dtrain::ps
