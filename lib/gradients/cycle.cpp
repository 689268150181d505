// A gradient queue's thread: decides when a cycle is due, and runs it.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/queue.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace dtrain::gradients {
namespace {

constexpr int64_t heartbeat = 1 * second; // pause of a rank without news
// Limit of the pause, which grows while cycles bring nothing because other ranks submitted other
// tensors.
constexpr int64_t longest_patience = 10 * ms;
constexpr int64_t shortest_patience = 100 * us;

} // namespace

void Queue::run() {
    Status s;
    try {
        s = live();
    } catch (const std::exception &e) { // from the standard library: dtrain throws none
        s = fail(DTRAIN_ERR_NO_MEMORY, "gradients: %s", e.what());
    }
    std::string text = error_text();
    // Tells the other ranks, which wait for this one, about an error that only this rank knows.
    if (s != DTRAIN_ERR_CANCELED && !communicator_->is_broken())
        (void)communicator_->abort(text.c_str());
    end(s, text);
}

Status Queue::live() {
    for (;;) {
        wait_until_due();
        if (Status s = cycle(); s != DTRAIN_OK) return s;
        if (Status s = reduce_next(); s != DTRAIN_OK) return s;
    }
}

void Queue::wait_until_due() {
    std::unique_lock lock(mutex_);
    for (;;) {
        int64_t now = agent_.clock().now_ns();
        int64_t pause = heartbeat;
        if (news_)
            pause = cycle_ns_;
        else if (negotiation_.has_waiting())
            pause = std::max(cycle_ns_, patience_ns_);
        int64_t left = begun_ns_ + pause - now;
        if (left <= 0 || urgent_ || negotiation_.must_go_on()) return;
        changed_.wait_for(lock, std::chrono::nanoseconds(left));
    }
}

// When the first of the tensors and joins that wait is out of time.
void Queue::note_what_is_due() {
    int64_t due_ns = INT64_MAX;
    for (const auto &[id, work] : work_) due_ns = std::min(due_ns, work.expires_ns);
    for (const Joining &joining : joins_) due_ns = std::min(due_ns, joining.expires_ns);
    due_ns_ = due_ns;
}

Status Queue::cycle() {
    Bits words;
    {
        std::lock_guard lock(mutex_);
        begun_ns_ = agent_.clock().now_ns();
        note_what_is_due();
        bool hopeful = news_ || productive_;
        patience_ns_ = hopeful ? shortest_patience
                               : std::clamp(2 * patience_ns_, shortest_patience, longest_patience);
        productive_ = news_ = urgent_ = false;
        words = negotiation_.begin(begun_ns_);
    }
    collectives::Call call = {.kind = collectives::Kind::allreduce,
                              .send = words.data(),
                              .recv = words.data(),
                              .count = words.size(),
                              .dtype = DTRAIN_U64,
                              .op = DTRAIN_BAND};
    if (Status s = communicator_->run(call, timeout_ns_, &due_ns_); s != DTRAIN_OK) return s;
    Actions actions;
    bool exchange = false;
    Status s;
    {
        std::lock_guard lock(mutex_);
        s = negotiation_.reduced(words, exchange, actions);
        stats_.cycles++;
        stats_.exchanges += exchange;
    }
    if (s == DTRAIN_OK && exchange) s = exchange_reports(actions);
    carry_out(actions);
    if (s == DTRAIN_OK && actions.closed_by >= 0)
        s = fail(DTRAIN_ERR_CANCELED, "rank %d destroyed its gradient queue", actions.closed_by);
    return s;
}

Status Queue::exchange_reports(Actions &actions) {
    std::vector<uint8_t> mine, packed;
    size_t longest;
    {
        std::lock_guard lock(mutex_);
        mine = negotiation_.announce(agent_.clock().now_ns());
        longest = negotiation_.longest_report();
    }
    std::vector<std::span<const uint8_t>> reports;
    if (Status s = gather(mine, longest, packed, reports); s != DTRAIN_OK) return s;
    std::lock_guard lock(mutex_);
    return negotiation_.gathered(reports, agent_.clock().now_ns(), actions);
}

