// Events of the Trace Event Format, which Chrome's about:tracing and Perfetto read.
// SPDX-License-Identifier: Apache-2.0
//
// Each line holds one JSON object with its comma. Readers accept the array without its end, so
// nothing is lost when the process is killed.
#pragma once
#include "trace/record.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::trace {

// The lanes of one row of tracks: records that overlap in time must be on different tracks.
class Lanes {
  public:
    // Chooses a lane for records in any order of their ends; the last lane takes records for which
    // no lane is free.
    uint32_t place(int64_t begin_ns, int64_t end_ns);
    static constexpr uint32_t most = 32;

  private:
    std::vector<int64_t> ends_;
};

// with JSON's escapes; bytes that are not UTF-8 become '?'
void append_quoted(std::string &out, std::string_view text);
void append_record(std::string &out, const Record &record, int32_t pid, uint32_t tid);
// Appends {"ph":"M"...} with one argument; `value` is JSON.
void append_meta(std::string &out, std::string_view name, int32_t pid, uint32_t tid,
                 std::string_view argument, std::string_view value);

} // namespace dtrain::trace
