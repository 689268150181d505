// What launchers of parallel programs tell each process: one row of a table each (launchers.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/variables.h"

#include <optional>

namespace dtrain::cluster {

// A process's rank and the number of processes, and which variable says so.
struct Launched {
    int32_t rank = 0, size = 1;
    std::string evidence; // "OMPI_COMM_WORLD_SIZE=2 says that this is rank 1 of 2 (Open MPI)"
};

// The answer of the first launcher that started more than one process, else of any launcher;
// nothing if there is none. DTRAIN_ERR_CONFIG if a launcher has set only some of its variables.
Status find_launched(const Variables &env, std::optional<Launched> &out);

// The rank among the processes of this host, according to the launcher; 0 of 1: unknown.
struct LocalRank {
    int32_t rank = 0, size = 1;
};
LocalRank find_local_rank(const Getenv &getenv);

} // namespace dtrain::cluster
