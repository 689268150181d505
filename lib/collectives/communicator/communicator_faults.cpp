// Handles failures of a communicator. Everything here runs under the agent's lock, except abort(),
// status() and failed_ranks().
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"

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

bool Communicator::contains(uint32_t member) const {
    return std::find(members_.begin(), members_.end(), member) != members_.end();
}

Status Communicator::faulty() {
    if (!is_broken()) return DTRAIN_OK;
    return fail(fault_.status, "the communicator is broken: %s", fault_.text);
}

// A lost rank counts, because the communicator will break sooner or later.
Status Communicator::status() {
    Status s = faulty();
    if (s != DTRAIN_OK) return s;
    agent_.locked([&] {
        auto at = std::ranges::find_if(gone_, &Gone::lost);
        if (at != gone_.end()) s = fail(DTRAIN_ERR_PEER, "%s", at->why.c_str());
    });
    return s;
}

std::vector<int32_t> Communicator::failed_ranks() {
    std::vector<int32_t> ranks;
    agent_.locked([&] {
        for (uint32_t r = 0; r < failed_.size(); r++)
            if (failed_[r]) ranks.push_back(int32_t(r));
    });
    return ranks;
}

Status Communicator::abort(const char *reason) {
    std::string text = "aborted by rank " + std::to_string(rank_);
    if (reason != nullptr && *reason != 0) text += std::string(": ") + reason;
    uint64_t open = 0;
    agent_.locked([&] {
        open = first_open();
        break_with(DTRAIN_ERR_ABORTED, int32_t(rank_), text.c_str(), 0);
    });
    return session_->job().abort(uid_, member_ids_, text, open);
}

