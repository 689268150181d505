// Starts, cuts, abandons and completes operations, and distributes events to the channels.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client.h"

#include "device/kernels.h"
#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"
#include "ps/placement/placement_map.h"
#include "ps/table/rules.h"
#include "ps/table/table_wire.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dtrain::ps {
namespace {

bool fused(RequestKind kind) {
    return has_trait(kind, Trait::pushes) && has_trait(kind, Trait::receives);
}

uint64_t argument_of(const Transfer &transfer, RequestKind kind) {
    if (has_trait(kind, Trait::pushes)) return std::bit_cast<uint64_t>(transfer.weight);
    const bool pulls = kind == RequestKind::pull || kind == RequestKind::pull_rows;
    return pulls ? transfer.min_version : transfer.argument;
}

} // namespace

Piece ClientTable::clock_piece() const {
    const double counts = weight > 0 ? weight : pushed ? 1 : 0;
    return {.kind = RequestKind::clock,
            .clock = clock,
            .flags = uint16_t(weight > 0 ? weighted : 0),
            .argument = takes_weights(params) ? std::bit_cast<uint64_t>(counts) : 0};
}

uint64_t ClientTable::told() const {
    uint64_t least = UINT64_MAX;
    for (const auto &channel : channels) least = std::min(least, channel->told());
    return least;
}

void ClientTable::end_clock() {
    clock = std::max(clock + 1, told());
    pushed = false;
    weight = 0;
}

void ClientTable::meet(const TableParams &mode, uint64_t at) {
    take_mode(mode_bits(mode), params);
    clock = at;
}

void ClientTable::catch_up() {
    if (!pushed) clock = std::max(clock, told());
}

void settle_requests(Transfer &transfer, uint64_t count) {
    transfer.requests -= count;
    if (transfer.requests > 0) return;
    auto &list = transfer.table->transfers;
    list[transfer.place] = list.back();
    list[transfer.place]->place = transfer.place;
    list.pop_back();
    if (transfer.version == UINT64_MAX) transfer.version = 0;
    if (transfer.status != DTRAIN_OK) tell_who_applied(transfer);
    const bool counted = transfer.status == DTRAIN_OK || transfer.kind == RequestKind::set_mode;
    if (counted && transfer.total_p != nullptr) *transfer.total_p = transfer.total;
    transfer.done(&transfer);
}

void fail_transfer(Transfer &transfer, Status status, int32_t server, const char *text) {
    if (transfer.status != DTRAIN_OK) return;
    transfer.status = status;
    transfer.server = server;
    transfer.text = text;
}

Client::Client(const Config &config, Wire &wire)
    : config_(config), lost_(config.servers),
      context_(new ChannelContext{wire, config.worker, config.retry_ns,
                                  SendScheduler(config.servers, config.bound)}) {}

Client::~Client() = default;

void Client::use_priorities() { context_->scheduler.use(); }

Status Client::open(const std::string &name, const TableParams &params, ClientTable *&table_p,
                    std::string_view proofs) {
    if (next_table_ == max_tables)
        return fail(DTRAIN_ERR_LIMIT,
                    "table_create \"%s\": the job has already created %u tables, the maximum",
                    name.c_str(), max_tables);
    auto table = std::make_unique<ClientTable>(
        ClientTable{.name = name,
                    .params = params,
                    .partition = make_partition(params, config_.servers),
                    .key_partition = make_key_partition(params, config_.servers)});
    table->row_bytes = params.dim * device::dtype_size(params.dtype);
    table->chunk = config_.chunk;
    table->id = next_table_++;
    table->create_payload = encode_table(params, name, proofs);
    for (uint32_t s = 0; s < config_.servers; ++s)
        table->channels.push_back(std::make_unique<RequestChannel>(*table, s, *context_));
    table_p = table.get();
    tables_.push_back(std::move(table));
    return DTRAIN_OK;
}

std::map<std::string, Placement> Client::placements() const {
    std::map<std::string, Placement> all;
    for (const auto &table : tables_) {
        if (table->destroyed) continue;
        Placement &placement = all[table->name] = table->params.placement;
        placement.among = placement.servers_of(config_.servers);
    }
    return all;
}

template <class F> void Client::for_each_part(const Transfer &transfer, F &&f) {
    const ClientTable &table = *transfer.table;
    if (transfer.rows == nullptr) return table.partition.for_each_part(transfer.range, f);
    for (uint32_t s = 0; s < table.channels.size(); ++s)
        if (const Range &part = transfer.rows->part(s); part.count > 0) f(s, part);
}

