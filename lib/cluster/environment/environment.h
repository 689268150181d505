// Finds a process's place in the job: from the program's parameters, or from the environment that
// the launcher has set.
// SPDX-License-Identifier: Apache-2.0
//
// The first of these sources that names more than one process counts:
//   1. the parameters (size > 0), which may also say that there is only one process
//   2. DTRAIN_SIZE, DTRAIN_RANK, DTRAIN_SERVERS, DTRAIN_ROLE (worker, server), DTRAIN_SERVER_INDEX,
//      DTRAIN_RENDEZVOUS; for worker 0 also DTRAIN_LISTEN_FD, a listening socket. DTRAIN_SIZE=1
//      alone means a job of one process.
//   3. torchrun: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. That port belongs to torch's own
//      store: worker 0 listens at one of the next ports (rendezvous.h).
//   4. TF_CONFIG: the chief (or master, or else worker 0) is rank 0, the (other) workers follow, a
//      ps is a server, an evaluator does not join (DTRAIN_ERR_UNSUPPORTED). The ports belong to
//      TensorFlow: worker 0 listens at the next port above its own that no task on that host has.
//      The sparse form does not tell the number of workers: DTRAIN_SIZE must.
//   5. the launchers of launchers.cpp, which do not say where the processes meet:
//      DTRAIN_RENDEZVOUS, or MASTER_ADDR and MASTER_PORT, must. The last DTRAIN_SERVERS of the
//      processes are servers.
//   6. a job of one process
// A rendezvous in the parameters, then DTRAIN_RENDEZVOUS, replaces what 3 to 5 would give.
#pragma once
#include "base/status.h"
#include "cluster/environment/variables.h"
#include "cluster/host/identity.h"

namespace dtrain::cluster {

struct IdentityRequest {
    std::string rendezvous; // "" or "env": from the environment
    Role role = Role::worker;
    int32_t size = 0;               // 0: everything comes from the environment
    int32_t index = 0, servers = 0; // with size > 0
};

// DTRAIN_ERR_CONFIG naming the variable, or DTRAIN_ERR_INVALID for the parameters. A process that
// is one of several either joins them or gets an error: it never silently becomes a job of one.
Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out);

} // namespace dtrain::cluster
