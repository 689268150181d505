// Reads the TFRecords of a list of files, or the records of one shard.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/input_file.h"
#include "dtrain.h"

#include <span>
#include <vector>

namespace dtrain::data {

// Not thread-safe.
class Reader {
  public:
    // Opens each file of this shard once, so that a missing file is reported now. `params`: as in
    // dtrain.h, complete (struct_size is not checked).
    Status open(std::span<const char *const> paths, const dtrain_reader_params_t &params);
    // As dtrain_reader_next(). After a failure every call fails until rewind().
    Status next(std::span<const uint8_t> &record);
    Status rewind();

  private:
    Status open_next_file();
    Status read_record(std::span<const uint8_t> &record, bool mine);
    Status read_length(uint64_t &length);

    std::vector<std::string> paths_; // of this shard
    uint64_t max_record_ = 0;
    uint64_t stride_ = 1, first_ = 0; // of all records read, every stride-th from the first_-th on
    InputFile file_;
    size_t next_path_ = 0; // the path after the open file's
    uint64_t record_ = 0;  // index of the next record, counted over all files
    Status failure_ = DTRAIN_OK;
    std::string failure_text_;
};

} // namespace dtrain::data
