// Keeps the error texts of a worker's requests.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/request_log.h"

#include <utility>

namespace dtrain::ps {

bool RequestLog::keep_text(uint64_t sequence, std::shared_ptr<const Buffer> text,
                           PeerMemory &memory) {
    const uint64_t newest = answered_->newest();
    std::erase_if(texts_, [&](const auto &old) { return old.first + request_window <= newest; });
    const uint64_t bytes = text->bytes();
    if (!memory.may_wait(bytes)) return false;
    texts_[sequence] = {std::move(text), Charge(memory, bytes)};
    return true;
}

void RequestLog::clear() {
    answered_.reset();
    texts_.clear();
}

} // namespace dtrain::ps
