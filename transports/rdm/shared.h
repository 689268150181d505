// The operations in progress, and the state that all connections of a device share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/id_table.h"
#include "common/pool.h"
#include "protocol/endpoint.h"
#include "protocol/shared.h"
#include "rdm/channel.h"

namespace dtrain::rdm {

using tp::DeviceId;

class Device;
using Endpoint = protocol::Endpoint<Device, Connection>;

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
    Endpoint *endpoint = nullptr;
    uint64_t cookie = 0, tag = 0, length = 0;
    uint64_t imm = 0;               // of a put
    uint32_t id = 0;                // of a bulk message, at its sender
    tp::Receive *receive = nullptr; // of a transfer: memory is the part that is fetched
    tp::Link<Job> link;
};
using JobList = tp::List<Job, &Job::link>;

// A message is cut between numbers (DTRAIN_TP_CAP_WORDS).
constexpr uint64_t whole_words(uint64_t bytes) { return bytes & ~uint64_t{7}; }

struct Shared : protocol::Shared {
    using protocol::Shared::Shared;

    Wire *wire = nullptr;
    uint64_t part_limit = 0; // bytes of a payload that fit in a packet,
    uint64_t copy_limit = 0; // and in a packet that the wire copies at once
    tp::IdTable<Channel> channels;
    tp::Pool<Job> jobs;
    uint64_t copied = 0; // bytes of payloads that arrived in packets
    bool waits = false;  // something could not go: the wire is busy, or memory is missing
};

} // namespace dtrain::rdm
