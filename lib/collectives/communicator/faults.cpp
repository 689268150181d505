// Decides what a failure breaks, whom to blame and whom to tell.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/faults.h"

#include "cluster/host/names.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::collectives {
namespace {

constexpr int64_t report_interval = 1 * second;
constexpr int64_t first_log = 2 * second, log_interval = 10 * second;
constexpr size_t reported_calls = 16;
// How many times an operation must find no progress before it fails: once everything is known, and
// while messages may be in transit or the control plane may still name the rank at fault.
constexpr uint32_t last_look = 2, patient_looks = 50; // 0.1 to 0.5 s

} // namespace

Faults::Faults(cluster::Session &session, const Membership &ranks, CallOrder &order,
               const CallTimes &times)
    : session_(session), agent_(session.agent()), ranks_(ranks), order_(order), times_(times),
      gone_(ranks.members.size()), failed_(ranks.members.size()) {}

bool Faults::contains(uint32_t member) const { return ranks_.rank_of(member) >= 0; }

Status Faults::error() const {
    if (!is_broken()) return DTRAIN_OK;
    return fail(fault_.status, "the communicator is broken: %s", fault_.text);
}

// A lost rank counts, because the communicator will break sooner or later.
Status Faults::status() {
    Status s = error();
    if (s != DTRAIN_OK) return s;
    agent_.locked([&] {
        auto at = std::ranges::find_if(gone_, &Gone::lost);
        if (at != gone_.end()) s = fail(at->status, "%s", at->why.c_str());
    });
    return s;
}

Status Faults::lost(uint32_t rank) {
    Status s = DTRAIN_OK;
    agent_.locked([&] {
        if (gone_[rank].known) s = fail(gone_[rank].status, "%s", gone_[rank].why.c_str());
    });
    return s;
}

bool Faults::is_idle() {
    bool none = false;
    agent_.locked([&] { none = in_flight_.empty(); });
    return none;
}

std::vector<int32_t> Faults::failed_ranks() {
    std::vector<int32_t> ranks;
    agent_.locked([&] {
        for (uint32_t r = 0; r < failed_.size(); r++)
            if (failed_[r]) ranks.push_back(int32_t(r));
    });
    return ranks;
}

Status Faults::abort(const char *reason) {
    std::string text = "aborted by rank " + std::to_string(ranks_.rank);
    if (reason != nullptr && *reason != 0) text += std::string(": ") + reason;
    uint64_t open = 0;
    agent_.locked([&] {
        open = first_open();
        break_with(DTRAIN_ERR_ABORTED, int32_t(ranks_.rank), text.c_str(), 0);
    });
    return session_.job().abort(ranks_.uid, ranks_.ids, text, open);
}

void Faults::give_up(Status status, const char *text) {
    agent_.locked([&] {
        const uint64_t open = first_open();
        if (break_with(status, int32_t(ranks_.rank), text, open)) tell_others(open);
    });
}

void Faults::cancel(const char *text) {
    agent_.locked([&] { break_with(DTRAIN_ERR_CANCELED, -1, text, 0); });
}

void Faults::set_parent(const Faults *parent) {
    agent_.locked([&] { parent_ = parent; });
}

void Faults::shrink() {
    agent_.locked([&] {
        const uint64_t open = first_open();
        if (break_with(DTRAIN_ERR_ABORTED, int32_t(ranks_.rank), "a rank shrinks the communicator",
                       0))
            tell_others(open);
    });
}

// Breaks the communicator: calls from this number on fail now. Earlier calls, and messages unless
// from is 0, may have all the data they need: they fail only if they stall. The first fault counts;
// returns whether this is it.
bool Faults::break_with(Status status, int32_t guilty_rank, const char *text, uint64_t from) {
    const uint64_t before = broken_from_.load(std::memory_order_relaxed);
    if (from >= before) return false;
    if (before == whole) {
        fault_.status = status;
        fault_.rank = guilty_rank;
        std::snprintf(fault_.text, sizeof fault_.text, "%s", text);
        if (status == DTRAIN_ERR_PEER && guilty_rank >= 0) failed_[size_t(guilty_rank)] = true;
    }
    broken_from_.store(from, std::memory_order_release);
    look_again(nullptr);
    for (size_t i = in_flight_.size(); i-- > 0;)
        if (i < in_flight_.size() && in_flight_[i]->sequence >= from)
            fail_operation(*in_flight_[i]);
    return before == whole;
}

// from: all earlier calls have ended on this rank.
void Faults::tell_others(uint64_t from) {
    int32_t guilty = fault_.rank >= 0 ? ranks_.ids[size_t(fault_.rank)] : -1;
    // What this rank lacks the others do not: to them, it has failed.
    const bool lacks = engine::is_own_lack(fault_.status) && fault_.rank == int32_t(ranks_.rank);
    const Status told = lacks ? DTRAIN_ERR_PEER : fault_.status;
    // On failure, the control connection itself may be broken; then the others find out by
    // themselves.
    (void)session_.job().fail_group(ranks_.uid, ranks_.ids, told, fault_.text, guilty, from);
}

