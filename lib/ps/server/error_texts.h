// The error texts that answers of a table carry as payload.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "ps/server/response.h"
#include "ps/table/buffer.h"

#include <memory>
#include <utility>

namespace dtrain::ps {

// Holds the text of the last answer whose reason is Reason::told, until the answer is made.
class ErrorTexts {
  public:
    // Makes the answer for an error, with a copy of the text.
    Answer tell(Status status, const char *text);
    // Puts the last text into a response.
    void attach(Response &response) const;
    const std::shared_ptr<const Buffer> &last() const { return last_; }
    void repeat(std::shared_ptr<const Buffer> text) { last_ = std::move(text); }

  private:
    std::shared_ptr<const Buffer> last_; // NUL-terminated
};

} // namespace dtrain::ps