// The spans in `reports` refer to `packed`, in rank order.
Status Queue::gather(const std::vector<uint8_t> &mine, size_t longest, std::vector<uint8_t> &packed,
                     std::vector<std::span<const uint8_t>> &reports) {
    std::vector<uint64_t> lengths(size_t(communicator_->size()));
    uint64_t own = mine.size(), total = 0;
    collectives::Call call = {.kind = collectives::Kind::allgather,
                              .send = &own,
                              .recv = lengths.data(),
                              .count = sizeof own};
    if (Status s = communicator_->run(call, timeout_ns_, &due_ns_); s != DTRAIN_OK) return s;
    for (size_t r = 0; r < lengths.size(); r++) {
        if (lengths[r] > longest)
            return fail(DTRAIN_ERR_CORRUPT,
                        "gradients: a report of %llu bytes from rank %zu; the maximum is %zu bytes",
                        static_cast<unsigned long long>(lengths[r]), r, longest);
        total += lengths[r];
    }
    packed.resize(total);
    call = {.kind = collectives::Kind::allgather,
            .ragged = true,
            .send = mine.data(),
            .recv = packed.data(),
            .count = own,
            .counts = lengths.data()};
    if (Status s = communicator_->run(call, timeout_ns_, &due_ns_); s != DTRAIN_OK) return s;
    const uint8_t *from = packed.data();
    for (uint64_t length : lengths) {
        reports.emplace_back(from, length);
        from += length;
    }
    return DTRAIN_OK;
}

// Reduces only one bucket, because tensors that became ready meanwhile may be more urgent.
Status Queue::reduce_next() {
    Bucket bucket;
    std::vector<Buffers> buffers;
    {
        std::lock_guard lock(mutex_);
        if (!negotiation_.next_bucket(bucket)) return DTRAIN_OK;
        note_what_is_due();
        for (const Bucket::Item &item : bucket.items)
            buffers.push_back(item.id != 0 ? work_.at(item.id).buffers : Buffers{});
    }
    productive_ = true;
    if (Status s = reducer_.reduce(bucket, buffers); s != DTRAIN_OK) return s;
    Actions actions;
    std::vector<Ended> ended;
    {
        std::lock_guard lock(mutex_);
        negotiation_.finished(bucket, actions);
        for (const Bucket::Item &item : bucket.items) {
            if (item.id == 0) continue;
            ended.push_back({work_.at(item.id).request, {.bytes = item.bytes}, ""});
            work_.erase(item.id);
        }
        stats_.buckets++;
        stats_.tensors += ended.size();
        if (bucket.items.size() > 1) {
            stats_.fused_tensors += ended.size();
            stats_.fused_bytes += bucket.bytes;
        }
    }
    complete(ended);
    carry_out(actions);
    return DTRAIN_OK;
}

// ---- ends ----

void Queue::carry_out(const Actions &actions) {
    std::vector<Ended> ended;
    {
        std::lock_guard lock(mutex_);
        for (const Actions::Failure &f : actions.failures) {
            ended.push_back({work_.at(f.id).request, {.status = f.status}, f.text});
            work_.erase(f.id);
        }
        if (actions.last_joined >= 0) {
            for (const Joining &j : joins_)
                ended.push_back({j.request, {.peer = actions.last_joined}, ""});
            joins_.clear();
        }
        int64_t now = agent_.clock().now_ns();
        std::erase_if(joins_, [&](const Joining &j) {
            if (now < j.expires_ns) return false;
            ended.push_back(
                {j.request,
                 {.status = DTRAIN_ERR_TIMEOUT},
                 "gradients: join: timed out; other ranks still submit tensors. This rank "
                 "stays joined; call join again"});
            return true;
        });
        stats_.stalls += actions.warnings.size();
    }
    for (const std::string &line : actions.warnings)
        agent_.log().write_line(DTRAIN_LOG_WARN, line.c_str());
    complete(ended);
}

void Queue::end(Status status, const std::string &text) {
    std::vector<int32_t> failed = communicator_->failed_ranks();
    engine::Outcome outcome = {.status = status, .peer = failed.empty() ? -1 : failed[0]};
    std::vector<Ended> ended;
    {
        std::lock_guard lock(mutex_);
        ended_ = status;
        ended_text_ = text;
        for (auto &[id, work] : work_) ended.push_back({work.request, outcome, text});
        for (const Joining &j : joins_) ended.push_back({j.request, outcome, text});
        work_.clear();
        joins_.clear();
    }
    complete(ended);
}

void Queue::complete(std::vector<Ended> &ended) {
    for (Ended &e : ended) {
        e.request->set_error(e.text.c_str());
        agent_.complete(*e.request, e.outcome);
    }
}

} // namespace dtrain::gradients
