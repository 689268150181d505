// The member's protocol while it joins and while the job runs.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member_protocol.h"

#include "cluster/control/group_attempt.h"
#include "cluster/control/progress_lines.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dtrain::cluster {
namespace {

constexpr int64_t first_retry = 1 * ms, slowest_retry = 20 * ms;
// Rank 0's own timeout, with its better text, expires first.
constexpr int64_t join_grace = 200 * ms;
constexpr size_t max_outbox = 256;
constexpr int32_t anybody = -1;

bool for_the_program(const wire::Message &message, const Membership &state) {
    if (const auto *f = std::get_if<wire::GroupFailed>(&message)) return f->guilty < state.size();
    if (const auto *b = std::get_if<wire::RankBehind>(&message)) return state.has(b->rank);
    if (const auto *r = std::get_if<wire::Relay>(&message)) return state.has(r->from);
    return std::holds_alternative<wire::CallsWanted>(message) ||
           std::holds_alternative<wire::Newcomers>(message);
}

// What the control plane needs to know of a peer. The rest, mostly addresses, is the program's:
// lists of all members on all members make up the cost of starting a large job.
wire::Peer known_of(const wire::Peer &peer) {
    return {.role = peer.role,
            .index = peer.index,
            .pid = peer.pid,
            .host = peer.host,
            .listener = peer.listener,
            .label = peer.label,
            .transports = {},
            .cpus = peer.cpus,
            .location = {},
            .serves = peer.serves,
            .cores = peer.cores,
            .slot = peer.slot};
}

} // namespace

MemberProtocol::MemberProtocol(const Settings &settings, Absence &absence)
    : settings_(settings), absence_(absence), self_(settings.identity.member()),
      pace_(Pace::of(settings, {})), watch_(Pace::of_joining(settings)) {}

void MemberProtocol::start(int64_t now, Actions &actions) {
    phase_ = Phase::connecting;
    started_ = now;
    next_line_ = now + first_line;
    obstacle_ = "no answer";
    dial(first(), "", now, actions);
}

// Whether another process may come to the rendezvous: the coordinator of an elastic job that runs.
// The place of the next generation is one process's alone.
bool MemberProtocol::others_may_come() const {
    return settings_.elastic && self_ != 0 && settings_.identity.generation == 0;
}

int32_t MemberProtocol::first() const { return others_may_come() ? anybody : 0; }

void MemberProtocol::dial(int32_t member, const std::string &address, int64_t now,
                          Actions &actions) {
    link_ = next_link_;
    next_link_ += 4;
    connected_ = false;
    candidate_until_ = now + pace_.timeout;
    actions.emplace_back(Dial{link_, member, address});
}

void MemberProtocol::dialled(const Dialled &event, int64_t now, Actions &actions) {
    if (event.link != link_) {
        actions.emplace_back(Close{event.link});
        return;
    }
    connected_ = true;
    if (phase_ == Phase::connecting) {
        phase_ = Phase::joining;
        obstacle_ = "it has not answered";
        if (self_ != 0) watch_.start(state_.coordinator, now);
        absence_.answered(now, now, pace_);
        const Identity &me = settings_.identity;
        wire::Join join;
        join.workers = me.workers;
        join.servers = me.servers;
        join.self = settings_.self;
        join.self.listener = event.listener;
        join.newcomer = me.newcomer;
        join.generation = me.generation;
        actions.emplace_back(Send{link_, std::move(join)});
    } else if (phase_ == Phase::seeking) {
        asked_at_ = now;
        candidate_until_ = now + 2 * (pace_.timeout + pace_.interval);
        actions.emplace_back(Send{link_, rejoin()});
    }
}

