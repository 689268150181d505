// The next generation of an elastic job: its workers that stay, and newcomers.
// SPDX-License-Identifier: Apache-2.0
//
// A generation is a job of its own, with a session, a control plane and a communicator. The old one
// goes on beside it until its communicators are destroyed, so a reform that fails before the next
// one has formed changes nothing and can be repeated.
#pragma once
#include "cluster/session/session.h"
#include "collectives/communicator/communicator.h"
#include "ps/node/node.h"

#include <memory>

namespace dtrain::elastic {

struct Wish {
    int32_t smallest = 1, largest = 0; // number of workers; 0: no limit
    bool leaves = false;               // this worker is not in the next generation
    int64_t timeout_ns = 0;            // for everything; 0: option op.timeout; < 0: none
};

struct Generation {
    std::shared_ptr<cluster::Session> session; // nullptr if this worker leaves
    std::unique_ptr<collectives::Communicator> world;
    cluster::NextJob changes;
    ps::Legacy legacy; // for the node of this session
};

// What the caller's process has of the job's tables.
struct Tables {
    ps::Node *node;             // nullptr: none was opened in this generation
    const ps::Legacy &unopened; // then: what the last one has left
};

// Called by all living workers of the job, on a communicator that has all of them. Blocking. What a
// worker that leaves has of tables is then with workers that stay.
Status reform(collectives::Communicator &old, const Tables &tables,
              engine::Backgrounds &backgrounds, const Wish &wish, Generation &out);

// For a server that was told of the next generation: joins it, unless that does not form.
Status follow(ps::Node &old, engine::Backgrounds &backgrounds, const cluster::NextJob &next,
              Generation &out);

} // namespace dtrain::elastic
