// Events of the Trace Event Format, which Chrome's about:tracing and Perfetto read.
// SPDX-License-Identifier: Apache-2.0
//
// One JSON object per line, each with its comma: the file is an array that readers accept without
// its end, so nothing is lost with a process that is killed.
#pragma once
#include "trace/record.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::trace {

// Lanes of one row of tracks: things that overlap in time must not lie on the same track.
class Lanes {
  public:
    // For records in any order of their ends; the last lane takes what overlaps too often.
    uint32_t place(int64_t begin_ns, int64_t end_ns);
    static constexpr uint32_t most = 32;

  private:
    std::vector<int64_t> ends_;
};

void append_quoted(std::string &out, std::string_view text); // with JSON's escapes; not UTF-8: '?'
void append_record(std::string &out, const Record &record, int32_t pid, uint32_t tid);
// {"ph":"M"...} with one argument; `value` is JSON.
void append_meta(std::string &out, std::string_view name, int32_t pid, uint32_t tid,
                 std::string_view argument, std::string_view value);

} // namespace dtrain::trace
