// Decides on changes of a table's mode: workers meet at a clock, and the change is made when the
// last has come.
// SPDX-License-Identifier: Apache-2.0
//
// Before, each worker has asked every server whether the change is possible, and the workers have
// agreed among themselves. A worker that has not heard from all others refuses, and the change is
// not made. A worker that is lost may have agreed or refused on some servers only. A server that
// has not heard from it does not make the change and says so; a server that has heard from all
// makes it. The remaining workers get the answers of all servers, so they know the decision: if one
// server has made the change, they tell the other servers to make it, too (mode_decided).
#pragma once
#include "ps/server/membership.h"
#include "ps/server/response.h"
#include "ps/storage/consistency.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace dtrain::ps {

// Changes are numbered by the workers (RequestHeader::pushes) from 1 on.
class ModeChange {
  public:
    struct Decision {
        enum class Verdict : uint8_t { wait, refuse, change };
        Verdict verdict = Verdict::wait;
        Answer answer = {};         // to all requests that have met, unless they wait
        RequestHeader request = {}; // has the mode and the clock of the change
    };
    explicit ModeChange(uint32_t workers) : agreed_(workers) {}

    // The answer to a request for a change that was made or refused already.
    std::optional<Answer> outcome(const RequestHeader &header) const;
    // Adds a request to the meeting, and returns the earlier one of its worker, which the worker
    // has abandoned.
    std::optional<RequestHeader> ask(const RequestHeader &header);
    // The worker refuses the change. Returns the answer to the requests that have met.
    Answer refuse(const RequestHeader &header);
    // The first present worker that has not asked yet.
    std::optional<uint32_t> absent(const Membership &members) const;
    void made(const RequestHeader &header) { made_ = header.pushes; }
    void leave(uint32_t worker) {
        std::erase_if(meeting_, [&](const RequestHeader &its) { return its.worker == worker; });
    }

    // Decides if all present workers have asked for a mode, or if a lost worker never will.
    Decision decide(const Membership &members, const Clocks &clocks) const;
    // The requests that have met; the meeting is over.
    std::vector<RequestHeader> take_meeting() { return std::exchange(meeting_, {}); }

  private:
    std::vector<uint32_t> agreed_;       // by worker: the last change that it asked for
    uint32_t made_ = 0;                  // the last change that was made
    uint32_t refused_ = 0, refuser_ = 0; // the last refused change, and by whom
    std::vector<RequestHeader> meeting_; // at most one request per worker
};

} // namespace dtrain::ps
