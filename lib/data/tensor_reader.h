// A safetensors file, read from start to end.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/input_file.h"
#include "data/safetensors.h"

namespace dtrain::data {

// Not thread-safe. Each failure names the file.
class TensorReader {
  public:
    // Reads and checks the index.
    Status open(const std::string &path);
    const TensorIndex &index() const { return index_; }
    uint64_t remaining() const { return file_.remaining(); } // of the data
    // The next bytes of the data, size <= remaining(); valid until the next call.
    Status take(size_t size, const uint8_t *&data);
    // Puts the file's name in front of this thread's text.
    Status within(Status status) const;

  private:
    Status read_index();

    std::string path_;
    InputFile file_;
    TensorIndex index_;
};

} // namespace dtrain::data
