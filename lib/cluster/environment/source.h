// One kind of environment that tells a process its place in the job: a launcher, an operator, a
// cloud. Each is a file of this folder, and a row of sources.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "cluster/host/identity.h"
#include "cluster/host/variables.h"

#include <span>
#include <string>

namespace dtrain::cluster {

// This host's full name, with its domain, for a name that it has; "" if there is none.
using FullName = std::string(const std::string &host);
FullName full_name_of; // as the resolver has it, within a second

// What a process can know before it speaks to any other.
struct Surroundings {
    Variables env;
    FullName *full_name;
};

// What a source says.
struct Finding {
    Identity identity;
    bool evaluates = false; // this process is no member of the job, so `identity` says nothing
    // "OMPI_COMM_WORLD_SIZE=2 says that this is rank 1 of 2 (Open MPI)"; may be "".
    std::string evidence;
};

struct Source {
    const char *name;  // "torchrun"
    const char *reads; // the variables, for people
    const char *meets; // where the processes meet, for people
    // Whether the environment is of this kind.
    bool (*applies)(const Variables &env);
    // DTRAIN_ERR_CONFIG if it is, but says something impossible, or only a part.
    Status (*read)(const Surroundings &around, Role wanted, Finding &out);
    bool decides = false; // even if it says that there is only one process
};

// In the order in which they are asked.
std::span<const Source *const> sources();

// The addresses that several sources have in common: MASTER_ADDR and MASTER_PORT, whose port
// belongs to torch's own store.
Status meet_at_master(const Variables &env, Identity &out);
// The same for a port that another program occupies: `port` is its variable, and whose it is.
Status meet_beside(const Variables &env, const char *host, const char *port, const char *whose,
                   Identity &out);
// For worker 0 that is not told by which of its addresses the others reach it.
inline constexpr char any_host[] = "*";
// For hosts on which nothing but this job listens, so that the ports need not differ from
// another's.
inline constexpr uint32_t lone_seed = 7777;
// A meeting at `host`, at one of the ports that are computed from the seed, which must be equal for
// all processes of the job, and should differ from other jobs'. why: says in the error that all
// ports are taken where the seed is from.
void meet_at(const std::string &host, uint32_t seed, std::string why, Identity &out);
// "NAME=SIZE says that this is rank RANK of SIZE (WHO)"
std::string evidence_of(const char *name, int32_t rank, int32_t size, const char *who);
// Splits `launched` processes into workers and servers: the last DTRAIN_SERVERS are servers.
Status split_roles(const Variables &env, int32_t rank, int32_t size, const std::string &evidence,
                   Identity &out);

// For a source that knows only the rank: the number of processes, servers included, from
// DTRAIN_SIZE. The error names `evidence`.
Status size_from_dtrain(const Variables &env, const std::string &evidence, int32_t &out);

} // namespace dtrain::cluster
