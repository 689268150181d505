// An operation in progress: a collective, a message, a table request.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/clock.h"
#include "dtrain_basics.h"
#include "dtrain_transport.h"
#include "engine/gate.h"
#include "engine/posted.h"
#include "engine/request.h"
#include "trace/record.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace dtrain::engine {

// What a transport reports to. Its address is the cookie of the transport's operation.
struct Completion {
    void (*done)(Completion *self, const dtrain_tp_done_t &event) = nullptr;
};

// The connection is lost for good, or was given up (CANCELED). The control plane finds out which
// process is to blame, if any.
constexpr bool connection_lost(Status status) {
    return (status <= DTRAIN_ERR_IO && status >= DTRAIN_ERR_PEER) || status == DTRAIN_ERR_CANCELED;
}
// This process has too little memory or too few descriptors for a connection: its peer is not to
// blame.
constexpr bool is_own_lack(Status status) {
    return status == DTRAIN_ERR_NO_MEMORY || status == DTRAIN_ERR_LIMIT;
}

// All functions run under the agent's lock, except construction. An operation ends with
// Agent::finish(), which calls dispose() and completes the request. Before that, nothing of it may
// still be pending in a transport, since the caller then reuses the buffers.
class Operation : public Posted {
  public:
    // on_stack: the posting thread waits until the request is done, and frees the memory then.
    explicit Operation(Request *completed, bool on_stack = false)
        : request(completed), gate(completed->gate), on_stack_(on_stack) {}
    virtual ~Operation() = default;
    // For a request on the heap, the operation lives in memory that the request keeps; for a
    // request on a stack, on the heap. Throws std::bad_alloc.
    static void *operator new(size_t bytes, Request &completed);
    static void operator delete(Operation *operation, std::destroying_delete_t);

    // Begins the operation; may finish it at once.
    virtual void start(Agent &agent) = 0;
    // Called in every round of the agent if `polled`, else after Agent::wake(). Bounded; returns
    // the amount of work done (0: none). May finish the operation.
    virtual int advance(Agent &agent) = 0;
    // Ends the operation early, with this failure, as soon as nothing of it is pending. Idempotent:
    // the first failure counts. May finish it at once.
    virtual void fail(Agent &agent, const Outcome &outcome, const char *text) = 0;
    // Called when the operation has made no progress for a while.
    virtual void stalled(Agent &) {}
    // Whether it waits for data from this rank (of the owner's group).
    virtual bool waits_for(uint32_t /*rank*/) const { return false; }
    // Whether it waits for data that any other rank may send.
    virtual bool waits_for_anybody() const { return false; }
    // Whether it waits by reading its peers' memory, so that no message is in flight.
    virtual bool looks_in_memory() const { return false; }
    // What it waits for, in words: "rank 1 over ofi (rail 1) ..."; "": unknown.
    virtual std::string missing() const { return {}; }
    // Its deadline has passed: it must fail.
    virtual void timed_out(Agent &agent) = 0;
    // It cannot do its work (memory is lacking, an accelerator has failed): it must fail, and so
    // must its counterparts on other ranks.
    virtual void unable(Agent &agent, Status status, const char *text) {
        fail(agent, {.status = status}, text);
    }
    // Describes it for the timeline; the agent adds times and outcome. Operations without a name
    // are not shown.
    virtual void describe(trace::Record &) const {}
    // Frees the operation's memory, before the request is completed.
    virtual void dispose();

    Request *const request;
    Gate *gate;                      // nullptr: it is open (Agent::passes_gate())
    int32_t priority = 0;            // higher goes first; set before it is posted
    int64_t time_limit_ns = -1;      // from its start on; set before it is posted; negative: none
    int64_t deadline_ns = INT64_MAX; // start plus time limit
    // When another request that depends on it is out of time, which may change while it runs. It is
    // timed out then as soon as nothing has moved for due_stall. nullptr: there is none. Set before
    // it is posted.
    const std::atomic<int64_t> *due_ns = nullptr;
    static constexpr int64_t due_stall = 5 * second;
    int64_t begun_ns = 0;     // when the call was made, if the timeline needs it; else 0
    int64_t moved_ns = 0;     // when it last made progress
    uint32_t stalls = 0;      // how often in a row stalled() was called
    bool polled = false;      // set before it is posted; afterwards by Agent::set_polled()
    bool resting = false;     // set by Agent::rest()
    uint64_t sequence = 0;    // for the owner: number of the call; 0: none
    uint32_t owner_index = 0; // for the owner: place in the owner's list

  private:
    friend class Agent;
    void take(Agent &agent) final;
    const bool on_stack_;
    uint32_t index_ = 0;           // place in the agent's list
    bool woken_ = false;           // it is in the list of operations to advance
    int64_t stalled_since_ns_ = 0; // moved_ns at the last call of stalled()
};

} // namespace dtrain::engine
