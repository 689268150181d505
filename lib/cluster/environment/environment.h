// Finds a process's place in the job: from the program's parameters, or from the environment that
// the launcher has set.
// SPDX-License-Identifier: Apache-2.0
//
// The parameters count first, and may also say that there is only one process; then the first
// source (sources.cpp) that names more than one process. A rendezvous in the parameters, then
// DTRAIN_RENDEZVOUS, replaces what the source gives. For worker 0, DTRAIN_LISTEN_FD may be a socket
// that listens at DTRAIN_RENDEZVOUS.
#pragma once
#include "base/status.h"
#include "cluster/environment/source.h"
#include "cluster/host/identity.h"

#include <string>
#include <vector>

namespace dtrain::cluster {

struct IdentityRequest {
    std::string rendezvous; // "" or "env": from the environment
    Role role = Role::worker;
    int32_t size = 0;               // 0: everything comes from the environment
    int32_t index = 0, servers = 0; // with size > 0
    bool elastic = false;           // option elastic
    bool newcomer = false;          // to a running job: size and index are not read
};

// DTRAIN_ERR_CONFIG naming the variable, or DTRAIN_ERR_INVALID for the parameters. A process that
// is one of several either joins them or gets an error: it never silently becomes a job of one.
// evidence: gets what says so, for people, unless it is nullptr.
Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out,
                     FullName *full_name = full_name_of, std::string *evidence = nullptr);

// As what the environment starts this process; as a worker if it does not tell.
enum class Task { worker, server, evaluator };
Status find_task(const Getenv &getenv, Task &out);

// What each source says here, in their order, for people. Nothing is decided by it.
struct SourceReport {
    const Source *source;
    bool applies = false;
    Status status = DTRAIN_OK;
    std::string text; // an error's text, or "rank 1 of 2", "server 0 of 2"
};
std::vector<SourceReport> report_sources(const Getenv &getenv, Role wanted,
                                         FullName *full_name = full_name_of);

} // namespace dtrain::cluster
