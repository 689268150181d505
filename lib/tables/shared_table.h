// A table that all workers of a job have: this worker's part of it, and what the workers do with it
// together. Each call here is collective and blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "dtrain.h"
#include "ps/client/client_table.h"
#include "ps/node/node.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dtrain::tables {

struct SharedTable {
    std::shared_ptr<ps::Node> node;
    ps::ClientTable *table = nullptr; // owned by the node's client
    std::optional<uint64_t> restored; // step of the checkpoint restored at creation
};

// What one worker asks for.
struct Wish {
    const char *name = "";
    ps::TableParams params;
    Status own = DTRAIN_OK; // an error: this worker cannot take part; the reason is error_text()
    bool restores = false;  // the newest checkpoint, if there is one
};

// Either every worker creates the table, with the same parameters, or none does. out.node: set
// unless wish.own is an error.
Status create(collectives::Communicator &comm, const Wish &wish, SharedTable &out);

// The workers that change a table's consistency together.
struct Changers {
    collectives::Communicator &comm;
    bool rest = false; // only the surviving workers, after some were lost
};

// Whether the communicator has every worker of the table's job that was not lost.
bool has_all_survivors(const collectives::Communicator &comm, const SharedTable &table);

// All change the consistency, or none. own: DTRAIN_OK, or why this worker cannot take part (text in
// error_text()). It still meets the others, which would otherwise wait for it.
Status set_consistency(const Changers &changers, const SharedTable &table,
                       const dtrain_table_params_t &given, Status own, int64_t timeout_ns);

} // namespace dtrain::tables
