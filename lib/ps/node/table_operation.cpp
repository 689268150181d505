// Starts, finishes and describes an operation on a table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/table_operation.h"

#include "ps/client/client_table.h"
#include "ps/node/node.h"

#include <cstdio>

namespace dtrain::ps {

TableOperation::TableOperation(engine::Request *completed, Node &node, Transfer &&transfer)
    : Operation(completed), node_(node), transfer_(std::move(transfer)) {
    completed->cancellable = this;
    transfer_.owner = this;
    transfer_.done = [](Transfer *done) {
        auto *operation = static_cast<TableOperation *>(done->owner);
        operation->done_ = true;
        operation->agent_->wake(operation); // the client is within a call, so finish later
    };
}

void TableOperation::start(engine::Agent &agent) {
    agent_ = &agent;
    begun_ns_ = agent.now();
    line_ns_ = begun_ns_ + 2 * second;
    if (agent.precedence().used()) [[unlikely]]
        node_.client().use_priorities();
    node_.client().start(transfer_, agent.now());
    node_.work_locally();
}

int TableOperation::advance(engine::Agent &agent) {
    if (!done_) return 0;
    bool receives = has_trait(transfer_.kind, Trait::receives);
    engine::Outcome outcome = {.status = transfer_.status, .peer = transfer_.server};
    if (transfer_.version != UINT64_MAX) outcome.version = transfer_.version;
    if (receives && transfer_.status == DTRAIN_OK) outcome.bytes = bytes();
    const std::string text = std::move(transfer_.text);
    agent.finish(this, outcome, text.c_str());
    return 1;
}

uint64_t TableOperation::bytes() const { return transfer_.item.bytes_of(transfer_.range.count); }

void TableOperation::fail(engine::Agent &, const engine::Outcome &outcome, const char *text) {
    if (done_) return;
    node_.client().abandon(transfer_, outcome.status, text);
    node_.work();
}

void TableOperation::describe(trace::Record &record) const {
    switch (transfer_.kind) {
    case RequestKind::push: record.name = "push"; break;
    case RequestKind::pull: record.name = "pull"; break;
    case RequestKind::push_pull: record.name = "push_pull"; break;
    case RequestKind::set: record.name = "set"; break;
    case RequestKind::clock: record.name = "clock"; break;
    case RequestKind::pull_state: record.name = "pull_state"; break;
    case RequestKind::set_state: record.name = "set_state"; break;
    case RequestKind::set_rate: record.name = "set_rate"; break;
    case RequestKind::set_updates: record.name = "set_updates"; break;
    case RequestKind::save: record.name = "save"; break;
    case RequestKind::restore: record.name = "restore"; break;
    case RequestKind::adopt: record.name = "adopt"; break;
    case RequestKind::discard: record.name = "discard"; break;
    case RequestKind::set_mode: record.name = "set_mode"; break;
    case RequestKind::wait_ready: record.name = "wait_ready"; break;
    case RequestKind::push_rows: record.name = "push_rows"; break;
    case RequestKind::pull_rows: record.name = "pull_rows"; break;
    case RequestKind::push_pull_rows: record.name = "push_pull_rows"; break;
    case RequestKind::set_rows: record.name = "set_rows"; break;
    case RequestKind::erase_rows: record.name = "erase_rows"; break;
    case RequestKind::count_rows: record.name = "count_rows"; break;
    case RequestKind::pull_state_rows: record.name = "pull_state_rows"; break;
    case RequestKind::set_state_rows: record.name = "set_state_rows"; break;
    default: record.name = "table"; break; // create or destroy
    }
    const ClientTable &table = *transfer_.table;
    record.way = agent_->timeline().intern("table " + table.name);
    record.bytes = bytes();
    record.dtype = uint8_t(table.params.dtype);
}

// A worker that waits for the chief says so: after 2 s, then every 10 s.
void TableOperation::stalled(engine::Agent &agent) {
    if (transfer_.kind != RequestKind::wait_ready || done_ || agent.now() < line_ns_) return;
    line_ns_ += 10 * second;
    agent.log().write(DTRAIN_LOG_WARN,
                      "table \"%s\": waiting %.0f s for a worker to mark it as initialized "
                      "(dtrain_table_set_ready)",
                      transfer_.table->name.c_str(),
                      double(agent.now() - begun_ns_) / double(second));
}

void TableOperation::timed_out(engine::Agent &agent) {
    char text[error_text_size];
    const char *name = transfer_.table->name.c_str();
    if (transfer_.kind == RequestKind::wait_ready)
        std::snprintf(text, sizeof text,
                      "table \"%s\": timed out; no worker has marked it as initialized "
                      "(dtrain_table_set_ready)",
                      name);
    else if (const Transfer::Awaited &its = transfer_.awaited; its.told_ns > 0)
        std::snprintf(text, sizeof text,
                      "table \"%s\": timed out; %.1f s ago server %d waited for worker %llu, which "
                      "had ended %llu clocks",
                      name, double(agent.now() - its.told_ns) / double(second), its.server,
                      static_cast<unsigned long long>(its.numbers[0]),
                      static_cast<unsigned long long>(its.numbers[1]));
    else
        std::snprintf(text, sizeof text,
                      "table \"%s\": timed out; server %d did not answer, or waits for a worker's "
                      "clock",
                      name, Client::first_unanswered(transfer_));
    fail(agent, {.status = DTRAIN_ERR_TIMEOUT}, text);
}

} // namespace dtrain::ps
