// The checker's symbolic data: running steps on it, and comparing results.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/check/symbols.h"

#include "collectives/call/layout.h"
#include "collectives/graph/graph.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace dtrain::collectives {

using engine::Space;

SymbolMemory::SymbolMemory(const CollectiveSpec &spec, uint64_t scratch_bytes)
    : element_bytes_(spec.element_bytes) {
    uint64_t input = input_bytes(spec) / element_bytes_,
             output = output_bytes(spec) / element_bytes_;
    SharedBase base = spec.in_place ? in_place_base(spec) : SharedBase{0, input_bytes(spec)};
    uint64_t in_base = base.input / element_bytes_, out_base = base.output / element_bytes_;
    uint64_t user = std::max(in_base + input, out_base + output);
    uint64_t sizes[] = {input, output, scratch_bytes / element_bytes_};
    uint64_t bases[] = {in_base, out_base, user};
    std::copy(sizes, sizes + 3, sizes_);
    std::copy(bases, bases + 3, bases_);
    cells_.resize(user + size_of(Space::scratch));
    for (uint64_t i = 0; i < input; i++) cells_[address(Space::input, i)] = symbol_of(spec.rank, i);
    if (spec.kind == Kind::broadcast && spec.rank == spec.root)
        for (uint64_t i = 0; i < output; i++)
            cells_[address(Space::output, i)] = symbol_of(spec.rank, i);
    if (spec.kind == Kind::barrier) // a barrier's messages carry no data
        std::fill(cells_.begin(), cells_.end(), symbol_of(spec.rank, 0));
}

Expectation::Expectation(std::span<const CollectiveSpec> specs) : specs_(specs) {
    if (specs[0].kind != Kind::allreduce) return;
    for (uint64_t i = 0; i < specs[0].count; i++) totals_.push_back(sum_of(i));
}

Symbol Expectation::sum_of(uint64_t element) const {
    Symbol sum = symbol_of(0, element);
    if (specs_.size() == 1) return sum;
    for (int32_t rank = 1; rank < int32_t(specs_.size()); rank++)
        sum.sum += symbol_of(rank, element).sum;
    sum.shape = 0;
    if (specs_[0].average) sum.sum = mix(sum.sum);
    return sum;
}

void Expectation::expect_block(const CollectiveSpec &from, uint64_t source, uint64_t bytes,
                               uint64_t target) {
    uint64_t element = from.element_bytes;
    for (uint64_t i = 0; i < bytes / element; i++)
        output_[target / element + i] = symbol_of(from.rank, source / element + i);
}

void Expectation::expect_output(const CollectiveSpec &spec) {
    output_.assign(output_bytes(spec) / spec.element_bytes, {});
    if (output_.empty()) return;
    if (over_graph(spec.kind)) return expect_from_neighbors(spec);
    Layout blocks(spec);
    uint64_t own = blocks.offset(spec.rank);
    switch (spec.kind) {
    case Kind::allreduce: output_ = totals_; break;
    case Kind::reduce:
        for (uint64_t i = 0; i < output_.size(); i++) output_[i] = sum_of(i);
        break;
    case Kind::reduce_scatter:
        for (uint64_t i = 0; i < output_.size(); i++)
            output_[i] = sum_of(own / spec.element_bytes + i);
        break;
    case Kind::broadcast: expect_block(specs_[size_t(spec.root)], 0, output_bytes(spec), 0); break;
    case Kind::scatter:
        expect_block(specs_[size_t(spec.root)], own, blocks.bytes(spec.rank), 0);
        break;
    case Kind::allgather:
    case Kind::gather:
        for (const CollectiveSpec &from : specs_)
            expect_block(from, 0, blocks.bytes(from.rank), blocks.offset(from.rank));
        break;
    case Kind::alltoall: {
        Layout received = Layout::of_output(spec);
        for (const CollectiveSpec &from : specs_)
            expect_block(from, Layout(from).offset(spec.rank), received.bytes(from.rank),
                         received.offset(from.rank));
        break;
    }
    default: break;
    }
}

void Expectation::expect_from_neighbors(const CollectiveSpec &spec) {
    if (spec.kind == Kind::neighbor_average) {
        for (const Edge &part : spec.graph->row(spec.rank))
            for (uint64_t i = 0; i < output_.size(); i++)
                output_[i] = weighed(output_[i], symbol_of(part.from, i), part.weight);
        return;
    }
    uint64_t bytes = spec.count * spec.element_bytes, target = 0;
    for (const Edge &edge : spec.graph->into(spec.rank)) {
        std::span<const Edge> out = spec.graph->out_of(edge.from);
        uint64_t block = 0; // number of the sender's block
        while (spec.kind == Kind::neighbor_alltoall && out[block].to != spec.rank) block++;
        expect_block(specs_[size_t(edge.from)], block * bytes, bytes, target);
        target += bytes;
    }
}

Status Expectation::explain(const CollectiveSpec &spec, uint64_t element, Symbol got,
                            Symbol want) const {
    char what[64] = "holds something else";
    if (!got.defined()) snprintf(what, sizeof what, "was never written");
    if (got.defined() && got.sum == want.sum)
        snprintf(what, sizeof what, "was summed in another order than on other ranks");
    uint64_t first = spec.kind == Kind::reduce_scatter ? Layout(spec).offset(spec.rank) : 0;
    for (int32_t rank = 0; got.defined() && rank < int32_t(specs_.size()); rank++) {
        uint64_t part = symbol_of(rank, element + first / spec.element_bytes).sum;
        if (want.sum - got.sum == part) snprintf(what, sizeof what, "lacks rank %d's part", rank);
        if (got.sum - want.sum == part)
            snprintf(what, sizeof what, "has rank %d's part twice", rank);
    }
    return fail(DTRAIN_ERR_INVALID, "rank %d: element %" PRIu64 " of the output %s", spec.rank,
                element, what);
}

Status Expectation::compare(int32_t rank, const SymbolMemory &memory) {
    const CollectiveSpec &spec = specs_[size_t(rank)];
    const std::vector<Symbol> &cells = memory.cells();
    SymbolMemory before(spec, 0);
    expect_output(spec);
    uint64_t begin = memory.address(Space::output, 0);
    for (uint64_t at = 0; at < before.cells().size(); at++) {
        bool in_output = at >= begin && at - begin < output_.size();
        Symbol want = in_output ? output_[at - begin] : Symbol{};
        bool touched = want.defined() || want.sum != 0;
        if (!touched && cells[at] != before.cells()[at])
            return fail(DTRAIN_ERR_INVALID, "rank %d: memory outside of the result was written",
                        rank);
        if (!touched) continue;
        bool any_shape = !want.defined() && cells[at].defined();
        if (cells[at].sum != want.sum || (cells[at] != want && !any_shape))
            return explain(spec, at - begin, cells[at], want);
        if (any_shape && spec.kind == Kind::allreduce)
            totals_[at - begin] = cells[at]; // all other ranks must have added in this order
    }
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
