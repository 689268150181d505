// Encodes and decodes tables and the states of functions.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/table_wire.h"

#include "dtrain_function.h"
#include "ps/table/access.h"
#include "ps/table/protocol.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dtrain::ps {
namespace {

struct StateOnWire {
    char name[32]; // NUL-terminated
    uint32_t dtype, per_row;
};
static_assert(DTRAIN_FUNCTION_STATES * sizeof(StateOnWire) <= max_told);

template <class T> void append(std::string &to, const T &value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

template <class T> void append_all(std::string &to, const std::vector<T> &values) {
    to.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

// Reads a payload piece by piece.
struct Reader {
    const char *at;
    uint64_t left;
    bool take(void *to, uint64_t bytes) {
        if (bytes > left) return false;
        if (bytes > 0) std::memcpy(to, at, bytes); // for 0 bytes `to` may be null
        at += bytes;
        left -= bytes;
        return true;
    }
    bool take(std::string &to, uint64_t bytes) {
        if (bytes > left) return false;
        to.resize(bytes);
        return take(to.data(), bytes);
    }
};

static_assert(std::is_trivially_copyable_v<Segment> && sizeof(Segment) == 17 * 8);

struct PlacementOnWire {
    uint32_t policy, virtual_nodes;
    uint64_t block, key_count, split_bytes;
    uint32_t home, weights, owners, among;
};
constexpr uint32_t most_servers = 65535;

void append(std::string &to, const Placement &p) {
    const PlacementOnWire out = {p.policy,
                                 p.virtual_nodes,
                                 p.block,
                                 p.key_count,
                                 p.split_bytes,
                                 p.home,
                                 uint32_t(p.weights.size()),
                                 uint32_t(p.owners.size()),
                                 p.among};
    append<PlacementOnWire>(to, out);
    append_all(to, p.weights);
    append_all(to, p.owners);
}

bool take(Reader &reader, Placement &p) {
    PlacementOnWire in;
    if (!reader.take(&in, sizeof in) || in.weights > most_servers || in.owners > most_blocks)
        return false;
    p = {in.policy, in.virtual_nodes, in.block, in.key_count, in.split_bytes, in.home, {},
         {},        in.among};
    p.weights.resize(in.weights);
    p.owners.resize(in.owners);
    return reader.take(p.weights.data(), in.weights * sizeof p.weights[0]) &&
           reader.take(p.owners.data(), in.owners * sizeof p.owners[0]);
}

} // namespace

std::string encode_table(const TableParams &params, std::string_view name,
                         std::string_view proofs) {
    std::string payload;
    append(payload, to_fields(params));
    append(payload, uint32_t(params.function.size()));
    append(payload, uint32_t(params.segments.size()));
    payload += params.function;
    append_all(payload, params.segments);
    append(payload, params.placement);
    append(payload, uint32_t(proofs.size() / sizeof(protection::TokenProof)));
    payload += proofs;
    payload += name;
    return payload;
}

bool decode_table(const void *payload, uint64_t bytes, TableParams &params, std::string &name,
                  uint32_t &bad, std::string_view *proofs) {
    Reader reader = {static_cast<const char *>(payload), bytes};
    TableFields fields;
    uint32_t function_bytes = 0, segments = 0;
    if (!reader.take(fields.data(), sizeof fields) ||
        !reader.take(&function_bytes, sizeof function_bytes) ||
        !reader.take(&segments, sizeof segments) || function_bytes > max_function_name ||
        segments > DTRAIN_SEGMENTS || !reader.take(params.function, function_bytes))
        return false;
    params.segments.resize(segments);
    if (!reader.take(params.segments.data(), segments * sizeof(Segment))) return false;
    uint32_t tokens = 0;
    if (!take(reader, params.placement) || !reader.take(&tokens, sizeof tokens) ||
        tokens > most_tokens)
        return false;
    const uint64_t proof_bytes = tokens * sizeof(protection::TokenProof);
    if (reader.left <= proof_bytes) return false;
    if (proofs != nullptr) *proofs = {reader.at, proof_bytes};
    reader.at += proof_bytes;
    reader.left -= proof_bytes;
    if (reader.left == 0 || reader.left > max_name) return false;
    reader.take(name, reader.left);
    bad = from_fields(fields, params);
    if (bad == field_count) bad = first_bad_field(params);
    return true;
}

uint32_t first_difference(const TableParams &a, const TableParams &b) {
    const TableFields mine = to_fields(a), other = to_fields(b);
    auto field =
        uint32_t(std::mismatch(mine.begin(), mine.end(), other.begin()).first - mine.begin());
    if (field == field_count && a.function != b.function) return function_field;
    if (field == field_count && a.segments != b.segments) return segments_field;
    if (field == field_count && a.placement != b.placement) return placement_field;
    return field;
}

std::string encode_states(const std::vector<FunctionState> &states) {
    std::string payload;
    for (const FunctionState &state : states) {
        StateOnWire out = {};
        state.name.copy(out.name, sizeof out.name - 1);
        out.dtype = state.dtype;
        out.per_row = state.per_row;
        append(payload, out);
    }
    return payload;
}

bool decode_states(const void *payload, uint64_t bytes, std::vector<FunctionState> &states) {
    if (bytes % sizeof(StateOnWire) != 0) return false;
    if (bytes / sizeof(StateOnWire) > DTRAIN_FUNCTION_STATES) return false;
    Reader reader = {static_cast<const char *>(payload), bytes};
    for (StateOnWire in; reader.take(&in, sizeof in);) {
        const std::string name(in.name, strnlen(in.name, sizeof in.name));
        const bool known =
            in.dtype == DTRAIN_F32 || in.dtype == DTRAIN_F64 || in.dtype == DTRAIN_U64;
        if (!known || in.per_row > 1 || !is_plain_name(name, sizeof in.name - 1)) return false;
        states.push_back({name, in.dtype, in.per_row != 0});
    }
    return true;
}

} // namespace dtrain::ps
