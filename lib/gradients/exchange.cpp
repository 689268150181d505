// The full exchange: every rank gets all ranks' reports and draws the same conclusions from them.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/negotiation.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::gradients {
namespace {

void forget(uint32_t tensor, std::vector<Report> &reports) {
    for (Report &report : reports) {
        clear(report.waiting, tensor);
        clear(report.expired, tensor);
    }
}

Bits waiting_anywhere(const std::vector<Report> &reports) {
    Bits any = reports[0].waiting;
    for (const Report &report : reports)
        for (size_t w = 0; w < any.size(); w++) any[w] |= report.waiting[w];
    return any;
}

std::string quoted(const std::string &name) {
    return '"' + (name.size() > 64 ? name.substr(0, 61) + "..." : name) + '"';
}

std::string seconds(int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", double(ns) / 1e9);
    return text;
}

} // namespace

// ---- reporting ----

size_t Negotiation::longest_report() const {
    return report_bytes(words_for(table_.size())) + size_t(limits_.fresh_bytes);
}

std::vector<uint8_t> Negotiation::announce(int64_t now_ns) {
    Report report = {
        .joins = joins_, .closes = closes_, .waiting = waiting_, .expired = {}, .fresh = {}};
    report.expired.resize(waiting_.size());
    std::vector<const Pending *> unknown;
    for (const auto &[name, pending] : pending_) {
        if (pending.agreed) continue;
        if (pending.tensor == no_tensor)
            unknown.push_back(&pending);
        else if (expired(pending, now_ns))
            set(report.expired, pending.tensor);
    }
    std::sort(unknown.begin(), unknown.end(),
              [](const Pending *a, const Pending *b) { return a->order < b->order; });
    size_t left = size_t(limits_.fresh_bytes); // what does not fit goes into the next report
    for (const Pending *pending : unknown) {
        const Submission &s = pending->submission;
        Announcement a = {s.name, s.spec, s.priority, expired(*pending, now_ns)};
        if (announcement_bytes(a) > left) break;
        left -= announcement_bytes(a);
        report.fresh.push_back(std::move(a));
    }
    return encode(report);
}

// ---- concluding ----

Status Negotiation::gathered(std::span<const std::span<const uint8_t>> bytes, int64_t now_ns,
                             Actions &actions) {
    Reports reports;
    if (Status s = read(bytes, reports); s != DTRAIN_OK) return s;
    exchanges_++;
    note_members(reports, actions);
    if (actions.closed_by >= 0) return DTRAIN_OK;
    if (Status s = make_known(reports, actions); s != DTRAIN_OK) return s;
    look_up_all();
    if (Status s = agree_on_common(reports, actions); s != DTRAIN_OK) return s;
    give_up_expired(reports, now_ns, actions);
    warn(reports, now_ns, actions);
    look_up_all();
    finish_joining(actions);
    return DTRAIN_OK;
}

Status Negotiation::read(std::span<const std::span<const uint8_t>> bytes, Reports &out) const {
    if (bytes.size() != size_t(size_))
        return fail(DTRAIN_ERR_INTERNAL, "gradients: %zu reports of %d ranks", bytes.size(), size_);
    out.resize(bytes.size());
    for (size_t r = 0; r < bytes.size(); r++)
        if (Status s = decode(bytes[r], words_for(table_.size()), out[r]); s != DTRAIN_OK)
            return fail_within(s, "rank %zu", r);
    return DTRAIN_OK;
}

void Negotiation::note_members(const Reports &reports, Actions &actions) {
    for (int32_t r = 0; r < size_; r++) {
        const Report &report = reports[size_t(r)];
        if (report.closes && actions.closed_by < 0) actions.closed_by = r;
        if (!report.joins || joined_[size_t(r)]) continue;
        joined_[size_t(r)] = true;
        joined_count_++;
        last_joined_ = r;
        if (r != rank_) continue;
        joins_ = false;
        condemned_.clear();
    }
    all_joined_ = joined_count_ == size_;
}

