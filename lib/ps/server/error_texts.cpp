// Copies error texts into the payloads of answers.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/error_texts.h"

#include <cstring>

namespace dtrain::ps {

Answer ErrorTexts::tell(Status status, const char *text) {
    auto kept = std::make_shared<Buffer>();
    const size_t length = strnlen(text, max_told);
    if (length == 0 || !kept->allocate(length + 1)) return {Reason::no_memory, {max_told, 0}};
    std::memcpy(kept->at(0), text, length);
    last_ = std::move(kept);
    return {Reason::told, {static_cast<uint64_t>(-status), 0}};
}

void ErrorTexts::attach(Response &response) const {
    response.payload = last_->at(0);
    response.bytes = response.header.count = std::strlen(last_->at(0));
    response.hold = last_;
}

} // namespace dtrain::ps