void MemberProtocol::dial_failed(const DialFailed &event, int64_t now, Actions &actions) {
    if (event.link != link_) return;
    link_ = 0;
    if (phase_ == Phase::seeking) return candidate_unreached(event, now, actions);
    if (phase_ != Phase::connecting) return;
    if (event.status == DTRAIN_ERR_AUTH)
        return end(event.status, "joining the job: rank 0: " + event.text, actions);
    if (event.refused && settings_.identity.generation > 0)
        return end(DTRAIN_ERR_PEER, "joining the job: rank 0 has ended: " + event.text, actions);
    if (event.status == DTRAIN_ERR_ABORTED) // so says the rendezvous
        return end(event.status, "joining the job: " + event.text, actions);
    dial_later(event.text, now);
}

void MemberProtocol::dial_later(const std::string &why, int64_t now) {
    link_ = 0;
    connected_ = admitted_ = false;
    watch_.stop_all();
    phase_ = Phase::connecting;
    obstacle_ = why;
    backoff_ = std::clamp(2 * backoff_, first_retry, slowest_retry);
    retry_at_ = now + backoff_;
}

void MemberProtocol::received(wire::Message message, int64_t now, Actions &actions) {
    if (phase_ == Phase::over) return;
    watch_.heard(state_.coordinator, now);
    if (counted() && self_ != state_.coordinator) absence_.heard(now, pace_);
    if (const auto *over = std::get_if<wire::Over>(&message)) {
        const bool waits = phase_ == Phase::joining || phase_ == Phase::seeking;
        if (!waits || over->status != DTRAIN_ERR_BUSY)
            return end(over->status, over->text, actions);
        actions.emplace_back(Close{link_});
        if (phase_ == Phase::joining) return dial_later(over->text, now); // in an earlier job
        link_ = 0;
        connected_ = false;
        return candidate_failed(false, now, actions);
    }
    if (phase_ == Phase::joining) {
        if (const auto *w = std::get_if<wire::Waiting>(&message)) {
            admitted_ = true;
            obstacle_ = w->text.empty() ? "it waits for other members" : w->text;
            if (w->text.empty()) return;
            actions.emplace_back(Report{*w});
        } else if (auto *r = std::get_if<wire::Roster>(&message)) {
            roster(std::move(*r), now, actions);
        } else if (auto *m = std::get_if<wire::Moved>(&message)) {
            moved(std::move(*m), actions);
        }
    } else if (phase_ == Phase::seeking) {
        if (const auto *w = std::get_if<wire::Welcome>(&message)) welcome(*w, now, actions);
        const auto *g = std::get_if<wire::Gone>(&message); // the candidate itself leaves
        if (g != nullptr && g->member == candidate_) candidate_gone(*g, now, actions);
    } else if (phase_ == Phase::running) {
        if (const auto *g = std::get_if<wire::Gone>(&message))
            gone(*g, now, actions);
        else if (const auto *s = std::get_if<wire::GroupReply>(&message))
            answered(*s, actions);
        else if (auto *m = std::get_if<wire::Moved>(&message))
            moved(std::move(*m), actions);
        else if (for_the_program(message, state_))
            actions.emplace_back(Report{std::move(message)});
    }
}

void MemberProtocol::roster(wire::Roster roster, int64_t now, Actions &actions) {
    if (roster.first != roster_.size() || roster.total != uint32_t(settings_.identity.members()))
        return end(DTRAIN_ERR_CORRUPT, "joining the job: rank 0 sent a wrong list of members",
                   actions);
    roster_.reserve(roster.total);
    std::move(roster.members.begin(), roster.members.end(), std::back_inserter(roster_));
    if (roster_.size() < roster.total) return;
    state_.job = roster.job;
    state_.epoch = roster.epoch;
    state_.coordinator = 0;
    for (const wire::Peer &peer : roster_) state_.peers.push_back(known_of(peer));
    pace_ = Pace::of(settings_, state_.peers);
    watch_.set(pace_);
    run(now, pace_.timeout); // the coordinator has the most to do now
    roster.first = 0;
    roster.members = std::exchange(roster_, {});
    actions.emplace_back(Report{std::move(roster)});
}

void MemberProtocol::run(int64_t now, int64_t grace) {
    phase_ = Phase::running;
    watch_.stop_all();
    if (state_.coordinator != self_) watch_.start(state_.coordinator, now, grace);
}

