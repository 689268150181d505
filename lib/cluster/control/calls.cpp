// Names of call kinds, data types and operations, and the text of a call record.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/calls.h"

#include "dtrain_basics.h"

#include <bit>
#include <cstdio>
#include <iterator>

namespace dtrain::cluster {
namespace {

constexpr const char *kinds[] = {"none",
                                 "all_reduce",
                                 "reduce",
                                 "reduce_scatter",
                                 "reduce_scatterv",
                                 "all_gather",
                                 "all_gatherv",
                                 "broadcast",
                                 "gather",
                                 "gatherv",
                                 "scatter",
                                 "scatterv",
                                 "all_to_all",
                                 "all_to_allv",
                                 "barrier",
                                 "split",
                                 "duplicate",
                                 "table_create",
                                 "postscale",
                                 "compressed_all_reduce",
                                 "neighbor_average",
                                 "neighbor_allgather",
                                 "neighbor_alltoall",
                                 "graph_create",
                                 "subset",
                                 "compressor_create",
                                 "gradients_create",
                                 "set_consistency"};
constexpr const char *dtypes[] = {"",    "f32", "f64", "f16", "bf16", "i8", "u8",
                                  "i16", "u16", "i32", "u32", "i64",  "u64"};
constexpr const char *ops[] = {"",    "sum",  "avg", "prod", "min",
                               "max", "band", "bor", "bxor", "adasum"};
static_assert(std::size(kinds) == size_t(CallKind::set_consistency) + 1);
static_assert(std::size(dtypes) == DTRAIN_U64 + 1 && std::size(ops) == DTRAIN_ADASUM + 1);

// The numbers come from other processes, so they are checked.
template <size_t n> const char *pick(const char *const (&names)[n], uint8_t i) {
    return i < n ? names[i] : "?";
}

bool has_layout(CallKind kind) {
    return kind == CallKind::reduce_scatterv || kind == CallKind::all_gatherv ||
           kind == CallKind::gatherv || kind == CallKind::scatterv;
}

} // namespace

const char *name(CallKind kind) { return pick(kinds, uint8_t(kind)); }

std::string describe(const CallRecord &record) {
    char text[128];
    int n = std::snprintf(text, sizeof text, "%s", name(record.kind));
    auto add = [&](const char *format, auto value) {
        n += std::snprintf(text + n, sizeof text - size_t(n), format, value);
    };
    if (record.dtype != 0) add(" %s", pick(dtypes, record.dtype));
    if (record.kind == CallKind::postscale)
        add(" by %.17g", std::bit_cast<double>(record.count));
    else if (has_layout(record.kind)) // the record holds only a hash of the layout
        add(" counts/displs #%08x", uint32_t(record.count));
    else if (record.dtype != 0)
        add("[%llu]", static_cast<unsigned long long>(record.count));
    else if (record.count != 0)
        add(" (%llu)", static_cast<unsigned long long>(record.count));
    if (record.op != 0) add(" %s", pick(ops, record.op));
    bool over_graph = record.kind >= CallKind::neighbor_average;
    if (record.root >= 0) add(over_graph ? " graph %d" : " root %d", record.root);
    return text;
}

} // namespace dtrain::cluster