bool Client::reaches_lost_server(Transfer &transfer) {
    if (!any_lost_) return false;
    auto lives = [](const std::string &why) { return why.empty(); };
    if (transfer.kind == RequestKind::discard && std::any_of(lost_.begin(), lost_.end(), lives))
        return false; // lost servers hold nothing to discard
    auto check = [&](uint32_t server, const Range &) {
        if (lost_[server].empty()) return;
        fail_transfer(transfer, DTRAIN_ERR_PEER, static_cast<int32_t>(server),
                      lost_[server].c_str());
    };
    if (whole_table(transfer))
        for (uint32_t s = 0; s < config_.servers; ++s) check(s, {});
    else
        for_each_part(transfer, check);
    return transfer.status != DTRAIN_OK;
}

bool Client::whole_table(const Transfer &transfer) {
    bool clocks = collects(transfer.table->params) && fused(transfer.kind);
    return !has_trait(transfer.kind, Trait::ranged) || clocks;
}

void Client::cut(Transfer &transfer) const {
    const Item item = item_of(transfer.table->params, transfer.kind, transfer.argument);
    const uint64_t items = item.bytes > 0 ? config_.chunk / item.bytes : 0;
    transfer.item = item;
    transfer.chunk = transfer.rows != nullptr ? transfer.rows->rows_per_request()
                                              : std::max<uint64_t>(items, 1) * item.elements;
}

bool Client::keeps_room_first(const Transfer &transfer) {
    if (transfer.rows == nullptr) return false;
    uint64_t requests = 0;
    bool limited = false;
    for_each_part(transfer, [&](uint32_t server, const Range &part) {
        requests += chunks_of(part.count, transfer.chunk);
        limited |= transfer.table->channels[server]->limited();
    });
    return limited && requests > 1;
}

void Client::start(Transfer &transfer, int64_t now) {
    ClientTable &table = *transfer.table;
    cut(transfer);
    bool whole = whole_table(transfer);
    const bool pushes = has_trait(transfer.kind, Trait::pushes);
    if (pushes && table.pushed && table.weight != transfer.weight)
        fail_transfer(
            transfer, DTRAIN_ERR_INVALID, -1,
            ("table \"" + table.name + "\": an earlier push in this clock has another weight")
                .c_str());
    if (transfer.status != DTRAIN_OK || reaches_lost_server(transfer) ||
        (!whole && transfer.range.count == 0)) {
        if (transfer.version == UINT64_MAX) transfer.version = 0;
        return transfer.done(&transfer);
    }
    transfer.place = table.transfers.size();
    table.transfers.push_back(&transfer);
    const bool keeps = pushes && keeps_room_first(transfer);
    auto add_parts = [&](RequestKind kind, uint64_t clock) {
        for_each_part(transfer, [&](uint32_t server, const Range &part) {
            if (part.count == 0) return;
            table.channels[server]->add({.transfer = &transfer,
                                         .kind = kind,
                                         .range = part,
                                         .clock = clock,
                                         .argument = argument_of(transfer, kind),
                                         .waits = keeps && has_trait(kind, Trait::pushes)});
        });
    };
    const bool of_files = has_trait(transfer.kind, Trait::files); // range.first is an id then
    uint64_t clock = table.clock;
    table.pushed |= pushes;
    if (pushes) table.weight = transfer.weight;
    if (!whole)
        add_parts(transfer.kind, clock);
    else if (!fused(transfer.kind) && transfer.kind != RequestKind::clock)
        for (auto &channel : table.channels)
            channel->add({.transfer = &transfer,
                          .kind = transfer.kind,
                          .range = {of_files ? transfer.range.first : 0, 0},
                          .clock = clock,
                          .pushes = transfer.kind == RequestKind::set_mode ? table.changes : 0,
                          .flags = transfer.flags,
                          .argument = transfer.argument});
    else {
        bool rows = transfer.rows != nullptr;
        if (fused(transfer.kind)) // the table collects pushes: send push, clock, pull
            add_parts(rows ? RequestKind::push_rows : RequestKind::push, clock);
        Piece end = table.clock_piece();
        end.transfer = &transfer;
        for (auto &channel : table.channels) channel->add_clock(end);
        table.end_clock();
        if (fused(transfer.kind))
            add_parts(rows ? RequestKind::pull_rows : RequestKind::pull, table.clock);
    }
    for (auto &channel : table.channels) channel->pump(now);
}

