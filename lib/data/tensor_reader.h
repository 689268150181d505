// A safetensors file, read from start to end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/input_file.h"
#include "data/safetensors.h"

namespace dtrain::data {

// By what a file is known: its size, and the CRC-32C of its index and the length of that.
struct Seal {
    uint64_t bytes = 0; // 0: nothing is known
    uint32_t crc = 0;
};

// Not thread-safe. Each failure names the file.
class TensorReader {
  public:
    // Reads and checks the index. DTRAIN_ERR_CORRUPT: another file than is known.
    Status open(const std::string &path, const Seal &known = {});
    const Seal &seal() const { return seal_; } // as the file is
    const TensorIndex &index() const { return index_; }
    uint64_t remaining() const { return file_.remaining(); } // of the data
    // The next bytes of the data, size <= remaining(); valid until the next call.
    Status take(size_t size, const uint8_t *&data);
    // Puts the file's name in front of this thread's text.
    Status within(Status status) const;

  private:
    Status read_index(const Seal &known);

    std::string path_;
    InputFile file_;
    TensorIndex index_;
    Seal seal_;
};

} // namespace dtrain::data
