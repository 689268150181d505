// Memory for answers that need a copy; reused once no answer holds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/buffer.h"
#include "ps/table/protocol.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

class AnswerBuffers {
  public:
    // usual: the bytes of buffers that are kept for reuse; larger ones are allocated each time.
    explicit AnswerBuffers(uint64_t usual) : usual_(usual) {}

    uint64_t bytes_for(uint64_t bytes) const { return std::max(bytes, usual_); }
    // The contents are undefined. nullptr: no memory.
    std::shared_ptr<Buffer> take(uint64_t bytes) {
        const bool usual = bytes <= usual_;
        auto unused = [](const std::shared_ptr<Buffer> &held) { return held.use_count() == 1; };
        auto spare = std::find_if(spare_.begin(), spare_.end(), unused);
        if (usual && spare != spare_.end()) return *spare;
        auto fresh = std::make_shared<Buffer>();
        if (!fresh->allocate(usual ? usual_ : bytes)) return nullptr;
        if (usual && spare_.size() < most_spare) spare_.push_back(fresh);
        return fresh;
    }

  private:
    static constexpr size_t most_spare = 2 * request_window;

    const uint64_t usual_;
    std::vector<std::shared_ptr<Buffer>> spare_;
};

} // namespace dtrain::ps
