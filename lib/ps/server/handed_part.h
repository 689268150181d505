// A part of a table as clients set it: any servers of the next generation can take it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/partition.h"
#include "ps/server/legacy.h"
#include "ps/table/item.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain::ps {

// Values or state of some elements or rows, in the format of a request that sets them.
struct HandedPiece {
    uint64_t array = 0;         // 0: values; else 1 + the index of a state array
    Range range;                // dense table: elements; sparse: 0, the number of keys
    std::vector<uint64_t> keys; // of a sparse table
    std::vector<char> numbers;

    RequestKind kind(const TableParams &params) const;
    uint64_t state() const { return array > 0 ? array - 1 : 0; } // the request's argument
    // Whether a peer may have sent it: such a table has that array, and the sizes are right.
    bool fits(const TableParams &params) const;
};

struct HandedPart {
    TableParams params; // placement.among is set
    uint32_t server = 0;
    uint64_t updates = 0;
    double rate = 0;
    std::vector<HandedPiece> pieces;
};

inline constexpr uint64_t handed_bytes = 1 << 20; // of a piece of values, about

// What a server held; nullopt: its memory could not be had. Throws std::bad_alloc.
std::optional<HandedPart> hand_over(const LegacyPart &part);

} // namespace dtrain::ps
