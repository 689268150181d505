// Checks the parameters of a join, and passes the functions of a job on to its state.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/job.h"

#include "base/random.h"
#include "base/secret.h"
#include "cluster/host/cores.h"
#include "cluster/host/host.h"
#include "cluster/host/place.h"
#include "cluster/session/job_state.h"

#include <algorithm>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

Status check(const JoinParams &params) {
    const Identity &me = params.identity;
    int32_t limit = me.role == Role::worker ? me.workers : me.servers;
    const char *what = me.role == Role::worker ? "rank" : "server index";
    if (me.workers < 1 || me.servers < 0 || me.workers > int32_t(wire::max_members) ||
        me.servers > int32_t(wire::max_members) - me.workers)
        return fail(DTRAIN_ERR_INVALID,
                    "a job of %d workers and %d servers is not possible; it "
                    "must have 1 to %zu members",
                    me.workers, me.servers, wire::max_members);
    if (!me.newcomer && (me.index < 0 || me.index >= limit))
        return fail(DTRAIN_ERR_INVALID, "%s %d is not one of 0 to %d", what, me.index, limit - 1);
    if (params.transports.size() > wire::max_transports)
        return fail(DTRAIN_ERR_LIMIT, "%zu transports are too many; at most %zu",
                    params.transports.size(), wire::max_transports);
    for (const TransportAddress &t : params.transports)
        if (t.name.empty() || t.name.size() > wire::max_transport_name ||
            t.bytes.size() > wire::max_transport_address)
            return fail(DTRAIN_ERR_LIMIT,
                        "transport \"%.40s\" has an address of %zu bytes; at most %zu are possible",
                        t.name.c_str(), t.bytes.size(), wire::max_transport_address);
    if (params.heartbeat_timeout_ns < 2 * params.heartbeat_interval_ns)
        return fail(DTRAIN_ERR_CONFIG,
                    "option heartbeat.timeout must be at least twice heartbeat.interval");
    return DTRAIN_OK;
}

Settings settings_of(const JoinParams &params) {
    Settings s;
    s.identity = params.identity;
    s.heartbeat_interval = params.heartbeat_interval_ns;
    s.heartbeat_timeout = params.heartbeat_timeout_ns;
    int64_t now = monotonic_clock().now_ns();
    if (params.timeout_ns >= 0 && params.timeout_ns < INT64_MAX - now)
        s.join_deadline = now + params.timeout_ns;
    random_bytes(&s.job, sizeof s.job);
    s.authenticated = !params.secret.empty();
    s.elastic = params.identity.elastic;
    s.self.role = uint8_t(params.identity.role);
    s.self.index = params.identity.index;
    s.self.pid = getpid();
    s.self.host = host_identity();
    s.self.transports = params.transports;
    s.self.cpus = usable_cpus();
    s.self.cores = usable_millicores();
    s.self.location = params.location;
    s.self.slot = uint8_t(params.slot);
    s.self.verify = params.verify;
    s.self.serves = params.serves && params.identity.role == Role::worker;
    return s;
}

Status check_members(std::span<const int32_t> members) {
    if (members.empty() || members.size() > wire::max_members)
        return fail(DTRAIN_ERR_INVALID, "a group cannot have %zu members", members.size());
    return DTRAIN_OK;
}

std::vector<int32_t> list(std::span<const int32_t> members) {
    return {members.begin(), members.end()};
}

} // namespace

Status read_join_options(const Options &options, JoinParams &params) {
    params.timeout_ns = options.number("join.timeout");
    params.heartbeat_interval_ns = options.number("heartbeat.interval");
    params.heartbeat_timeout_ns = options.number("heartbeat.timeout");
    params.listen_address = options.text("listen.address");
    params.location = options.text("topology");
    params.serves = options.number("ps.serve") != 0;
    params.verify =
        options.number("verify") != 0 ? 1 + uint32_t(options.number("verify.results")) : 0;
    if (Status s = read_secret(options, params.secret); s != DTRAIN_OK) return s;
    return read_demand(options, !params.secret.empty(), params.protection);
}

int64_t join_deadline(const Options &options, int64_t timeout_ns) {
    const int64_t limit_ns = timeout_ns != 0 ? timeout_ns : options.number("join.timeout");
    int64_t deadline_ns;
    if (limit_ns < 0 || __builtin_add_overflow(monotonic_clock().now_ns(), limit_ns, &deadline_ns))
        return INT64_MAX;
    return deadline_ns;
}

