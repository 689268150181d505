// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/packs.h"
#include <cstring>

namespace dtrain::tensorflow {

std::vector<Piece> pack(std::span<const Tensor> tensors, bool as_bytes) {
    std::vector<Piece> pieces;
    std::vector<size_t> open; // pieces that take more members
    for (size_t i = 0; i < tensors.size(); i++) {
        const Tensor &tensor = tensors[i];
        if (tensor.elements == 0) continue;
        const uint32_t dtype = as_bytes ? uint32_t{DTRAIN_U8} : tensor.type->dtype;
        const uint64_t numbers = as_bytes ? tensor.bytes() : tensor.numbers();
        Piece *into = nullptr;
        if (tensor.bytes() <= packed_bytes) {
            for (const size_t index : open)
                if (pieces[index].dtype == dtype &&
                    (pieces[index].numbers + numbers) * dtrain_dtype_size(dtype) <= block_bytes)
                    into = &pieces[index];
            if (into == nullptr) {
                open.push_back(pieces.size());
                into = &pieces.emplace_back();
            }
        } else {
            into = &pieces.emplace_back();
        }
        into->dtype = dtype;
        into->numbers += numbers;
        into->members.push_back(i);
    }
    return pieces;
}

void gather_piece(const Piece &piece, std::span<const Tensor> tensors) {
    std::byte *to = piece.block.bytes.get();
    for (const size_t member : piece.members) {
        std::memcpy(to, tensors[member].data, tensors[member].bytes());
        to += tensors[member].bytes();
    }
}

void scatter_piece(const Piece &piece, std::span<const Tensor> tensors) {
    const std::byte *from = piece.block.bytes.get();
    for (const size_t member : piece.members) {
        std::memcpy(tensors[member].data, from, tensors[member].bytes());
        from += tensors[member].bytes();
    }
}

} // namespace dtrain::tensorflow