// Breaks the communicator: calls from this number on fail now. Earlier calls, and messages unless
// from is 0, may have all the data they need: they fail only if they stall. The first fault counts;
// returns whether this is it.
bool Communicator::break_with(Status status, int32_t guilty_rank, const char *text, uint64_t from) {
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
void Communicator::tell_others(uint64_t from) {
    int32_t guilty = fault_.rank >= 0 ? member_ids_[size_t(fault_.rank)] : -1;
    // On failure, the control connection itself may be broken; then the others find out by
    // themselves.
    (void)session_->job().fail_group(uid_, member_ids_, fault_.status, fault_.text, guilty, from);
}

uint64_t Communicator::next_call() {
    std::lock_guard order(order_);
    return seq_ + 1;
}

// The first call that has not ended on this rank.
uint64_t Communicator::first_open() {
    uint64_t first = next_call();
    for (const engine::Operation *operation : in_flight_)
        if (operation->sequence != 0) first = std::min(first, operation->sequence);
    return first;
}

void Communicator::fail_operation(engine::Operation &operation) {
    std::string text = describe_operation(operation) + ": " + fault_.text;
    const std::string missing =
        fault_.status == DTRAIN_ERR_TIMEOUT ? operation.missing() : std::string();
    if (!missing.empty()) text += "; it waits for " + missing;
    operation.fail(agent_, {.status = fault_.status, .peer = fault_.rank}, text.c_str());
}

std::string Communicator::describe_operation(const engine::Operation &operation) const {
    if (operation.sequence == 0) return "message";
    cluster::CallRecord record = records_[operation.sequence % kept_records];
    std::string text = record.seq == operation.sequence ? cluster::describe(record) : "collective";
    return text + " (call " + std::to_string(operation.sequence) + ")";
}

Communicator::Gone *Communicator::gone(uint32_t member) {
    auto at = std::find(members_.begin(), members_.end(), member);
    return at == members_.end() ? nullptr : &gone_[size_t(at - members_.begin())];
}

// Restarts the count of stalls, because data sent before the news may still be in transit.
// Operations that wait for a rank that was gone earlier get no extra time; otherwise ranks that
// tell each other their findings would time out one after the other.
void Communicator::look_again(const Gone *news) {
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
void Communicator::member_lost(uint32_t member, const char *text, bool silent) {
    Gone *rank = gone(member);
    if (rank == nullptr) return;
    any_gone_ = true;
    failed_[size_t(rank - gone_.data())] = true;
    *rank = {.why = text, .known = true, .lost = true, .over = rank->over || silent};
    look_again(rank);
}

void Communicator::member_left(uint32_t member) {
    Gone *rank = gone(member);
    if (rank == nullptr || rank->lost) return;
    any_gone_ = true;
    rank->known = true; // better evidence than a broken connection
    rank->why = "rank " + std::to_string(rank - gone_.data()) + " has left the job";
    look_again(rank);
}

void Communicator::peer_broken(uint32_t member, const char *text, bool over) {
    Gone *rank = gone(member);
    if (rank == nullptr) return;
    any_gone_ = true;
    rank->over |= over;
    if (rank->why.empty()) rank->why = "rank " + std::to_string(rank - gone_.data()) + ' ' + text;
    look_again(rank);
}

void Communicator::failed(Status status, const char *text, int32_t guilty_member, uint64_t from) {
    auto at = std::find(member_ids_.begin(), member_ids_.end(), guilty_member);
    int32_t rank = at == member_ids_.end() ? -1 : int32_t(at - member_ids_.begin());
    break_with(status, rank, text, from);
}

const Communicator::Gone *Communicator::awaited_in_vain(const engine::Operation &operation) const {
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

bool Communicator::operation_started(engine::Operation &operation) {
    operation.owner_index = uint32_t(in_flight_.size());
    in_flight_.push_back(&operation);
    if (operation.sequence < broken_from_.load(std::memory_order_relaxed)) return true;
    fail_operation(operation);
    return false;
}

void Communicator::operation_ended(engine::Operation &operation) {
    if (operation.begun_ns != 0 && !is_broken()) {
        int64_t elapsed_ns = agent_.clock().now_ns() - operation.begun_ns;
        if (explainer_ != nullptr) explainer_->ended(operation, elapsed_ns);
        if (adaptation_ != nullptr) adaptation_->ended(operation.sequence, elapsed_ns);
    }
    in_flight_[operation.owner_index] = in_flight_.back();
    in_flight_[operation.owner_index]->owner_index = operation.owner_index;
    in_flight_.pop_back();
}

void Communicator::operation_failed(engine::Operation &operation, const engine::Outcome &outcome,
                                    const char *text) {
    std::string full = text;
    if (outcome.status == DTRAIN_ERR_TIMEOUT)
        full = "rank " + std::to_string(rank_) + ": " + describe_operation(operation) + " " + text;
    const uint64_t from = operation.sequence != 0 ? operation.sequence : next_call();
    if (break_with(outcome.status, outcome.peer, full.c_str(), from)) tell_others(from);
}

void Communicator::operation_stalled(engine::Operation &operation) {
    if (const Gone *rank = awaited_in_vain(operation)) {
        const bool is_message = operation.sequence == 0;
        const uint64_t from = is_message ? next_call() : operation.sequence;
        if (break_with(DTRAIN_ERR_PEER, int32_t(rank - gone_.data()), rank->why.c_str(), from))
            tell_others(from);
        // A collective has ended and may already be destroyed.
        if (is_message) fail_operation(operation);
        return;
    }
    if (is_broken() && operation.stalls >= patient_looks) return fail_operation(operation);
    if (operation.sequence == 0 || agent_.now() - reported_ns_ < report_interval) return;
    reported_ns_ = agent_.now();
    const int64_t limit = session_->stall_limit_ns();
    report(true, limit > 0 && agent_.stuck_for() >= limit, operation.sequence);
}

// ---- comparing calls ----

void Communicator::report(bool stalled, bool stuck, uint64_t up_to) {
    std::vector<cluster::CallRecord> calls;
    {
        std::lock_guard order(order_);
        if (up_to == 0) up_to = seq_;
        uint64_t first = up_to > reported_calls ? up_to - reported_calls + 1 : 1;
        for (uint64_t seq = first; seq <= up_to; seq++)
            if (records_[seq % kept_records].seq == seq)
                calls.push_back(records_[seq % kept_records]);
    }
    (void)session_->job().report_calls(uid_, member_ids_, stalled, calls, stuck);
}

void Communicator::calls_wanted() { report(false, false, 0); }

void Communicator::rank_behind(int32_t rank, uint64_t seq) {
    int64_t now = agent_.clock().now_ns();
    for (engine::Operation *operation : in_flight_) {
        int64_t waited = now - operation->moved_ns;
        if (operation->sequence <= seq || waited < first_log) continue;
        if (logged_ns_ != 0 && now - logged_ns_ < log_interval) return;
        logged_ns_ = now;
        agent_.log().write(
            DTRAIN_LOG_WARN, "rank %u waits %lld s in %s for rank %d, whose last call was %llu",
            rank_, static_cast<long long>(waited / second), describe_operation(*operation).c_str(),
            rank, static_cast<unsigned long long>(seq));
        return;
    }
}

} // namespace dtrain::collectives
