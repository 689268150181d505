// A table in the client: its parameters, its partition, and the channels to the servers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/client/client.h"
#include "ps/client/request_channel.h"
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
    KeyPartition key_partition;      // sparse table only
    uint64_t row_bytes = 0;          // sparse table only
    uint64_t chunk = 0;              // maximum bytes of values in one request
    uint64_t clock = 0;              // the worker's clock
    bool pushed = false;             // the worker has pushed in this clock
    double weight = 0;               // of these pushes; 0: not given
    std::string create_payload = {}; // parameters and name
    std::vector<std::unique_ptr<RequestChannel>> channels = {}; // by server
    std::vector<Transfer *> transfers = {}; // in flight; each stores its place here
    bool described = false;                 // params.states is set, from a server's answer
    bool destroyed = false;
    uint32_t changes = 0; // mode changes that were begun

    // The server's share of the elements or keys, 0 to 1.
    double share(uint32_t server) const;

    // QUORUM: a late worker jumps to the servers' clock, either when it ends a clock, or after a
    // pull if it has not pushed in its clock. It skips only clocks that are over on all servers, so
    // that no server waits for a worker that has skipped a clock.
    uint64_t told() const; // the lowest clock among the servers, as last reported
    void end_clock();
    Piece clock_piece() const; // for every channel
    void catch_up();           // after values were received
    // Sets the mode and the clock at which all workers have met.
    void meet(const TableParams &mode, uint64_t at);
};

// Settles this number of requests of the transfer; the last one completes it.
void settle_requests(Transfer &transfer, uint64_t count);
// If some servers have refused their parts of a push, adds to its text what each server has done.
void tell_who_applied(Transfer &transfer);
// Sets the outcome, unless an earlier failure is set.
void fail_transfer(Transfer &transfer, Status status, int32_t server, const char *text);

} // namespace dtrain::ps
