// The neighbors in a graph exchange their vectors directly.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/shared.h"
#include "collectives/graph/graph.h"

namespace dtrain::collectives {
namespace {

// Limits the chunks of each neighbor that wait in scratch memory to be weighed. In place needs no
// more: a chunk is overwritten only when it has been sent, and for that the neighbors need only
// earlier chunks.
constexpr uint64_t chunks_ahead = 4;

} // namespace

// dst = weighted sum over the row, in the order of the ranks: if all rows of the graph are alike,
// all ranks get the same bits.
void neighbor_average(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec);
    plan.limit_messages(1, bytes);
    const std::vector<Edge> row = plan.spec.graph->row(plan.rank);
    const uint64_t in_count = row.size() - 1, chunk = std::min(plan.chunk(), bytes);
    std::vector<Extent> slots; // in_count slots per chunk, used in turn
    for (uint64_t at = 0; at < bytes && slots.size() < chunks_ahead * in_count; at += chunk)
        for (uint64_t k = 0; k < in_count; k++) slots.push_back(plan.scratch(chunk));
    size_t next = 0;
    plan.each_chunk(bytes, [&](uint64_t first, uint64_t length) {
        Extent own = plan.in(first, length);
        for (const Edge &edge : plan.spec.graph->out_of(plan.rank)) plan.send(edge.to, own);
        std::vector<Weighed> terms;
        for (const Edge &edge : row) {
            Extent src = own;
            if (edge.from != plan.rank) {
                src = slots[next++ % slots.size()].part(0, length);
                plan.recv(edge.from, src);
            }
            terms.push_back({src, edge.weight});
        }
        plan.weigh(terms, plan.out(first, length));
    });
}

void neighbor_allgather(Plan &plan) {
    uint64_t bytes = input_bytes(plan.spec), at = 0;
    plan.limit_messages(1, bytes);
    for (const Edge &edge : plan.spec.graph->out_of(plan.rank))
        plan.send(edge.to, plan.in(0, bytes));
    for (const Edge &edge : plan.spec.graph->into(plan.rank)) {
        plan.recv(edge.from, plan.out(at, bytes));
        at += bytes;
    }
}

void neighbor_alltoall(Plan &plan) {
    uint64_t bytes = plan.spec.count * plan.spec.element_bytes, to = 0, from = 0;
    plan.limit_messages(1, bytes);
    for (const Edge &edge : plan.spec.graph->out_of(plan.rank)) {
        plan.send(edge.to, plan.in(to, bytes));
        to += bytes;
    }
    for (const Edge &edge : plan.spec.graph->into(plan.rank)) {
        plan.recv(edge.from, plan.out(from, bytes));
        from += bytes;
    }
}

} // namespace dtrain::collectives
