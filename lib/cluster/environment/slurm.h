// Slurm's steps: which processes they count, and where a step without PMI meets.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/environment/source.h"

#include <string>
#include <string_view>

namespace dtrain::cluster {

// Whether this process is a task of a step. Batch scripts and the shells of allocations have the
// variables of the whole allocation, but are one process.
bool in_slurm_step(const Variables &env);

// The first host of a list such as "gpu[03-05,9],login": "gpu03"; "" for a list that is none.
std::string first_host(std::string_view list);

// On the step's first host, where its task 0 runs, at a port computed from the job's and the step's
// numbers. False: the environment does not tell.
bool meet_in_slurm_step(const Variables &env, int32_t rank, Identity &out);

} // namespace dtrain::cluster
