// The operations in progress, and the state that all connections of a device share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/id_table.h"
#include "common/match.h"
#include "rdm/channel.h"

struct dtrain_tp_ep;

namespace dtrain::rdm {

// The purpose of an operation of the wire.
struct Job : Operation {
    enum class Kind : uint8_t { message, transfer, put, get, part };
    Kind kind = Kind::message;
    bool canceled = false;   // withdrawn, but the wire still holds it
    bool broken_off = false; // a transfer that the wire was told to end
    bool bulk = false;       // a message that was announced
    bool begun = false;      // a message whose first part was sent; memory is the rest
    uint32_t parts = 0;      // number of its parts that the wire holds
    Job *whole = nullptr;    // the message to which this part belongs
    bool unwanted = false;   // in progress when the last endpoint was removed
    Connection *connection = nullptr;
    dtrain_tp_ep *endpoint = nullptr;
    uint64_t cookie = 0, tag = 0, length = 0;
    uint64_t imm = 0;               // of a put
    uint32_t id = 0;                // of a bulk message, at its sender
    tp::Receive *receive = nullptr; // of a transfer: memory is the part that is fetched
    tp::Link<Job> link;
};
using JobList = tp::List<Job, &Job::link>;

struct Shared {
    // The matcher is unlimited: each connection's window bounds what it can make us keep.
    explicit Shared(const dtrain_tp_host_t *table) : host(table), matcher(UINT64_MAX) {}

    const tp::Host host;
    Wire *wire = nullptr;
    uint64_t eager_limit = 0;
    uint64_t part_limit = 0; // bytes of a payload that fit in a packet,
    uint64_t copy_limit = 0; // and in a packet that the wire copies at once
    tp::IdTable<Channel> channels;
    tp::Matcher matcher;
    tp::Completions completions;
    tp::Pool<Job> jobs;
    uint64_t copied = 0;    // bytes of payloads that arrived in packets
    bool attention = false; // a connection is broken, or waits for the wire
};

} // namespace dtrain::rdm
