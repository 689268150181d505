// What happens to a communicator when something goes wrong. All under the agent's lock but abort(),
// status() and failed_ranks().
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::collectives {
namespace {

constexpr int64_t report_interval = 1 * second;
constexpr int64_t first_log = 2 * second, log_interval = 10 * second;
constexpr size_t reported_calls = 16;
// What was sent before a connection ended may still arrive, and what the control plane knows, too.
constexpr uint32_t patient_stalls = 50; // 0.1 to 0.5 s

} // namespace

bool Communicator::contains(uint32_t member) const {
    return std::find(members_.begin(), members_.end(), member) != members_.end();
}

Status Communicator::faulty() {
    if (!broken_.load(std::memory_order_acquire)) return DTRAIN_OK;
    return fail(fault_.status, "the communicator is broken: %s", fault_.text);
}

Status Communicator::status() { return faulty(); }

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
    agent_.locked([&] { break_with(DTRAIN_ERR_ABORTED, int32_t(rank_), text.c_str(), false); });
    return session_->job().abort(uid_, member_ids_, text);
}

void Communicator::break_with(Status status, int32_t guilty_rank, const char *text,
                              bool tell_others) {
    if (broken_.load(std::memory_order_relaxed)) return;
    fault_.status = status;
    fault_.rank = guilty_rank;
    std::snprintf(fault_.text, sizeof fault_.text, "%s", text);
    if (status == DTRAIN_ERR_PEER && guilty_rank >= 0) failed_[size_t(guilty_rank)] = true;
    broken_.store(true, std::memory_order_release);
    for (size_t i = in_flight_.size(); i-- > 0;)
        if (i < in_flight_.size()) fail_operation(*in_flight_[i]);
    if (!tell_others) return;
    int32_t guilty = guilty_rank >= 0 ? member_ids_[size_t(guilty_rank)] : -1;
    // The control connection may be the one that broke: then the others find out by themselves.
    (void)session_->job().fail_group(uid_, member_ids_, status, fault_.text, guilty);
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

void Communicator::member_lost(uint32_t member, Status status, const char *text) {
    auto at = std::find(members_.begin(), members_.end(), member);
    if (at == members_.end()) return;
    auto rank = uint32_t(at - members_.begin());
    failed_[rank] = true;
    break_with(status, int32_t(rank), text, false);
}

// It may have sent all that is still needed: only who waits in vain fails (operation_stalled()).
void Communicator::member_left(uint32_t member) {
    for (uint32_t r = 0; r < gone_.size(); r++)
        if (members_[r] == member) gone_[r].clear(); // tells more than that its connection broke
    note_gone(member, "has left the job");
}

void Communicator::peer_broken(uint32_t member, const char *text) { note_gone(member, text); }

// Waiting counts from now on: what came before may be on its way to be seen.
void Communicator::note_gone(uint32_t member, const char *why) {
    auto at = std::find(members_.begin(), members_.end(), member);
    if (at == members_.end()) return;
    std::string &noted = gone_[size_t(at - members_.begin())];
    if (!noted.empty()) return;
    noted = "rank " + std::to_string(at - members_.begin()) + ' ' + why;
    for (engine::Operation *operation : in_flight_) operation->stalls = 0;
}

void Communicator::failed(Status status, const char *text, int32_t guilty_member) {
    auto at = std::find(member_ids_.begin(), member_ids_.end(), guilty_member);
    int32_t rank = at == member_ids_.end() ? -1 : int32_t(at - member_ids_.begin());
    break_with(status, rank, text, false);
}

// ---- operations ----

bool Communicator::operation_started(engine::Operation &operation) {
    operation.owner_index = uint32_t(in_flight_.size());
    in_flight_.push_back(&operation);
    if (!broken_.load(std::memory_order_relaxed)) return true;
    fail_operation(operation);
    return false;
}

void Communicator::operation_ended(engine::Operation &operation) {
    if (operation.begun_ns != 0 && !broken_) {
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
    std::string whole = text;
    if (outcome.status == DTRAIN_ERR_TIMEOUT)
        whole = "rank " + std::to_string(rank_) + ": " + describe_operation(operation) + " " + text;
    break_with(outcome.status, outcome.peer, whole.c_str(), true);
}

void Communicator::operation_stalled(engine::Operation &operation) {
    for (uint32_t r = 0; r < gone_.size() && operation.stalls >= patient_stalls; r++)
        if (!gone_[r].empty() && operation.waits_for(r))
            return break_with(DTRAIN_ERR_PEER, int32_t(r), gone_[r].c_str(), true);
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
