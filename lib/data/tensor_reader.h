// Reads a safetensors file from start to end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/input_file.h"
#include "data/safetensors.h"

namespace dtrain::data {

// Identifies a file: its size, and the CRC-32C of its index and the index's length.
struct Seal {
    uint64_t bytes = 0; // 0: unknown
    uint32_t crc = 0;
};

// Not thread-safe. Each error text names the file.
class TensorReader {
  public:
    // Reads and checks the index. DTRAIN_ERR_CORRUPT: the file differs from the known seal.
    Status open(const std::string &path, const Seal &known = {});
    const Seal &seal() const { return seal_; } // of the file that was opened
    const TensorIndex &index() const { return index_; }
    uint64_t remaining() const { return file_.remaining(); } // bytes of the data
    // Takes the next bytes of the data, size <= remaining(); valid until the next call.
    Status take(size_t size, const uint8_t *&data);
    // Puts the file's name in front of this thread's error text.
    Status within(Status status) const;

  private:
    Status read_index(const Seal &known);

    std::string path_;
    InputFile file_;
    TensorIndex index_;
    Seal seal_;
};

} // namespace dtrain::data
