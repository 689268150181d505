// The checker's symbolic data: which contributions an element consists of.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"

#include "base/hash.h"

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::collectives {

// `sum` identifies the contributions, in any order; `shape` also identifies how they were combined,
// except which operand came first.
struct Symbol {
    uint64_t sum = 0, shape = 0; // shape 0: undefined
    bool defined() const { return shape != 0; }
    bool operator==(const Symbol &) const = default;
};

constexpr Symbol symbol_of(int32_t rank, uint64_t element) {
    uint64_t id = mix(mix(uint64_t(rank) + 1) + element);
    return {id, id | 1};
}
constexpr Symbol combined(Symbol a, Symbol b) {
    return {a.sum + b.sum, mix(a.shape + b.shape) | 1};
}
constexpr Symbol averaged(Symbol a) { return {mix(a.sum), mix(a.shape) | 1}; }
// Adds the next part of a weighted sum, for which the order counts.
constexpr Symbol weighed(Symbol sum, Symbol part, double weight) {
    uint64_t w = mix(std::bit_cast<uint64_t>(weight));
    return {mix(sum.sum) + mix(part.sum + w), mix(mix(sum.shape) + mix(part.shape + w)) | 1};
}

// One rank's buffers, in elements.
class SymbolMemory {
  public:
    SymbolMemory(const CollectiveSpec &spec, uint64_t scratch_bytes);

    uint64_t size_of(engine::Space space) const { return sizes_[size_t(space)]; }
    // The address of an element. Two spaces share memory where their addresses are equal.
    uint64_t address(engine::Space space, uint64_t element) const {
        return bases_[size_t(space)] + element;
    }
    Symbol *at(engine::Place place) {
        return cells_.data() + address(place.space, place.offset / element_bytes_);
    }
    const std::vector<Symbol> &cells() const { return cells_; }

  private:
    uint64_t element_bytes_;
    uint64_t sizes_[3], bases_[3]; // by space
    std::vector<Symbol> cells_;
};

// The values that each rank's buffers (without scratch) must hold in the end.
class Expectation {
  public:
    explicit Expectation(std::span<const CollectiveSpec> specs);

    // Compares the memory of `rank`. ERR_INVALID names the first wrong element and what is wrong
    // with it.
    Status compare(int32_t rank, const SymbolMemory &memory);

  private:
    Symbol sum_of(uint64_t element) const;
    void expect_block(const CollectiveSpec &from, uint64_t source, uint64_t bytes, uint64_t target);
    void expect_output(const CollectiveSpec &spec);
    void expect_from_neighbors(const CollectiveSpec &spec);
    Status explain(const CollectiveSpec &spec, uint64_t element, Symbol got, Symbol want) const;

    std::span<const CollectiveSpec> specs_;
    std::vector<Symbol> totals_; // all-reduce: taken from the first rank compared
    std::vector<Symbol> output_; // of the rank being compared; undefined: must stay untouched
};

} // namespace dtrain::collectives
