// Joins a job, connects its members' transports, and passes events on to groups.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/session.h"

#include "cluster/host/cores.h"
#include "cluster/host/descriptors.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

namespace dtrain::cluster {
namespace {

constexpr int most_polls = 1000;
constexpr size_t most_former = 16;
constexpr size_t most_early = 64;
// A member whose call has failed may take back what it announced to this one, which may have no
// call in progress. A device that does not answer it in time breaks the connection off.
constexpr int64_t failure_attendance = 100 * ms;

static_assert(engine::max_jobs == wire::max_jobs);
// Otherwise two groups would have the same tags.
static_assert(engine::max_groups == wire::group_tags);

} // namespace

std::vector<TransportAddress> transport_addresses(engine::Agent &agent) {
    std::vector<TransportAddress> addresses;
    for (auto &device : agent.devices())
        addresses.push_back({std::string(device->name()), device->address()});
    return addresses;
}

Session::Session(engine::Agent &agent, engine::Backgrounds &backgrounds, const Options &options)
    : agent_(agent), backgrounds_(backgrounds), options_(options), slot_(agent.job_slots().take()),
      op_timeout_ns_(options.number("op.timeout")), stall_limit_ns_(options.number("stall.limit")),
      mesh_(agent), staging_(std::make_unique<engine::Staging>(agent.devices())) {}

Session::~Session() {
    if (job_ != nullptr) {
        backgrounds_.remove(this);
        agent_.locked([&] {
            staging_.reset();
            mesh_.purge(0, 0);
        });
        job_->leave();
        // From here on no connection reports to this session, whose groups end before the mesh.
        agent_.locked([&] {
            for (uint32_t m = 0; m < job_->members().size(); m++) mesh_.drop(m);
        });
    }
    if (slot_) agent_.job_slots().free(*slot_);
}

Status Session::join(engine::Agent &agent, engine::Backgrounds &backgrounds, const Options &options,
                     const SessionParams &params, std::shared_ptr<Session> &out) {
    std::shared_ptr<Session> session(new Session(agent, backgrounds, options));
    if (!session->slot_)
        return fail(
            DTRAIN_ERR_LIMIT,
            "the context is a member of %u jobs, and cannot be of more at one time; destroy "
            "the communicators and servers of one, or create another context",
            engine::max_jobs);
    agent.locked([&] { // what has come with this number until now was sent to an earlier job
        session->mesh_.set_slots(*session->slot_, {});
        session->mesh_.purge(0, 0);
    });
    JoinParams join;
    join.slot = *session->slot_;
    if (Status s = read_join_options(options, join); s != DTRAIN_OK) return s;
    join.identity = params.identity;
    join.oob = params.oob;
    join.oob_arg = params.oob_arg;
    join.listener = params.listener;
    join.transports = params.transports;
    join.observer = session.get();
    join.log = &agent.log();
    if (Status s = check_descriptors(params.identity, DescriptorRoom::now(), agent.log());
        s != DTRAIN_OK)
        return s;
    if (Status s = session->join_job(join, params.deadline_ns); s != DTRAIN_OK) return s;
    Status s = session->connect_mesh();
    // From here on the control thread answers for this member, even if it leaves at once.
    backgrounds.add(session.get());
    if (s != DTRAIN_OK) return s;
    session->set_wait_policy();
    out = std::move(session);
    return DTRAIN_OK;
}

Status Session::join_job(JoinParams &params, int64_t deadline_ns) {
    const Identity knocks = params.identity;
    const bool may_wait = knocks.generation == 0; // to be taken in, if the job runs without it
    for (;;) {
        NextJob next;
        params.timeout_ns = timeout_until(deadline_ns);
        Status s = Job::join(params, job_, may_wait ? &next : nullptr);
        if (s == DTRAIN_OK && job_ == nullptr) {
            params.identity = next.identity;
            params.timeout_ns = forming_patience(options_);
            if (deadline_ns != INT64_MAX)
                params.timeout_ns = std::min(timeout_until(deadline_ns), params.timeout_ns);
            s = Job::join(params, job_);
            // Somebody else did not come.
            const bool again = s != DTRAIN_OK && s != DTRAIN_ERR_AUTH &&
                               (deadline_ns == INT64_MAX || agent_.clock().now_ns() < deadline_ns);
            if (again) {
                params.identity = knocks;
                continue;
            }
            entry_ = std::make_unique<NextJob>(std::move(next));
        }
        identity_ = params.identity;
        workers_ = uint32_t(identity_.workers);
        return s;
    }
}

void Session::succeed(Session &last) {
    former_ = std::move(last.former_);
    former_.push_back(last.job_->move_on());
    if (former_.size() > most_former) former_.erase(former_.begin());
}

int64_t Session::deadline(int64_t timeout_ns) const {
    const int64_t limit_ns = time_limit(timeout_ns);
    int64_t deadline_ns;
    if (limit_ns < 0 || __builtin_add_overflow(agent_.clock().now_ns(), limit_ns, &deadline_ns))
        return INT64_MAX;
    return deadline_ns;
}

int64_t Session::timeout_until(int64_t deadline_ns) const {
    if (deadline_ns == INT64_MAX) return -1;
    return std::max<int64_t>(deadline_ns - agent_.clock().now_ns(), 1);
}

Status Session::connect_mesh() {
    std::vector<std::vector<engine::PeerAddress>> addresses;
    for (const Member &member : job_->members()) {
        auto &list = addresses.emplace_back();
        for (const TransportAddress &t : member.transports) list.push_back({t.name, t.bytes});
    }
    broken_.resize(addresses.size());
    if (Status s = mesh_.prepare(addresses, this); s != DTRAIN_OK) return s;
    std::vector<uint32_t> slots;
    for (const Member &member : job_->members()) slots.push_back(member.slot);
    mesh_.set_slots(*slot_, slots);
    return DTRAIN_OK;
}

bool Session::has_rails() const {
    for (const Member &member : members())
        for (const TransportAddress &t : member.transports)
            if (std::ranges::count(member.transports, t.name, &TransportAddress::name) > 1)
                return true;
    return false;
}

void Session::set_wait_policy() {
    const auto &members = job_->members();
    // Ranks that were bound to different CPUs do not share them.
    const Member &own = members[self()];
    auto local = std::count_if(members.begin(), members.end(), [&](const Member &m) {
        return m.host == own.host && m.cpus == own.cpus;
    });
    uint32_t cores = usable_cores();
    ranks_per_core_ = std::max(1u, (uint32_t(local) + cores - 1) / cores);
    engine::WaitPolicy policy;
    if (int64_t spin_ns = options_.number("wait.spin"); spin_ns >= 0)
        policy.spin_ns = spin_ns;
    else if (ranks_per_core_ > 1)
        policy.spin_ns = 0;
    policy.sleep_ns *= std::clamp(ranks_per_core_ / 4, 1u, 5u);
    if (agent_.job_slots().count() > 1) { // a job beside others must not take their cores
        const engine::WaitPolicy other = agent_.policy();
        policy.spin_ns = std::min(policy.spin_ns, other.spin_ns);
        policy.sleep_ns = std::max(policy.sleep_ns, other.sleep_ns);
    }
    agent_.set_policy(policy);
}

void Session::add_group(uint64_t uid, Group *group, uint64_t breaks_before) {
    agent_.locked([&] {
        groups_.emplace(uid, group);
        if (Status s = job_->status(); s != DTRAIN_OK)
            return group->failed(s, std::string(error_text()).c_str(), -1, 0);
        for (uint32_t m = 0; m < job_->members().size(); m++)
            if (group->contains(m) && job_->member_status(int32_t(m)) != DTRAIN_OK)
                group->member_lost(m, DTRAIN_ERR_PEER, std::string(error_text()).c_str(), true);
        for (uint32_t m = 0; m < broken_.size(); m++)
            if (const Break &last = broken_[m]; last.number > breaks_before && group->contains(m))
                group->peer_broken(m, last.status, last.text.c_str(), last.over);
        for (const GroupFailure &failure : early_)
            if (failure.uid == uid) failure.tell(*group);
    });
}

uint64_t Session::breaks() {
    uint64_t count = 0;
    agent_.locked([&] { count = breaks_; });
    return count;
}

void Session::remove_group(uint64_t uid, Group *group) {
    agent_.locked([&] {
        auto [begin, end] = groups_.equal_range(uid);
        auto at = std::find_if(begin, end, [&](auto &entry) { return entry.second == group; });
        if (at != end) groups_.erase(at);
        awaiting_.erase(uid);
    });
}

void Session::has_come(uint64_t uid) {
    agent_.locked([&] { awaiting_.erase(uid); });
}

Session::Reforming::Reforming(Session &session, uint64_t uid) : session_(session), uid_(uid) {
    session_.agent_.locked([&] {
        session_.reforming_ = true;
        const auto count = int32_t(session_.members().size());
        for (int32_t m = 0; m < count && session_.job_->status() == DTRAIN_OK; m++)
            if (session_.job_->member_status(m) != DTRAIN_OK)
                return session_.abandon_groups(uint32_t(m), std::string(error_text()).c_str());
    });
}

Session::Reforming::~Reforming() {
    session_.agent_.locked([&] {
        session_.reforming_ = false;
        session_.awaiting_.erase(uid_);
    });
}

void Session::abandon_groups(uint32_t gone, const char *text) {
    for (auto &[uid, group] : groups_) group->abandoned(gone, text);
}

// ---- events of the data plane ----

void Session::peer_broken(uint32_t member, Status status, const char *text) {
    char whole[error_text_size];
    std::snprintf(whole, sizeof whole, "(%s) cannot be reached: %s",
                  job_->members()[member].label.c_str(), text);
    const bool over = !mesh_.is_connected(member);
    for (auto &[uid, group] : groups_)
        if (group->contains(member)) group->peer_broken(member, status, whole, over);
    Break &last = broken_[member];
    last = {.number = ++breaks_, .status = status, .over = over, .text = {}};
    last.text = whole;
}

void Session::drop_messages(uint32_t tag) {
    agent_.locked([&] {
        mesh_.purge(engine::make_tag(tag, 0, engine::TagClass::collective, 0), engine::group_mask);
    });
}

bool Session::alive(uint32_t member) { return job_->member_status(int32_t(member)) == DTRAIN_OK; }

// ---- events of the control plane ----

void Session::work() {
    if (lacks_memory_.exchange(false)) job_->give_up();
    job_->work();
}

struct Session::Event final : engine::Posted {
    Event(Session &owner, std::function<void()> told) : session(owner), happens(std::move(told)) {}
    void take(engine::Agent &) override {
        const KeptErrorText kept; // of a thread that happens to have the lock
        try {
            happens();
        } catch (const std::bad_alloc &) {
            session.lacks_memory_ = true;
        }
        delete this;
    }
    Session &session;
    const std::function<void()> happens;
};

void Session::hand_in(std::function<void()> event) {
    agent_.hand_in(new Event(*this, std::move(event)));
}

template <class F> void Session::tell_group(uint64_t uid, F &&f) {
    hand_in([this, uid, f = std::forward<F>(f)] {
        auto [begin, end] = groups_.equal_range(uid);
        for (auto at = begin; at != end; ++at) f(*at->second);
    });
}

// The news of a member's end may have overtaken data that it sent before, and the ends of its
// connections: what has arrived is taken first. What a card reports only after the first empty poll
// is not lost. Collectives and messages that wait for the member fail when they have stalled again,
// and the devices are polled for 2 ms before that, or for about 100 ms if a connection to it has
// not ended (Faults::awaited_in_vain()); transports report such an end after all that came before
// it. Requests to a server that has ended fail, or go to another one, at once: without its answer,
// nobody can tell whether it has done them.
void Session::take_what_has_come() {
    for (auto &device : agent_.devices())
        for (int i = 0; i < most_polls && agent_.poll(*device) > 0; i++) {
        }
}

void Session::hear_of_ended_connections() {
    agent_.locked([this] { take_what_has_come(); });
}

void Session::member_lost(int32_t member, Status status, const std::string &text, bool silent) {
    hand_in([this, member = uint32_t(member), status, text, silent] {
        if (silent)
            mesh_.drop(member);
        else
            take_what_has_come();
        for (auto &[uid, group] : groups_)
            if (group->contains(member)) group->member_lost(member, status, text.c_str(), silent);
        if (reforming_) abandon_groups(member, text.c_str());
    });
}

void Session::member_left(int32_t member) {
    hand_in([this, member = uint32_t(member)] {
        for (auto &[uid, group] : groups_)
            if (group->contains(member)) group->member_left(member);
    });
}

void Session::group_failed(uint64_t uid, Status status, const std::string &text, int32_t guilty,
                           uint64_t from) {
    hand_in(
        [this, failure = GroupFailure{uid, status, text, guilty, from}] { group_failed(failure); });
}

void Session::group_failed(const GroupFailure &failure) {
    const auto [begin, end] = groups_.equal_range(failure.uid);
    if (failure.from == wire::no_calls) {
        if (begin != end) awaiting_.insert(failure.uid);
        return;
    }
    agent_.attend_for(failure_attendance);
    for (auto at = begin; at != end; ++at) failure.tell(*at->second);
    if (begin != end) return;
    if (early_.size() >= most_early) early_.pop_front();
    early_.push_back(failure);
}

void Session::calls_wanted(uint64_t uid) {
    awaited_at_ = agent_.clock().now_ns();
    tell_group(uid, [](Group &group) { group.calls_wanted(); });
}

void Session::rank_behind(uint64_t uid, int32_t rank, uint64_t seq) {
    tell_group(uid, [=](Group &group) { group.rank_behind(rank, seq); });
}

void Session::message(int32_t, uint32_t, std::span<const uint8_t>) {}

void Session::job_moved(const NextJob &next) {
    hand_in([this, next] {
        for (auto &[uid, group] : groups_) group->moved(next);
    });
}

// The job may have ended because memory is lacking. A second call would tell nothing new.
void Session::job_failed(Status, const std::string &) {
    if (!end_.is_handed_in.exchange(true)) agent_.hand_in(&end_);
}

void Session::End::take(engine::Agent &) {
    const KeptErrorText kept;
    const Status s = session.job_->status();
    char text[error_text_size];
    std::snprintf(text, sizeof text, "%s", error_text());
    for (auto &[uid, group] : session.groups_) group->failed(s, text, -1, 0);
}

} // namespace dtrain::cluster