void Client::abandon(Transfer &transfer, Status status, const char *text) {
    fail_transfer(transfer, status, -1, text);
    uint64_t settled = 1;
    ++transfer.requests; // keeps it from completing before the last channel is done
    for (auto &channel : transfer.table->channels) {
        settled += channel->abandon(transfer);
        (void)channel->take_refusal(transfer); // what other servers did with it is unknown
    }
    settle_requests(transfer, settled);
}

void Client::abandon_all(Status status, const char *text) {
    for (auto &table : tables_) {
        auto in_flight = table->transfers; // a copy, since completions change the list
        for (Transfer *transfer : in_flight) abandon(*transfer, status, text);
    }
}

int32_t Client::first_unanswered(const Transfer &transfer) {
    const auto &channels = transfer.table->channels;
    auto its = [&](const auto &channel) { return channel->carries(transfer); };
    auto found = std::find_if(channels.begin(), channels.end(), its);
    return found != channels.end() ? static_cast<int32_t>(found - channels.begin()) : -1;
}

void Client::destroy(ClientTable *table, int64_t now, bool failed) {
    auto in_flight = table->transfers; // a copy, since completions change the list
    for (Transfer *transfer : in_flight)
        abandon(*transfer, DTRAIN_ERR_CANCELED, "the table was destroyed during the operation");
    table->destroyed = true;
    for (auto &channel : table->channels) {
        channel->add({.kind = RequestKind::destroy, .flags = uint16_t(failed ? gives_up : 0)});
        channel->pump(now);
    }
    sweep();
}

bool Client::on_response(Outgoing &request, const ResponseHeader &header, uint64_t payload_bytes,
                         int64_t now) {
    bool taken = request.channel->on_response(request, header, payload_bytes, now);
    if (request.channel->table().destroyed) sweep();
    return taken;
}

void Client::on_packed_answer(uint32_t server, const ResponseHeader &header, const void *payload,
                              uint64_t bytes, int64_t now) {
    auto before = [](const std::unique_ptr<ClientTable> &table, uint32_t id) {
        return table->id < id;
    };
    auto table = std::lower_bound(tables_.begin(), tables_.end(), header.table, before);
    if (table == tables_.end() || (*table)->id != header.table || server >= config_.servers) return;
    Outgoing *request = (*table)->channels[server]->packed_request(header.sequence);
    if (request == nullptr) return; // already answered
    if (bytes <= request->answer_bytes && bytes > 0) std::memcpy(request->answer, payload, bytes);
    on_response(*request, header, bytes, now);
}

void Client::on_fragment(Outgoing &request, uint64_t bytes, int64_t now) {
    request.channel->on_fragment(request, bytes, now);
    if (request.channel->table().destroyed) sweep();
}

void Client::on_sent(Outgoing &request, int64_t now) {
    request.channel->on_sent(request);
    request.channel->pump(now);
    if (request.channel->table().destroyed) sweep();
}

void Client::on_withdrawn(Outgoing &request, int64_t now) {
    // May be called from within withdraw(), so no sweep() here.
    request.channel->on_withdrawn(request, now);
}

void Client::on_server_lost(uint32_t server, const char *text) {
    lost_[server] = text;
    any_lost_ = true;
    for (auto &table : tables_) {
        RequestChannel &channel = *table->channels[server];
        auto in_flight = table->transfers; // a copy, since completions change the list
        for (Transfer *transfer : in_flight) {
            if (!channel.carries(*transfer)) continue;
            fail_transfer(*transfer, DTRAIN_ERR_PEER, static_cast<int32_t>(server), text);
            abandon(*transfer, DTRAIN_ERR_PEER, text);
        }
        channel.close();
    }
    sweep();
}

void Client::on_timer(int64_t now) {
    context_->next_timer = INT64_MAX;
    sweep();
    for (auto &table : tables_)
        for (auto &channel : table->channels)
            if (channel->next_timer() <= now)
                channel->on_timer(now);
            else
                context_->next_timer = std::min(context_->next_timer, channel->next_timer());
}

int64_t Client::next_timer() const { return context_->next_timer; }

bool Client::idle() const { return context_->busy == 0; }

bool Client::has_transfers() const {
    return std::ranges::any_of(tables_,
                               [](const auto &table) { return !table->transfers.empty(); });
}

void Client::sweep() {
    auto idle = [](const std::unique_ptr<RequestChannel> &channel) { return channel->idle(); };
    std::erase_if(tables_, [&](const auto &table) {
        return table->destroyed && table->transfers.empty() &&
               std::all_of(table->channels.begin(), table->channels.end(), idle);
    });
}

} // namespace dtrain::ps