void MemberProtocol::gone(const wire::Gone &gone, int64_t now, Actions &actions) {
    if (!state_.alive(gone.member)) return;
    state_.epoch = std::max(state_.epoch, gone.epoch);
    if (gone.member == self_) return end(DTRAIN_ERR_FENCED, gone.text, actions);
    if (gone.member == state_.coordinator) return coordinator_gone(gone, true, now, actions);
    state_.gone[gone.member] = gone;
    actions.emplace_back(Report{gone});
}

void MemberProtocol::answered(const wire::GroupReply &reply, Actions &actions) {
    withdraw(answered_serial(reply, self_));
    if (!reply.again) {
        if (replies_.size() >= wire::max_replies) replies_.erase(replies_.begin());
        replies_.push_back(reply);
    }
    actions.emplace_back(Report{reply});
}

// For a newcomer, its time in this job ends here: the next one is elsewhere.
void MemberProtocol::moved(wire::Moved moved, Actions &actions) {
    if (phase_ == Phase::joining) {
        if (moved.number < 0 || moved.status != DTRAIN_OK)
            return end(DTRAIN_ERR_CORRUPT, "joining the job: it sent a wrong place", actions);
        actions.emplace_back(Close{link_});
        link_ = 0;
        phase_ = Phase::over;
        actions.emplace_back(Report{std::move(moved)});
        return;
    }
    std::erase_if(reforming_, [&](const wire::ReformRequest &r) {
        return r.group == moved.group && r.attempt == moved.attempt;
    });
    if (moved_.size() >= wire::max_moved) moved_.erase(moved_.begin());
    moved_.push_back(moved);
    actions.emplace_back(Report{std::move(moved)});
}

void MemberProtocol::closed(const Closed &event, int64_t now, Actions &actions) {
    const std::string &why = event.text;
    link_ = 0;
    connected_ = false;
    // Otherwise perhaps it belonged to an earlier job that ended.
    if (phase_ == Phase::joining && !admitted_)
        dial_later("the connection ended: " + why, now);
    else if (phase_ == Phase::joining)
        host_gone(event.status, "ended: " + why, now, actions);
    else if (phase_ == Phase::running)
        coordinator_gone(state_.lost(state_.coordinator, why, false, event.status), true, now,
                         actions);
    else if (phase_ == Phase::seeking)
        candidate_failed(true, now, actions);
}

// Another process may go on as the coordinator of a job that runs.
void MemberProtocol::host_gone(Status status, const std::string &why, int64_t now,
                               Actions &actions) {
    if (!others_may_come()) return end(status, "joining the job: rank 0 " + why, actions);
    if (link_ != 0) actions.emplace_back(Close{link_});
    dial_later("it " + why, now);
}

void MemberProtocol::tick(int64_t now, Actions &actions) {
    if (phase_ == Phase::connecting || phase_ == Phase::joining)
        connecting_tick(now, actions);
    else if (phase_ == Phase::seeking)
        seeking_tick(now, actions);
    if (phase_ != Phase::running) return;
    Watch::Due due = watch_.check(now);
    if (due.beat) actions.emplace_back(Send{link_, wire::Heartbeat{state_.epoch}});
    for (Watch::Silent silent : due.silent)
        coordinator_gone(state_.lost(silent.member, pace_.silence(silent.ns), true), false, now,
                         actions);
}

void MemberProtocol::connecting_tick(int64_t now, Actions &actions) {
    int64_t grace = phase_ == Phase::joining ? join_grace : 0;
    double waited = double(now - started_) / double(second);
    if (now - grace >= settings_.join_deadline)
        return end(
            DTRAIN_ERR_TIMEOUT,
            text("joining the job timed out after %.1f s: rank 0: %s", waited, obstacle_.c_str()),
            actions);
    if (phase_ == Phase::joining) return joining_tick(now, actions);
    if (now >= retry_at_) {
        retry_at_ = INT64_MAX;
        dial(first(), "", now, actions);
    }
    if (now >= next_line_) {
        next_line_ = now + line_interval;
        actions.emplace_back(Report{
            wire::Waiting{text("waiting %.0f s for rank 0: %s", waited, obstacle_.c_str())}});
    }
}

