// The index of a safetensors file: names, types and places of its tensors, and free text.
// SPDX-License-Identifier: Apache-2.0
//
// The file is the length of the index (8 bytes, little-endian), the index as JSON, then the bytes
// of all tensors without gaps. Source: github.com/huggingface/safetensors, README, "Format".
#pragma once
#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain::data {

struct Tensor {
    std::string name;
    uint32_t dtype = 0;            // DTRAIN_F32, ...
    std::vector<uint64_t> shape;   // row by row
    uint64_t begin = 0, bytes = 0; // in the data, after the index
};

struct TensorIndex {
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<Tensor> tensors; // in the order of the data

    const std::string *find(std::string_view key) const; // in the metadata; nullptr: there is none
    const Tensor *tensor(std::string_view name) const;
    uint64_t data_bytes() const {
        return tensors.empty() ? 0 : tensors.back().begin + tensors.back().bytes;
    }
};

inline constexpr uint64_t max_index_bytes = 1 << 20;

// What a file begins with. Names, keys and texts are printable ASCII without quotes and
// backslashes; begin and bytes of the tensors are not looked at, but follow from the shapes.
std::string index_text(const TensorIndex &index);
// The JSON of a file with so much data behind it; DTRAIN_ERR_CORRUPT says what is wrong,
// DTRAIN_ERR_UNSUPPORTED that a type is not one of ours.
Status parse_index(std::string_view json, uint64_t data_bytes, TensorIndex &out);

} // namespace dtrain::data