// The first call that has not ended on this rank.
uint64_t Faults::first_open() {
    uint64_t first = next_call();
    for (const engine::Operation *operation : in_flight_)
        if (operation->sequence != 0) first = std::min(first, operation->sequence);
    return first;
}

void Faults::fail_operation(engine::Operation &operation) {
    std::string text = describe_operation(operation) + ": " + fault_.text;
    const std::string missing =
        fault_.status == DTRAIN_ERR_TIMEOUT ? operation.missing() : std::string();
    const std::string awaited = "it waits for " + missing;
    if (!missing.empty() && text.find(awaited) == std::string::npos) // else the fault is its own
        text += "; " + awaited;
    operation.fail(agent_, {.status = fault_.status, .peer = fault_.rank}, text.c_str());
}

std::string Faults::describe_operation(const engine::Operation &operation) const {
    if (operation.sequence == 0) return "message";
    return order_.describe(operation.sequence);
}

std::string Faults::own(const std::string &text) const {
    const std::string rank = "rank " + std::to_string(ranks_.rank) + ": ";
    return text.starts_with(rank) ? text : rank + text;
}

std::string Faults::own_lack(Status status, const std::string &text) const {
    return own(std::string(status_text(status)) + ": " + text);
}

Faults::Gone *Faults::gone(uint32_t member) {
    const int32_t rank = ranks_.rank_of(member);
    return rank < 0 ? nullptr : &gone_[size_t(rank)];
}

// Restarts the count of stalls, because data sent before the news may still be in transit.
// Operations that wait for a rank that was gone earlier get no extra time; otherwise ranks that
// tell each other their findings would time out one after the other.
void Faults::look_again(const Gone *news) {
    for (engine::Operation *operation : in_flight_) {
        const auto awaited = [&](const Gone &rank) {
            return &rank != news && !rank.why.empty() &&
                   operation->waits_for(uint32_t(&rank - gone_.data()));
        };
        if (!std::ranges::any_of(gone_, awaited)) operation->stalls = 0;
    }
}

// A lost rank may have sent everything that is still needed, so only operations that stall on it
// fail (operation_stalled()).
void Faults::member_lost(uint32_t member, Status status, const char *text, bool silent) {
    Gone *rank = gone(member);
    if (rank == nullptr) return;
    any_gone_ = true;
    failed_[size_t(rank - gone_.data())] = true;
    *rank = {.why = text,
             .known = true,
             .lost = true,
             .over = rank->over || silent,
             .status = status,
             .guilty = int32_t(rank - gone_.data())};
    look_again(rank);
}

void Faults::member_left(uint32_t member) {
    Gone *rank = gone(member);
    if (rank == nullptr || rank->lost) return;
    any_gone_ = true;
    rank->known = true; // better evidence than a broken connection
    tell_of_leaving(*rank);
    look_again(rank);
}

// Where the connection broke for a lack of this rank's own, what the other one sent before it left
// may not have come in.
void Faults::tell_of_leaving(Gone &rank) {
    rank.status = DTRAIN_ERR_PEER;
    rank.guilty = int32_t(&rank - gone_.data());
    rank.why = "rank " + std::to_string(rank.guilty) + " has left the job";
    if (rank.lack == DTRAIN_OK) return;
    rank.guilty = int32_t(ranks_.rank);
    rank.why = own(rank.why + ", and the connection to it broke before: " + status_text(rank.lack));
}

void Faults::peer_broken(uint32_t member, Status status, const char *text, bool over) {
    Gone *rank = gone(member);
    if (rank == nullptr) return;
    any_gone_ = true;
    rank->over |= over;
    const bool lacks = engine::is_own_lack(status);
    if (lacks) rank->lack = status;
    if (rank->why.empty()) {
        rank->why = "rank " + std::to_string(rank - gone_.data()) + ' ' + text;
        rank->guilty = int32_t(rank - gone_.data());
        rank->status = status;
        if (lacks) {
            rank->guilty = int32_t(ranks_.rank);
            rank->why = own_lack(status, rank->why);
        }
    } else if (lacks && rank->known && !rank->lost) {
        tell_of_leaving(*rank);
    }
    look_again(rank);
}

void Faults::failed(Status status, const char *text, int32_t guilty_member, uint64_t from) {
    auto at = std::find(ranks_.ids.begin(), ranks_.ids.end(), guilty_member);
    int32_t rank = at == ranks_.ids.end() ? -1 : int32_t(at - ranks_.ids.begin());
    break_with(status, rank, text, from);
}

// What is in flight here may still succeed, as the others' earlier calls.
void Faults::abandoned(uint32_t member, const char *text) {
    const std::string why =
        std::string(text) + "; rank " + std::to_string(ranks_.rank) + " waits in reform()";
    const uint64_t open = first_open();
    if (break_with(DTRAIN_ERR_PEER, ranks_.rank_of(member), why.c_str(), next_call()))
        tell_others(open);
}

