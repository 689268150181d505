// Submitting tensors, the short cycle and its results. See exchange.cpp for the full exchange.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/negotiation.h"

#include <algorithm>

namespace dtrain::gradients {
namespace {

constexpr size_t max_condemned = 1024;

// The first word: bit 0 says that this rank wants no exchange; the other bits are the number of
// exchanges so far, straight and inverted. BAND keeps both unchanged only if they are equal on all
// ranks.
constexpr uint64_t counter_mask = (uint64_t{1} << 31) - 1;
uint64_t first_word(bool quiet, uint32_t exchanges) {
    uint64_t n = exchanges & counter_mask;
    return uint64_t{quiet} | n << 1 | (~n & counter_mask) << 32;
}

bool takes_zeros(uint8_t op) { return op == DTRAIN_SUM || op == DTRAIN_AVG; }

} // namespace

Negotiation::Negotiation(int32_t rank, int32_t size, const Limits &limits)
    : rank_(rank), size_(size), limits_(limits), table_(size_t(limits.known_tensors)),
      joined_(size_t(size)) {}

// ---- this rank ----

Status Negotiation::submit(Submission submission) {
    const char *name = submission.name.c_str();
    if (has_joined())
        return fail(DTRAIN_ERR_STATE,
                    "gradients: tensor \"%s\": rank %d has joined; submit again once its join is "
                    "complete",
                    name, rank_);
    if (pending_.contains(submission.name))
        return fail(DTRAIN_ERR_BUSY,
                    "gradients: tensor \"%s\" is already submitted and not finished", name);
    if (auto at = condemned_.find(submission.name); at != condemned_.end()) {
        Condemned why = std::move(at->second);
        condemned_.erase(at);
        return fail(why.status, "%s", why.text.c_str());
    }
    if (pending_.size() >= max_pending)
        return fail(DTRAIN_ERR_LIMIT, "gradients: %zu tensors already wait; the maximum is %zu",
                    pending_.size(), max_pending);
    Pending &pending = pending_[submission.name];
    pending.submission = std::move(submission);
    pending.order = ++orders_;
    waiting_count_++;
    due_ns_ = std::min(due_ns_, next_due(pending));
    look_up(pending);
    return DTRAIN_OK;
}

void Negotiation::join() { joins_ = true; }

void Negotiation::close() { closes_ = true; }

// Only the owner can change the priority of a known tensor.
void Negotiation::look_up(Pending &pending) {
    const Submission &s = pending.submission;
    uint32_t i = table_.find(s.name);
    bool known = i != no_tensor && table_[i].spec == s.spec &&
                 (table_[i].owner != rank_ || table_[i].priority == s.priority);
    pending.tensor = known ? i : no_tensor;
    if (known)
        set(waiting_, i);
    else
        unknown_count_++;
}

void Negotiation::look_up_all() {
    waiting_.assign(words_for(table_.size()), 0);
    unknown_count_ = waiting_count_ = 0;
    due_ns_ = INT64_MAX;
    for (auto &[name, pending] : pending_) {
        if (pending.agreed) continue;
        waiting_count_++;
        due_ns_ = std::min(due_ns_, next_due(pending));
        look_up(pending);
    }
}

bool Negotiation::expired(const Pending &pending, int64_t now_ns) const {
    const Submission &s = pending.submission;
    return now_ns >= s.expires_ns || now_ns - s.submitted_ns >= limits_.stall_fail_ns;
}

int64_t Negotiation::next_due(const Pending &pending) const {
    auto after = [](int64_t from, int64_t by) {
        int64_t sum;
        return __builtin_add_overflow(from, by, &sum) ? INT64_MAX : sum;
    };
    const Submission &s = pending.submission;
    int64_t told = pending.warned_ns != 0 ? pending.warned_ns : s.submitted_ns;
    return std::min({s.expires_ns, after(s.submitted_ns, limits_.stall_fail_ns),
                     after(told, limits_.stall_warn_ns)});
}

// ---- the short cycle ----

bool Negotiation::wants_exchange() const {
    return unknown_count_ > 0 || joins_ || closes_ || query_;
}

Bits Negotiation::begin(int64_t now_ns) {
    cycle_++;
    query_ = false;
    if (now_ns >= due_ns_) {
        due_ns_ = INT64_MAX;
        for (auto &[name, pending] : pending_)
            if (!pending.agreed) due_ns_ = std::min(due_ns_, next_due(pending));
        query_ = now_ns >= due_ns_;
    }
    Bits words = {first_word(!wants_exchange(), exchanges_)};
    // Sets all bits, so that it does not hold up the others.
    if (joined_[size_t(rank_)] && !all_joined_)
        words.resize(1 + waiting_.size(), ~uint64_t{0});
    else
        words.insert(words.end(), waiting_.begin(), waiting_.end());
    return words;
}

Status Negotiation::reduced(std::span<const uint64_t> words, bool &exchange, Actions &actions) {
    exchange = (words[0] & 1) == 0;
    if (words[0] != first_word(!exchange, exchanges_))
        return fail(DTRAIN_ERR_INTERNAL, "gradients: rank %d is out of step with the other ranks",
                    rank_);
    Status s = DTRAIN_OK;
    for_each_bit(words.subspan(1), [&](uint32_t i) {
        if (s == DTRAIN_OK) s = agree(i, joined_count_ > 0, actions);
    });
    return s;
}

// Called when the tensor waits on all ranks that have not joined.
Status Negotiation::agree(uint32_t i, bool partial, Actions &actions) {
    bool exists = i < table_.size() && !table_[i].name.empty() && !table_[i].agreed;
    auto at = exists ? pending_.find(table_[i].name) : pending_.end();
    bool here = at != pending_.end() && at->second.tensor == i && !at->second.agreed;
    if (!exists || (!here && !joined_[size_t(rank_)]))
        return fail(DTRAIN_ERR_INTERNAL,
                    "gradients: the ranks agreed on tensor %u, which is not waiting on rank %d", i,
                    rank_);
    Tensor &tensor = table_[i];
    tensor.used = cycle_;
    if (partial && !takes_zeros(tensor.spec.op)) {
        fail_tensor(tensor.name, DTRAIN_ERR_UNSUPPORTED,
                    "gradients: tensor \"" + tensor.name + "\", " + describe(tensor.spec) + ": " +
                        ranks_text(joined_) + (joined_count_ == 1 ? " has" : " have") +
                        " joined; until all ranks have, only sum and avg can run",
                    actions);
        return DTRAIN_OK;
    }
    tensor.agreed = true;
    tensor.partial = partial;
    auto behind = std::upper_bound(agreed_.begin(), agreed_.end(), i, [&](uint32_t a, uint32_t b) {
        return table_[a].priority > table_[b].priority;
    });
    agreed_.insert(behind, i);
    if (!here) return DTRAIN_OK;
    at->second.agreed = true;
    waiting_count_--;
    clear(waiting_, i);
    return DTRAIN_OK;
}

std::string Negotiation::ranks_text(const std::vector<bool> &ranks) {
    std::string text;
    size_t count = 0;
    for (size_t r = 0; r < ranks.size(); r++)
        if (ranks[r] && ++count <= listed) text += (count > 1 ? ", " : "") + std::to_string(r);
    if (count > listed) text += " and " + std::to_string(count - listed) + " more";
    return (count == 1 ? "rank " : "ranks ") + text;
}

// Fails the tensor's submission on this rank, or its next submission if there is none yet.
void Negotiation::fail_tensor(const std::string &name, Status status, const std::string &text,
                              Actions &actions) {
    auto at = pending_.find(name);
    if (at == pending_.end()) {
        bool remembered = !has_joined() && condemned_.size() < max_condemned;
        if (remembered) condemned_[name] = {status, text};
        return;
    }
    Pending &pending = at->second;
    actions.failures.push_back({pending.submission.id, status, text});
    waiting_count_--;
    if (pending.tensor != no_tensor)
        clear(waiting_, pending.tensor);
    else
        unknown_count_--;
    pending_.erase(at);
}

// ---- results ----

bool Negotiation::next_bucket(Bucket &out) {
    if (agreed_.empty()) return false;
    const Tensor first = table_[agreed_[0]];
    out = {};
    out.dtype = first.spec.dtype;
    out.op = first.spec.op;
    out.in_pieces = first.partial;
    std::vector<uint32_t> others;
    for (uint32_t i : agreed_) {
        const Tensor &t = table_[i];
        uint64_t bytes = bytes_of(t.spec);
        bool fits = out.bytes < limits_.bucket_bytes && bytes <= limits_.bucket_bytes - out.bytes;
        bool same = t.spec.dtype == out.dtype && t.spec.op == out.op && t.partial == first.partial;
        if (!out.items.empty() && !(fits && same)) {
            others.push_back(i);
            continue;
        }
        auto at = pending_.find(t.name);
        bool here = at != pending_.end() && at->second.agreed;
        out.items.push_back(
            {.id = here ? at->second.submission.id : 0, .tensor = i, .bytes = bytes});
        out.bytes += bytes;
    }
    agreed_ = std::move(others);
    return true;
}

void Negotiation::finished(const Bucket &bucket, Actions &actions) {
    for (const Bucket::Item &item : bucket.items) {
        Tensor &t = table_[item.tensor];
        t.agreed = false;
        if (item.id != 0) pending_.erase(t.name);
    }
    finish_joining(actions);
}

void Negotiation::finish_joining(Actions &actions) {
    if (!all_joined_ || !agreed_.empty()) return;
    all_joined_ = false;
    actions.last_joined = last_joined_;
    joined_.assign(size_t(size_), false);
    joined_count_ = 0;
}

} // namespace dtrain::gradients
