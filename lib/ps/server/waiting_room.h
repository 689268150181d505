// The requests for a table that wait for a clock, for other workers or for another request.
// SPDX-License-Identifier: Apache-2.0
//
// A parked request stays until it can be answered. A held request was dropped; the server asks for
// it again when it can be handled. The note of a waiting request is charged to its worker. If the
// worker's limit has no room for it, the request is neither parked nor held, as if it had been
// lost, and the client repeats it.
#pragma once
#include "ps/server/answered.h"
#include "ps/server/peer_memory.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

class WaitingRoom {
  public:
    // entry: of the request, whose progress is set.
    void park(const RequestHeader &header, Answered::Entry &entry, PeerMemory &memory) {
        if (keep(parked_, header, memory)) entry.progress = Progress::parked;
    }
    void hold(const RequestHeader &header, Answered::Entry &entry, PeerMemory &memory) {
        if (keep(held_, header, memory)) entry.progress = Progress::held;
    }
    void forget(uint32_t worker, uint64_t sequence); // one request
    void leave(uint32_t worker);                     // all requests of the worker

    // Calls done(header) for each request in the order of arrival, and drops those for which it
    // returns true. done() must not park or hold requests.
    template <class F> void visit_parked(F &&done) { visit(parked_, done); }
    template <class F> void visit_held(F &&done) { visit(held_, done); }
    size_t size() const { return parked_.size() + held_.size(); }

  private:
    struct Waiting {
        RequestHeader header;
        Charge charge;
    };
    static bool keep(std::vector<Waiting> &list, const RequestHeader &header, PeerMemory &memory);
    template <class F> static void visit(std::vector<Waiting> &list, F &&done) {
        std::erase_if(list, [&](const Waiting &waiting) { return done(waiting.header); });
    }
    template <class F> void erase(F &&which) {
        visit(parked_, which);
        visit(held_, which);
    }

    std::vector<Waiting> parked_, held_; // together at most request_window per worker
};

} // namespace dtrain::ps
