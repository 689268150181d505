// Asks the sources of a process's identity in their order, and checks that they agree.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/environment.h"

#include "cluster/host/names.h"
#include "wire/limits.h"

namespace dtrain::cluster {
namespace {

constexpr int32_t most = int32_t(wire::max_members);

// What the environment says, and of whom.
struct Told {
    bool anything = false; // otherwise this process is alone because no variable says more
    std::string evidence;  // what says that there is more than one process
    bool evaluates = false;
    std::string by = "nothing says that there are other processes"; // for people
};

Status from_environment(const Surroundings &around, Role wanted, Identity &out, Told &told) {
    for (const Source *source : sources()) {
        if (!source->applies(around.env)) continue;
        told.anything = true;
        Finding found;
        if (Status s = source->read(around, wanted, found); s != DTRAIN_OK) return s;
        if (found.identity.members() == 1 && !source->decides && !found.evaluates) continue;
        told.evaluates = found.evaluates;
        told.evidence = found.evidence;
        told.by = found.evidence.empty() ? std::string(source->reads) + " (" + source->name + ")"
                                         : found.evidence;
        out = std::move(found.identity);
        return DTRAIN_OK;
    }
    out = {};
    return DTRAIN_OK;
}

Status from_request(const IdentityRequest &request, Identity &out) {
    out.role = request.role;
    out.index = request.index;
    out.workers = request.size;
    out.servers = request.servers;
    int32_t limit = request.role == Role::worker ? request.size : request.servers;
    if (request.size > most || request.servers < 0 || request.servers > most - request.size)
        return fail(DTRAIN_ERR_INVALID,
                    "a job of %d workers and %d servers is too large; at most "
                    "%d members together",
                    request.size, request.servers, most);
    if (request.index < 0 || request.index >= limit)
        return fail(DTRAIN_ERR_INVALID, "%s %d is not one of 0 to %d",
                    request.role == Role::worker ? "rank" : "server", request.index, limit - 1);
    return DTRAIN_OK;
}

// A process that is to meet others must know where; a process that is told where must know how many
// there are.
Status check_meeting(const IdentityRequest &request, const Identity &found, const Told &told) {
    if (found.newcomer && !request.elastic)
        return fail(
            DTRAIN_ERR_CONFIG,
            "a newcomer joins elastic jobs only: set option elastic=yes (DTRAIN_ELASTIC=yes) "
            "for all processes of the job");
    if (found.newcomer && found.rendezvous.empty())
        return fail(DTRAIN_ERR_CONFIG, "a newcomer must know the job's rendezvous: set "
                                       "DTRAIN_RENDEZVOUS, or give it in the call");
    if (found.newcomer) return DTRAIN_OK;
    if (found.members() == 1) {
        if (request.rendezvous.empty() || request.rendezvous == "env" || told.anything)
            return DTRAIN_OK;
        return fail(DTRAIN_ERR_CONFIG,
                    "rendezvous \"%.200s\", but the number of processes is unknown: give size and "
                    "rank, or set DTRAIN_SIZE and DTRAIN_RANK (DTRAIN_SIZE=1: this process alone)",
                    request.rendezvous.c_str());
    }
    if (!found.rendezvous.empty()) return DTRAIN_OK;
    if (told.evidence.empty())
        return fail(DTRAIN_ERR_CONFIG,
                    "no rendezvous for a job of %d processes: DTRAIN_RENDEZVOUS is not set",
                    found.members());
    return fail(DTRAIN_ERR_CONFIG,
                "%s, but nothing says where they meet: set DTRAIN_RENDEZVOUS to tcp://HOST:PORT of "
                "rank 0 (or MASTER_ADDR and MASTER_PORT) for all, or start them by dtrain-run; "
                "DTRAIN_SIZE=1 makes each a job of its own",
                told.evidence.c_str());
}

} // namespace

Status find_identity(const IdentityRequest &request, const Getenv &getenv, Identity &out,
                     FullName *full_name, std::string *evidence) {
    const Surroundings around = {Variables(getenv), full_name};
    const Variables &env = around.env;
    Identity found, launched;
    Told told;
    bool ask = request.rendezvous.empty() || request.rendezvous == "env";
    if (request.size < 0)
        return fail(DTRAIN_ERR_INVALID, "a job cannot have %d workers", request.size);
    Status s = DTRAIN_OK;
    if (request.newcomer) {
        found.newcomer = true;
        found.role = request.role;
    } else {
        s = request.size > 0 ? from_request(request, found)
                             : from_environment(around, request.role, found, told);
    }
    if (s != DTRAIN_OK) return s;
    if (told.evaluates)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "%s: this is an evaluator, which is no member of the job: it follows the job's "
                    "checkpoints (dtrain_checkpoint_wait) in a job of its own (size = 1 in the "
                    "call)",
                    told.by.c_str());
    if (found.role != request.role)
        return fail(DTRAIN_ERR_STATE, "this process is a %s of the job, so it cannot join as a %s",
                    found.role == Role::server ? "server" : "worker",
                    request.role == Role::server ? "server" : "worker");
    if (found.members() > 1 && found.rendezvous.empty() && request.size > 0 &&
        from_environment(around, request.role, launched, told) == DTRAIN_OK) {
        found.rendezvous = launched.rendezvous;
        found.port_seed = launched.port_seed;
        found.port_reason = launched.port_reason;
    }
    if (!ask || env.has("DTRAIN_RENDEZVOUS")) {
        found.rendezvous = ask ? env.text("DTRAIN_RENDEZVOUS") : request.rendezvous;
        found.port_seed = 0;
    }
    told.anything |= request.size > 0;
    if (s = check_meeting(request, found, told); s != DTRAIN_OK) return s;
    // A process alone that is told no rendezvous can be found by nobody.
    found.elastic = request.elastic && !found.rendezvous.empty();
    // The listener belongs to the environment's job, not to another job that its rank 0 joins
    // itself.
    if (found.member() == 0 && env.has("DTRAIN_LISTEN_FD") &&
        found.rendezvous == env.text("DTRAIN_RENDEZVOUS"))
        s = env.number("DTRAIN_LISTEN_FD", 0, 1 << 20, found.listen_fd);
    if (s != DTRAIN_OK) return s;
    if (evidence != nullptr) *evidence = request.size > 0 ? "the call says so" : told.by;
    out = std::move(found);
    return s;
}

Status find_task(const Getenv &getenv, Task &out) {
    Identity found;
    Told told;
    if (Status s = from_environment({Variables(getenv), full_name_of}, Role::worker, found, told);
        s != DTRAIN_OK)
        return s;
    out = found.role == Role::server ? Task::server : Task::worker;
    if (told.evaluates) out = Task::evaluator;
    return DTRAIN_OK;
}

std::vector<SourceReport> report_sources(const Getenv &getenv, Role wanted, FullName *full_name) {
    const Surroundings around = {Variables(getenv), full_name};
    std::vector<SourceReport> out;
    for (const Source *source : sources()) {
        SourceReport report{source, source->applies(around.env), DTRAIN_OK, ""};
        Finding found;
        if (report.applies) report.status = source->read(around, wanted, found);
        const Identity &id = found.identity;
        if (report.status != DTRAIN_OK)
            report.text = error_text();
        else if (found.evaluates)
            report.text = "evaluator";
        else if (report.applies)
            report.text = text(id.role == Role::worker ? "rank %d of %d" : "server %d of %d",
                               id.index, id.role == Role::worker ? id.workers : id.servers);
        out.push_back(std::move(report));
    }
    return out;
}

} // namespace dtrain::cluster