Status Job::join(const JoinParams &params, std::unique_ptr<Job> &job_p, NextJob *next) {
    if (Status s = check(params); s != DTRAIN_OK) return s;
    auto state = std::make_unique<State>(params, settings_of(params));
    std::optional<wire::Moved> moved;
    if (Status s = state->open(params, moved); s != DTRAIN_OK) return s;
    if (moved) {
        if (next == nullptr) return fail(DTRAIN_ERR_STATE, "joining the job: it has moved");
        *next = next_job(params.identity, *moved);
        return DTRAIN_OK;
    }
    job_p.reset(new Job(std::move(state)));
    return DTRAIN_OK;
}

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::~Job() { leave(); }

uint64_t Job::id() const { return state_->id(); }
int32_t Job::self() const { return state_->self; }
const std::vector<Member> &Job::members() const { return state_->members; }
int64_t Job::round_trip_ns() const { return state_->round_trip_ns(); }
Status Job::member_status(int32_t member) const { return state_->member_status(member); }
Status Job::status() const { return state_->status(); }
int Job::event_fd() const { return state_->event_fd(); }
int64_t Job::next_deadline_ns() const { return state_->next_deadline(); }
void Job::work() { state_->work(); }
void Job::leave() { state_->leave(); }
void Job::give_up() { state_->give_up(); }

Status Job::send(int32_t member, uint32_t channel, std::span<const uint8_t> bytes) {
    if (member < 0 || size_t(member) >= state_->members.size())
        return fail(DTRAIN_ERR_INVALID, "member %d does not exist; the job has %zu members", member,
                    state_->members.size());
    if (bytes.size() > wire::max_relay)
        return fail(DTRAIN_ERR_LIMIT, "a message of %zu bytes is too long; at most %zu",
                    bytes.size(), wire::max_relay);
    return state_->post(wire::Relay{self(), member, channel, {bytes.begin(), bytes.end()}});
}

Status Job::abort(uint64_t group, std::span<const int32_t> members, const std::string &reason,
                  uint64_t from) {
    return fail_group(group, members, DTRAIN_ERR_ABORTED, reason, self(), from);
}

Status Job::fail_group(uint64_t group, std::span<const int32_t> members, Status status,
                       const std::string &text, int32_t guilty, uint64_t from) {
    if (Status s = check_members(members); s != DTRAIN_OK) return s;
    return state_->post(wire::GroupFailed{group, list(members), status, text, guilty, from});
}

Status Job::report_calls(uint64_t group, std::span<const int32_t> members, bool stalled,
                         std::span<const CallRecord> calls, bool stuck) {
    if (Status s = check_members(members); s != DTRAIN_OK) return s;
    if (calls.size() > wire::max_calls) calls = calls.last(wire::max_calls);
    return state_->post(
        wire::Calls{group, list(members), stalled, {calls.begin(), calls.end()}, stuck});
}

Status Job::form_group(const GroupWish &wish, TagIds &tags, int64_t timeout_ns, NewGroup &result) {
    if (Status s = check_members(wish.members); s != DTRAIN_OK) return s;
    wire::GroupRequest request;
    request.kind = wish.kind;
    request.group = wish.group;
    request.members = list(wish.members);
    request.user_tag = wish.user_tag;
    GroupAttempt attempt(tags, std::move(request));
    return state_->form_group(attempt, timeout_ns, result);
}

Status Job::reform(uint64_t group, std::span<const int32_t> members, const ReformWish &wish,
                   NextJob &next) {
    if (Status s = check_members(members); s != DTRAIN_OK) return s;
    wire::Moved moved;
    wire::ReformRequest request;
    auto listener = std::make_shared<Fd>();
    if (Status s = state_->listen(*listener); s != DTRAIN_OK) return s;
    request.group = group;
    request.members = list(members);
    request.timeout_ns = wish.timeout_ns;
    request.place = place_of(listener->get()).text();
    request.smallest = wish.smallest;
    request.largest = wish.largest;
    request.leaves = wish.leaves;
    if (Status s = state_->reform(std::move(request), moved); s != DTRAIN_OK) return s;
    next = next_job(state_->identity, moved);
    if (next.stays && next.identity.member() == 0) next.listener = std::move(listener);
    return DTRAIN_OK;
}

uint32_t Job::newcomers() const { return state_->newcomers(); }
Fd Job::release_door() { return state_->release_door(); }
Fd Job::move_on() { return state_->move_on(); }
void Job::open_door(Fd taken) { state_->open_door(std::move(taken)); }

} // namespace dtrain::cluster