Status Negotiation::make_known(Reports &reports, Actions &actions) {
    std::vector<std::string> names; // in an order that is equal on all ranks
    std::unordered_map<std::string, Claims> fresh;
    for (int32_t r = 0; r < size_; r++)
        for (const Announcement &a : reports[size_t(r)].fresh) {
            Claims &claims = fresh[a.name];
            if (claims.empty()) names.push_back(a.name);
            claims.push_back({r, a.spec, a.priority, a.expired});
        }
    for (const std::string &name : names)
        if (Status s = settle(name, fresh[name], reports, actions); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

// Makes one announced tensor known, or fails it on all ranks.
Status Negotiation::settle(const std::string &name, const Claims &fresh, Reports &reports,
                           Actions &actions) {
    uint32_t i = table_.find(name);
    Claims claims = fresh;
    if (i != no_tensor) {
        if (table_[i].agreed)
            return fail(DTRAIN_ERR_CORRUPT,
                        "gradients: rank %d announces tensor \"%s\", which is being reduced",
                        fresh[0].rank, name.c_str());
        Claims known = claims_for(i, reports);
        claims.insert(claims.begin(), known.begin(), known.end());
    }
    for (const Claim &other : claims)
        if (other.spec != claims[0].spec) {
            if (i != no_tensor) remove(i, reports);
            fail_tensor(name, DTRAIN_ERR_MISMATCH, difference(name, claims[0], other), actions);
            return DTRAIN_OK;
        }
    if (i == no_tensor)
        i = table_.add(name, table_.full() ? waiting_anywhere(reports) : Bits{}, cycle_);
    if (i == no_tensor) {
        fail_tensor(name, DTRAIN_ERR_LIMIT,
                    "gradients: tensor " + quoted(name) + ": " + std::to_string(max_tensors) +
                        " other tensors are already waiting",
                    actions);
        return DTRAIN_OK;
    }
    Tensor &tensor = table_[i];
    tensor.spec = fresh[0].spec;
    tensor.priority = fresh[0].priority;
    tensor.owner = fresh[0].rank;
    tensor.used = cycle_;
    for (Report &report : reports) {
        report.waiting.resize(words_for(table_.size()));
        report.expired.resize(words_for(table_.size()));
    }
    for (const Claim &claim : fresh) {
        set(reports[size_t(claim.rank)].waiting, i);
        if (claim.expired) set(reports[size_t(claim.rank)].expired, i);
    }
    return DTRAIN_OK;
}

std::string Negotiation::difference(const std::string &name, const Claim &a, const Claim &b) {
    return "gradients: tensor " + quoted(name) + ": rank " + std::to_string(a.rank) +
           " submitted " + describe(a.spec) + ", rank " + std::to_string(b.rank) + " " +
           describe(b.spec);
}

// Removes the tensor. Another tensor may get its number in the same exchange.
void Negotiation::remove(uint32_t tensor, Reports &reports) {
    forget(tensor, reports);
    table_.remove(tensor);
}

Negotiation::Claims Negotiation::claims_for(uint32_t tensor, const Reports &reports) const {
    Claims claims;
    for (int32_t r = 0; r < size_; r++)
        if (get(reports[size_t(r)].waiting, tensor))
            claims.push_back({.rank = r, .spec = table_[tensor].spec});
    return claims;
}

// Agrees on tensors that wait on all ranks. The next cycle would find the same, except for ranks
// that joined in this exchange: once the last has joined, no further rank is waited for.
Status Negotiation::agree_on_common(Reports &reports, Actions &actions) {
    Bits all = waiting_anywhere(reports);
    for (size_t r = 0; r < reports.size(); r++)
        for (size_t w = 0; w < all.size() && !joined_[r]; w++) all[w] &= reports[r].waiting[w];
    Status s = DTRAIN_OK;
    for_each_bit(all, [&](uint32_t i) {
        if (s == DTRAIN_OK) s = agree(i, joined_count_ > 0, actions);
        forget(i, reports);
    });
    return s;
}

void Negotiation::give_up_expired(Reports &reports, int64_t now_ns, Actions &actions) {
    Bits over(waiting_.size());
    for (const Report &report : reports)
        for (size_t w = 0; w < over.size(); w++) over[w] |= report.expired[w];
    for_each_bit(over, [&](uint32_t i) {
        // A peer may have sent a wrong report.
        if (i >= table_.size() || table_[i].name.empty() || table_[i].agreed) return;
        const std::string name = table_[i].name;
        std::string text =
            "gradients: tensor " + quoted(name) + ": not submitted by " + missing(i, reports);
        for (int32_t r = 0; r < size_; r++)
            if (get(reports[size_t(r)].expired, i)) {
                text += "; rank " + std::to_string(r) + " waits no longer";
                break;
            }
        if (auto at = pending_.find(name); at != pending_.end())
            text += ", submitted on this rank " +
                    seconds(now_ns - at->second.submission.submitted_ns) + " ago";
        remove(i, reports);
        fail_tensor(name, DTRAIN_ERR_TIMEOUT, text, actions);
    });
}

std::string Negotiation::missing(uint32_t tensor, const Reports &reports) const {
    std::vector<bool> ranks(joined_.size());
    for (size_t r = 0; r < ranks.size(); r++)
        ranks[r] = !joined_[r] && !get(reports[r].waiting, tensor);
    return ranks_text(ranks);
}

void Negotiation::warn(const Reports &reports, int64_t now_ns, Actions &actions) {
    std::vector<Pending *> stalled;
    for (auto &[name, pending] : pending_) {
        int64_t told = pending.warned_ns != 0 ? pending.warned_ns : pending.submission.submitted_ns;
        if (pending.agreed || pending.tensor == no_tensor || now_ns - told < limits_.stall_warn_ns)
            continue;
        pending.warned_ns = now_ns;
        stalled.push_back(&pending);
    }
    if (stalled.empty()) return;
    std::sort(stalled.begin(), stalled.end(),
              [](const Pending *a, const Pending *b) { return a->order < b->order; });
    std::string text = "gradients: rank " + std::to_string(rank_) + " waits for others to submit";
    for (size_t i = 0; i < stalled.size() && i < listed; i++) {
        const Submission &s = stalled[i]->submission;
        text += (i > 0 ? ", " : " ") + quoted(s.name) + " (not on " +
                missing(stalled[i]->tensor, reports) + " after " +
                seconds(now_ns - s.submitted_ns) + ')';
    }
    if (stalled.size() > listed)
        text += " and " + std::to_string(stalled.size() - listed) + " more tensors";
    actions.warnings.push_back(std::move(text));
}

} // namespace dtrain::gradients
