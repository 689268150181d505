// Who am I: from the program's parameters, or from what the launcher put into the environment.
// SPDX-License-Identifier: Apache-2.0
//
// The first of these that is there:
//   1. the parameters (size > 0)
//   2. DTRAIN_SIZE, DTRAIN_RANK, DTRAIN_SERVERS, DTRAIN_ROLE (worker, server), DTRAIN_SERVER_INDEX,
//      DTRAIN_RENDEZVOUS; for worker 0 also DTRAIN_LISTEN_FD, a listening socket
//   3. torchrun: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. That port is the one of torch's own
//   store:
//      worker 0 listens at MASTER_PORT + 1.
//   4. TF_CONFIG: the chief (or master, or else worker 0) is rank 0, the (other) workers follow, a
//   ps is
//      a server, an evaluator does not join (DTRAIN_ERR_UNSUPPORTED). The ports belong to
//      TensorFlow: worker 0 listens at the next port above its own that no task on that host has.
//      The sparse form does not tell the number of workers: DTRAIN_SIZE must.
//   5. a job of one process
// A rendezvous in the parameters, then DTRAIN_RENDEZVOUS, replaces what 3 and 4 would give.
#pragma once
#include "base/status.h"
#include "cluster/identity.h"

#include <functional>

namespace dtrain::cluster {

struct IdentityRequest {
    std::string rendezvous; // "" or "env": from the environment
    Role role = Role::worker;
    int32_t size = 0;               // 0: all from the environment
    int32_t index = 0, servers = 0; // with size > 0
};

using Getenv = std::function<const char *(const char *)>; // NULL: not set

// DTRAIN_ERR_CONFIG naming the variable, or DTRAIN_ERR_INVALID for the parameters.
Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out);

// Which of how many ranks of this host, as the launcher says; 0 of 1: it does not.
struct LocalRank {
    int32_t rank = 0, size = 1;
};
LocalRank find_local_rank(const Getenv &getenv);

} // namespace dtrain::cluster
