// Compares what the ranks want: first by a hash, and in full only if the hashes differ.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/agreement.h"

#include "base/hash.h"
#include "cluster/control/calls.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace dtrain::collectives {
namespace {

constexpr uint32_t max_text = 64 << 10; // limit of one rank's text, in bytes
constexpr size_t shown_bytes = 150;     // limit of a line in an error, in bytes

struct Said {
    Status status = DTRAIN_OK;
    std::string text;
};

uint64_t hash_of(std::string_view text) {
    uint64_t hash = mix(text.size());
    for (const char c : text) hash = mix(hash, uint8_t(c));
    return hash;
}

std::string_view take_line(std::string_view &text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line.empty() ? "nothing" : line;
}

Status differs(const char *call, std::string_view first, size_t rank, std::string_view other) {
    std::string_view a, b;
    do {
        a = take_line(first);
        b = take_line(other);
    } while (a == b && !(first.empty() && other.empty()));
    return fail(DTRAIN_ERR_MISMATCH, "%s: rank 0 gives %.*s, rank %zu %.*s", call,
                int(std::min(a.size(), shown_bytes)), a.data(), rank,
                int(std::min(b.size(), shown_bytes)), b.data());
}

// Gathers the statements of all ranks. Their sizes come from other processes, so they are bounded.
Status gather(Communicator &comm, int64_t deadline_ns, Status status, const std::string &text,
              std::vector<Said> &all) {
    struct Head {
        int32_t status;
        uint32_t bytes;
    };
    const Head mine = {status, uint32_t(std::min<size_t>(text.size(), max_text))};
    std::vector<Head> heads(size_t(comm.size()));
    Status s = comm.run_until({.kind = Kind::allgather,
                               .send = &mine,
                               .recv = heads.data(),
                               .count = sizeof mine,
                               .dtype = DTRAIN_U8},
                              deadline_ns);
    if (s != DTRAIN_OK) return s;
    std::vector<uint64_t> counts;
    uint64_t total = 0;
    for (const Head &head : heads) {
        counts.push_back(std::min(head.bytes, max_text));
        total += counts.back();
    }
    std::string texts(total, ' ');
    s = comm.run_until({.kind = Kind::allgather,
                        .ragged = true,
                        .send = text.data(),
                        .recv = texts.data(),
                        .counts = counts.data(),
                        .dtype = DTRAIN_U8},
                       deadline_ns);
    uint64_t begin = 0;
    for (size_t r = 0; r < heads.size(); begin += counts[r++])
        all.push_back({std::clamp(heads[r].status, Status{DTRAIN_ERR_INTERNAL}, Status{DTRAIN_OK}),
                       texts.substr(begin, counts[r])});
    return s;
}

Status judge(const char *call, const std::vector<Said> &all) {
    for (size_t r = 0; r < all.size(); r++)
        if (all[r].status != DTRAIN_OK)
            return fail(all[r].status, "%s: rank %zu cannot take part: %s", call, r,
                        all[r].text.c_str());
    for (size_t r = 1; r < all.size(); r++)
        if (all[r].text != all[0].text) return differs(call, all[0].text, r, all[r].text);
    return fail(DTRAIN_ERR_MISMATCH, "%s: the ranks give different arguments", call);
}

} // namespace

Agreement &Agreement::check(Status status) {
    if (status == DTRAIN_OK || refused()) return *this;
    status_ = status;
    text_ = error_text();
    return *this;
}

Agreement &Agreement::add(std::string_view name, std::string_view value) {
    if (!refused()) text_.append(name).append(" ").append(value).append("\n");
    return *this;
}

Agreement &Agreement::add(std::string_view name, uint64_t value) {
    return add(name, std::to_string(value));
}

Agreement &Agreement::add(std::string_view name, double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    return add(name, digits);
}

Status Agreement::own() const { return fail(status_, "%s", text_.c_str()); }

Status Agreement::reach(Communicator &comm, int64_t deadline_ns) const {
    Status s = comm.note_call({.kind = call_});
    if (s == DTRAIN_OK && comm.size() > 1) s = compare(comm, deadline_ns);
    return refused() ? own() : s;
}

Status Agreement::compare(Communicator &comm, int64_t deadline_ns) const {
    const uint64_t hash = hash_of(text_), mine[] = {refused(), hash, ~hash};
    uint64_t most[std::size(mine)] = {};
    Status s = comm.run_until({.kind = Kind::allreduce,
                               .send = mine,
                               .recv = most,
                               .count = std::size(mine),
                               .dtype = DTRAIN_U64,
                               .op = DTRAIN_MAX},
                              deadline_ns);
    if (s == DTRAIN_OK && most[0] == 0 && most[1] == ~most[2]) return DTRAIN_OK;
    std::vector<Said> all;
    if (s == DTRAIN_OK) s = gather(comm, deadline_ns, status_, text_, all);
    const char *call = cluster::name(call_);
    return s == DTRAIN_OK ? judge(call, all) : fail_within(s, "%s", call);
}

Status refuse(Communicator &comm, cluster::CallKind call, Status status) {
    return Agreement(call).check(status).reach(comm, comm.deadline(0));
}

} // namespace dtrain::collectives
