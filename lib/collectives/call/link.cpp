// Joins all ranks' schedules into one graph and checks that their messages fit together.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/link.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <tuple>

namespace dtrain::collectives {

using engine::Schedule;
using engine::Step;
using engine::StepKind;

namespace {

struct Message {
    int32_t from, to;
    uint32_t number, id;
    auto key() const { return std::tie(from, to, number); }
};

Status check_step(const Schedule &schedule, int32_t rank, uint32_t index, int32_t ranks) {
    const Step &step = schedule.steps[index];
    bool talks = step.kind == StepKind::send || receives(step.kind);
    if (talks && (step.peer < 0 || step.peer >= ranks || step.peer == rank))
        return fail(DTRAIN_ERR_INVALID, "%s: no such peer among %d ranks",
                    describe(rank, index, step).c_str(), ranks);
    if (step.first_dep > schedule.deps.size() ||
        step.deps_count > schedule.deps.size() - step.first_dep)
        return fail(DTRAIN_ERR_INVALID, "%s: dependencies out of range",
                    describe(rank, index, step).c_str());
    if (step.first_term > schedule.terms.size() ||
        step.terms_count > schedule.terms.size() - step.first_term ||
        (step.kind == StepKind::weigh) != (step.terms_count > 0))
        return fail(DTRAIN_ERR_INVALID, "%s: terms out of range",
                    describe(rank, index, step).c_str());
    for (uint32_t i = 0; i < step.deps_count; i++)
        if (schedule.deps[step.first_dep + i] >= index)
            return fail(DTRAIN_ERR_INVALID, "%s: depends on step %u, which is not before it",
                        describe(rank, index, step).c_str(), schedule.deps[step.first_dep + i]);
    return DTRAIN_OK;
}

// Collects a rank's messages and checks that they are numbered in the order of the steps.
Status collect(const Linked &linked, int32_t rank, std::vector<Message> &sent,
               std::vector<Message> &received) {
    std::vector<uint32_t> next_sent(linked.schedules.size()), next_received(next_sent);
    for (uint32_t id = linked.first[size_t(rank)]; id < linked.first[size_t(rank) + 1]; id++) {
        const Step &step = linked.step(id);
        bool sends = step.kind == StepKind::send;
        if (!sends && !receives(step.kind)) continue;
        uint32_t &next = (sends ? next_sent : next_received)[size_t(step.peer)];
        if (step.message != next++)
            return fail(DTRAIN_ERR_INVALID, "%s: should have message number %u",
                        describe(linked, id).c_str(), next - 1);
        if (sends)
            sent.push_back({rank, step.peer, step.message, id});
        else
            received.push_back({step.peer, rank, step.message, id});
    }
    return DTRAIN_OK;
}

Status match_messages(std::vector<Message> &sent, std::vector<Message> &received, Linked &out) {
    auto by_key = [](const Message &a, const Message &b) { return a.key() < b.key(); };
    std::sort(sent.begin(), sent.end(), by_key);
    std::sort(received.begin(), received.end(), by_key);
    for (size_t i = 0; i < sent.size() || i < received.size(); i++) {
        bool lonely_send =
            i >= received.size() || (i < sent.size() && by_key(sent[i], received[i]));
        if (lonely_send)
            return fail(DTRAIN_ERR_INVALID, "%s: is never received",
                        describe(out, sent[i].id).c_str());
        if (i >= sent.size() || by_key(received[i], sent[i]))
            return fail(DTRAIN_ERR_INVALID, "%s: is never sent",
                        describe(out, received[i].id).c_str());
        uint64_t bytes = out.step(sent[i].id).bytes, expected = out.step(received[i].id).bytes;
        if (bytes != expected)
            return fail(DTRAIN_ERR_INVALID, "%s: expects %" PRIu64 " bytes, %" PRIu64 " are sent",
                        describe(out, received[i].id).c_str(), expected, bytes);
        out.match[sent[i].id] = received[i].id;
        out.match[received[i].id] = sent[i].id;
    }
    return DTRAIN_OK;
}

void link_dependents(Linked &out) {
    out.first_dependent.assign(out.size() + 1, 0);
    auto each = [&](auto f) {
        for (uint32_t id = 0; id < out.size(); id++) {
            size_t rank = size_t(out.owner[id]);
            const Step &step = out.step(id);
            for (uint32_t i = 0; i < step.deps_count; i++)
                f(out.first[rank] + out.schedules[rank].deps[step.first_dep + i], id);
        }
    };
    each([&](uint32_t dep, uint32_t) { out.first_dependent[dep + 1]++; });
    for (uint32_t id = 0; id < out.size(); id++)
        out.first_dependent[id + 1] += out.first_dependent[id];
    out.dependents.resize(out.first_dependent.back());
    std::vector<uint32_t> next(out.first_dependent);
    each([&](uint32_t dep, uint32_t id) { out.dependents[next[dep]++] = id; });
}

} // namespace

std::string describe(int32_t rank, uint32_t index, const Step &step) {
    static constexpr const char *names[] = {
        "send to", "recv from", "recv_reduce from", "copy",  "reduce",
        "scale",   "dots",      "add_sums",         "blend", "weigh"};
    char text[128];
    const char *name = names[size_t(step.kind)];
    if (step.kind == StepKind::send || receives(step.kind))
        snprintf(text, sizeof text, "rank %d, step %u (%s rank %d, message %u)", rank, index, name,
                 step.peer, step.message);
    else
        snprintf(text, sizeof text, "rank %d, step %u (%s)", rank, index, name);
    return text;
}

std::string describe(const Linked &linked, uint32_t id) {
    int32_t rank = linked.owner[id];
    return describe(rank, id - linked.first[size_t(rank)], linked.step(id));
}

Status link(std::span<const Schedule> schedules, Linked &out) {
    out = {};
    out.schedules = schedules;
    out.first.push_back(0);
    for (const Schedule &schedule : schedules) {
        auto rank = int32_t(out.first.size() - 1);
        auto count = uint32_t(schedule.steps.size());
        for (uint32_t index = 0; index < count; index++)
            if (Status s = check_step(schedule, rank, index, int32_t(schedules.size())); s < 0)
                return s;
        out.first.push_back(out.first.back() + count);
        out.owner.resize(out.first.back(), rank);
    }
    out.match.assign(out.size(), no_step);
    std::vector<Message> sent, received;
    for (int32_t rank = 0; rank < int32_t(schedules.size()); rank++)
        if (Status s = collect(out, rank, sent, received); s < 0) return s;
    if (Status s = match_messages(sent, received, out); s < 0) return s;
    link_dependents(out);
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