const Faults::Gone *Faults::awaited_in_vain(const engine::Operation &operation) const {
    if (!any_gone_) return nullptr;
    const bool from_anybody = operation.waits_for_anybody();
    const auto there = [](const Gone &rank) { return rank.why.empty(); };
    const bool deserted = from_anybody && std::ranges::count_if(gone_, there) <= 1; // this rank
    for (const Gone &rank : gone_) {
        if (there(rank)) continue;
        const bool all_is_known = rank.known && (rank.over || operation.looks_in_memory());
        if (operation.stalls < (all_is_known ? last_look : patient_looks)) continue;
        if (from_anybody ? rank.lost || deserted
                         : operation.waits_for(uint32_t(&rank - gone_.data())))
            return &rank;
    }
    return nullptr;
}

// ---- operations ----

bool Faults::operation_started(engine::Operation &operation) {
    operation.owner_index = uint32_t(in_flight_.size());
    in_flight_.push_back(&operation);
    if (!fails(operation.sequence, std::memory_order_relaxed)) return true;
    fail_operation(operation);
    return false;
}

void Faults::operation_ended(engine::Operation &operation) {
    if (operation.begun_ns != 0 && !is_broken()) {
        int64_t elapsed_ns = agent_.clock().now_ns() - operation.begun_ns;
        times_.ended(operation, elapsed_ns);
    }
    in_flight_[operation.owner_index] = in_flight_.back();
    in_flight_[operation.owner_index]->owner_index = operation.owner_index;
    in_flight_.pop_back();
}

void Faults::operation_failed(engine::Operation &operation, const engine::Outcome &outcome,
                              const char *text) {
    std::string full = text;
    if (outcome.status == DTRAIN_ERR_TIMEOUT)
        full = "rank " + std::to_string(ranks_.rank) + ": " + describe_operation(operation) +
               absentees(operation) + " " + text;
    int32_t guilty = outcome.peer;
    if (engine::is_own_lack(outcome.status)) {
        full = guilty >= 0 ? own_lack(outcome.status, full) : own(full);
        guilty = int32_t(ranks_.rank);
    }
    const uint64_t from = operation.sequence != 0 ? operation.sequence : next_call();
    if (break_with(outcome.status, guilty, full.c_str(), from)) tell_others(from);
}

void Faults::operation_stalled(engine::Operation &operation) {
    if (const Gone *rank = awaited_in_vain(operation)) {
        const bool is_message = operation.sequence == 0;
        const uint64_t from = is_message ? next_call() : operation.sequence;
        if (break_with(rank->status, rank->guilty, rank->why.c_str(), from)) tell_others(from);
        // A collective has ended and may already be destroyed.
        if (is_message) fail_operation(operation);
        return;
    }
    if (is_broken() && operation.stalls >= patient_looks) return fail_operation(operation);
    if (parent_ != nullptr && parent_->is_broken() && operation.stalls >= patient_looks) {
        const Fault &its = parent_->fault_;
        const int32_t guilty =
            its.rank < 0 ? -1 : ranks_.rank_of(parent_->ranks_.members[size_t(its.rank)]);
        if (break_with(its.status, guilty, its.text, operation.sequence))
            tell_others(operation.sequence);
        return;
    }
    if (operation.sequence == 0 || agent_.now() - reported_ns_ < report_interval) return;
    reported_ns_ = agent_.now();
    const int64_t limit = session_.stall_limit_ns();
    report(true, limit > 0 && agent_.stuck_for() >= limit, operation.sequence);
}

// ---- comparing calls ----

void Faults::report(bool stalled, bool stuck, uint64_t up_to) {
    const std::vector<cluster::CallRecord> calls = order_.recent(up_to, reported_calls);
    (void)session_.job().report_calls(ranks_.uid, ranks_.ids, stalled, calls, stuck);
}

void Faults::calls_wanted() { report(false, false, 0); }

// What an operation waits for may wait itself, for a rank that has not made the call: that one is
// to blame. ", which rank 3 has not made yet,"; "" if no such rank is known.
std::string Faults::absentees(const engine::Operation &operation) const {
    std::vector<int32_t> ranks;
    for (const auto &[rank, behind] : behind_)
        if (behind.last < operation.sequence && behind.told_ns >= operation.moved_ns)
            ranks.push_back(rank);
    if (ranks.empty()) return {};
    return ", which " + cluster::member_list(ranks, INT32_MAX) +
           (ranks.size() == 1 ? " has" : " have") + " not made yet,";
}

void Faults::rank_behind(int32_t rank, uint64_t seq) {
    int64_t now = agent_.clock().now_ns();
    behind_[rank] = {seq, now};
    for (engine::Operation *operation : in_flight_) {
        int64_t waited = now - operation->moved_ns;
        if (operation->sequence <= seq || waited < first_log) continue;
        if (logged_ns_ != 0 && now - logged_ns_ < log_interval) return;
        logged_ns_ = now;
        agent_.log().write(
            DTRAIN_LOG_WARN, "rank %u waits %lld s in %s for rank %d, whose last call was %llu",
            ranks_.rank, static_cast<long long>(waited / second),
            describe_operation(*operation).c_str(), rank, static_cast<unsigned long long>(seq));
        return;
    }
}

} // namespace dtrain::collectives
