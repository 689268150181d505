// What launchers of parallel programs say to each process: one row of a table each (launchers.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/environment/variables.h"

#include <optional>

namespace dtrain::cluster {

// Which of how many processes, and who says so.
struct Launched {
    int32_t rank = 0, size = 1;
    std::string evidence; // "OMPI_COMM_WORLD_SIZE=2 says that this is rank 1 of 2 (Open MPI)"
};

// What the first launcher says that started more than one process, else what any says; nothing when
// there is none. DTRAIN_ERR_CONFIG when one has told a part only.
Status find_launched(const Variables &env, std::optional<Launched> &out);

// Which of how many ranks of this host, as the launcher says; 0 of 1: it does not.
struct LocalRank {
    int32_t rank = 0, size = 1;
};
LocalRank find_local_rank(const Getenv &getenv);

} // namespace dtrain::cluster
