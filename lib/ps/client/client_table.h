// A table as its client sees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/client/client.h"
#include "ps/client/lane.h"
#include "ps/placement/key_partition.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

struct ClientTable {
    uint32_t id = 0;
    std::string name;
    TableParams params;
    Partition partition;
    KeyPartition key_partition;                    // of a sparse table
    uint64_t row_bytes = 0;                        // of a sparse table
    uint64_t chunk = 0;                            // most bytes of values in one request
    uint64_t clock = 0;                            // the worker's
    bool pushed = false;                           // in this clock
    double weight = 0;                             // of these pushes; 0: not said
    std::string create_payload = {};               // parameters and name
    std::vector<std::unique_ptr<Lane>> lanes = {}; // by server
    std::vector<Transfer *> transfers = {};        // in flight; each knows its place
    bool described = false; // a server has said what its function keeps: params.states
    bool destroyed = false;
    uint32_t changes = 0; // of mode, that were begun

    // Of its elements, or keys: 0 to 1.
    double share(uint32_t server) const;

    // QUORUM: a worker that is late goes on at the servers' clock, with the next one or in one in
    // which it has not pushed yet, once it has seen values of it. It skips only what is over on all
    // servers, so that none waits for a worker that has skipped.
    uint64_t told() const; // their clock: what the last of them has said
    void end_clock();
    Piece clock_piece() const; // of every lane
    void catch_up();           // values have come
    // All workers are at that clock, in the mode of params.
    void meet(const TableParams &mode, uint64_t at);
};

// That many requests of the transfer are settled; the last one completes it.
void settle_requests(Transfer &transfer, uint64_t count);
// Which servers have applied their parts of a push, where some have refused theirs: to its text.
void tell_who_applied(Transfer &transfer);
// Keeps the first failure.
void fail_transfer(Transfer &transfer, Status status, int32_t server, const char *text);

} // namespace dtrain::ps
