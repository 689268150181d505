// The index of a safetensors file: names, types and places of its tensors, and free text.
// SPDX-License-Identifier: Apache-2.0
//
// The file consists of the length of the index (8 bytes, little-endian), the index as JSON, then
// the bytes of all tensors without gaps. Source: github.com/huggingface/safetensors, README,
// "Format".
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
    std::vector<uint64_t> shape;   // row-major
    uint64_t begin = 0, bytes = 0; // offset and size in the data after the index
};

struct TensorIndex {
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<Tensor> tensors; // in the order of their data

    const std::string *find(std::string_view key) const; // in the metadata; nullptr: not found
    const Tensor *tensor(std::string_view name) const;
    uint64_t data_bytes() const {
        return tensors.empty() ? 0 : tensors.back().begin + tensors.back().bytes;
    }
};

inline constexpr uint64_t max_index_bytes = 1 << 20;

// The beginning of a file. Names, keys and texts must be printable ASCII without quotes and
// backslashes. begin and bytes of the tensors are ignored: they follow from the shapes.
std::string index_text(const TensorIndex &index);
// Parses the JSON of a file with data_bytes of data after it. DTRAIN_ERR_CORRUPT: the text says
// what is wrong; DTRAIN_ERR_UNSUPPORTED: dtrain lacks a tensor's type.
Status parse_index(std::string_view json, uint64_t data_bytes, TensorIndex &out);

} // namespace dtrain::data