void MemberProtocol::joining_tick(int64_t now, Actions &actions) {
    const Watch::Due due = watch_.check(now);
    if (due.beat) actions.emplace_back(Send{link_, wire::Heartbeat{}});
    for (const Watch::Silent &silent : due.silent)
        host_gone(DTRAIN_ERR_PEER, "was " + Pace::of_joining(settings_).silence(silent.ns), now,
                  actions);
}

int64_t MemberProtocol::next_deadline() const {
    int64_t room = INT64_MAX - settings_.join_deadline;
    switch (phase_) {
    case Phase::connecting: return std::min({retry_at_, next_line_, settings_.join_deadline});
    case Phase::joining:
        return std::min(watch_.next_deadline(),
                        settings_.join_deadline + std::min(join_grace, room));
    case Phase::running: return watch_.next_deadline();
    case Phase::seeking: return std::min({seek_at_, candidate_until_, seek_until_});
    case Phase::idle:
    case Phase::over: break;
    }
    return INT64_MAX;
}

Status MemberProtocol::post(wire::Message message, Actions &actions) {
    if (phase_ == Phase::running) {
        actions.emplace_back(Send{link_, std::move(message)});
        return DTRAIN_OK;
    }
    if (phase_ != Phase::seeking) return fail(DTRAIN_ERR_STATE, "the job is over");
    if (outbox_.size() >= max_outbox)
        return fail(DTRAIN_ERR_BUSY, "too many control messages wait for a new coordinator");
    outbox_.push_back(std::move(message));
    return DTRAIN_OK;
}

Status MemberProtocol::ask(wire::GroupRequest request, uint32_t &serial, Actions &actions) {
    if (!joined()) return fail(DTRAIN_ERR_STATE, "the job is over");
    serial = request.serial = ++serial_;
    asking_.push_back(request);
    if (phase_ == Phase::running) actions.emplace_back(Send{link_, std::move(request)});
    return DTRAIN_OK; // while seeking, welcome() sends it
}

void MemberProtocol::withdraw(uint32_t serial) {
    std::erase_if(asking_, [&](const wire::GroupRequest &r) { return r.serial == serial; });
}

Status MemberProtocol::reform(wire::ReformRequest request, uint32_t &attempt, Actions &actions) {
    if (!joined()) return fail(DTRAIN_ERR_STATE, "the job is over");
    attempt = request.attempt = reforms_[request.group]++;
    reforming_.push_back(request);
    if (phase_ == Phase::running) actions.emplace_back(Send{link_, std::move(request)});
    return DTRAIN_OK; // while seeking, welcome() sends it
}

bool MemberProtocol::has_moved() const {
    return std::ranges::any_of(moved_, [this](const wire::Moved &moved) {
        const auto asked = reforms_.find(moved.group);
        const bool last = asked == reforms_.end() || asked->second == moved.attempt + 1;
        return moved.status == DTRAIN_OK && last;
    });
}

void MemberProtocol::leave(bool moved, Actions &actions) {
    if (connected_ && joined())
        actions.emplace_back(Send{link_, wire::Leave{moved}});
    else if (connected_)
        actions.emplace_back(Send{link_, wire::Over{DTRAIN_ERR_CANCELED, "it gave up joining"}});
    if (link_ != 0) actions.emplace_back(Close{link_});
    phase_ = Phase::over;
}

void MemberProtocol::end(Status status, const std::string &why, Actions &actions) {
    if (connected_ && phase_ == Phase::joining)
        actions.emplace_back(Send{link_, wire::Over{status, why}});
    if (link_ != 0) actions.emplace_back(Close{link_});
    link_ = 0;
    phase_ = Phase::over;
    actions.emplace_back(Report{wire::Over{status, why}});
}

} // namespace dtrain::cluster
