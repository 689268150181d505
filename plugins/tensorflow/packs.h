// Small tensors of one type packed into one block, so that they travel in one call.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/group.h"
#include <cstddef>
#include <vector>

namespace dtrain::tensorflow {

// Longer tensors travel without a copy: copying them takes longer than a call does.
inline constexpr uint64_t packed_bytes = 128 << 10;
// Blocks are not longer than this, so that one is packed while the one before travels.
inline constexpr uint64_t block_bytes = 4 << 20;

// Tensors that travel together: one of any length, or several short ones of one dtype.
struct Piece {
    uint32_t dtype = 0;
    uint64_t numbers = 0; // of dtype
    std::vector<size_t> members;
    Entry::Block block; // empty for one member
};

// Distributes tensors over pieces, in their order; empty ones are in none.
std::vector<Piece> pack(std::span<const Tensor> tensors, bool as_bytes);

// Copies between the members' memory and the piece's block.
void gather_piece(const Piece &piece, std::span<const Tensor> tensors);
void scatter_piece(const Piece &piece, std::span<const Tensor> tensors);

} // namespace dtrain::tensorflow
