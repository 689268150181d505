// Something that is being done: a collective, a message, a table request.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"
#include "engine/request.h"
#include "trace/record.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace dtrain::engine {

class Agent;

// What a transport reports to. Its address is the cookie of the transport's operation.
struct Completion {
    void (*done)(Completion *self, const dtrain_tp_done_t &event) = nullptr;
};

// The connection is lost for good, or was given up (CANCELED); who is to blame, if anybody, the
// control plane finds out.
constexpr bool connection_lost(Status status) {
    return (status <= DTRAIN_ERR_IO && status >= DTRAIN_ERR_PEER) || status == DTRAIN_ERR_CANCELED;
}

// All of it runs under the agent's lock, except construction. An operation ends by
// Agent::finish(), which calls dispose() and completes the request; before that nothing of it may
// be pending in a transport, since the caller gets the buffers back.
class Operation {
  public:
    // on_stack: its poster waits until the request is done, and gives up the memory then.
    explicit Operation(Request *completed, bool on_stack = false)
        : request(completed), on_stack_(on_stack) {}
    virtual ~Operation() = default;
    // The operation of a request on the heap lives in memory that the request keeps, that of one on
    // a stack on the heap. Throws std::bad_alloc.
    static void *operator new(size_t bytes, Request &completed);
    static void operator delete(Operation *operation, std::destroying_delete_t);

    // Begins; may finish at once.
    virtual void start(Agent &agent) = 0;
    // Called in every round of the agent if `polled`, else after Agent::wake(). Bounded; returns
    // how much was done (0: nothing). May finish.
    virtual int advance(Agent &agent) = 0;
    // Ends early with this failure as soon as nothing is pending any more; idempotent, the first
    // failure counts. May finish at once.
    virtual void fail(Agent &agent, const Outcome &outcome, const char *text) = 0;
    // Nothing has moved for a while.
    virtual void stalled(Agent &) {}
    // Whether something of this rank (of the owner's group) is missing.
    virtual bool waits_for(uint32_t /*rank*/) const { return false; }
    // Whether something is missing that any other rank may send.
    virtual bool waits_for_anybody() const { return false; }
    // Whether it looks for what is missing in memory of its peers, so that nothing is on its way.
    virtual bool looks_in_memory() const { return false; }
    // What is missing, in words: "rank 1 over ofi (rail 1) ..."; "": it does not know.
    virtual std::string missing() const { return {}; }
    // Its deadline has passed: it has to fail.
    virtual void timed_out(Agent &agent) = 0;
    // There is no memory for what it has to do: it has to fail.
    virtual void out_of_memory(Agent &agent, const char *text) {
        fail(agent, {.status = DTRAIN_ERR_NO_MEMORY}, text);
    }
    // What it is, for the timeline; times and outcome are the agent's. Without a name it is not
    // shown.
    virtual void describe(trace::Record &) const {}
    // Gives up the memory, before the request is completed.
    virtual void dispose();

    Request *const request;
    int32_t priority = 0;            // higher goes first; before it is posted
    int64_t time_limit_ns = -1;      // from its start on, before it is posted; negative: none
    int64_t deadline_ns = INT64_MAX; // what follows from it
    int64_t begun_ns = 0;            // when the call was made, if somebody wants to know; else 0
    int64_t moved_ns = 0;            // when something moved last
    uint32_t stalls = 0;             // how often in a row stalled() was called
    bool polled = false;             // before it is posted; from then on Agent::set_polled()
    bool resting = false;            // Agent::rest()
    uint64_t sequence = 0;           // for the owner: number of the call, 0: none
    uint32_t owner_index = 0;        // for the owner: place in a list of its own

  private:
    friend class Agent;
    const bool on_stack_;
    Operation *next_posted_ = nullptr; // in the agent's inbox
    uint32_t index_ = 0;               // in the agent's list
    bool woken_ = false;               // in the list of those to advance
    int64_t stalled_since_ns_ = 0;     // moved_ns when stalled() was called last
};

} // namespace dtrain::engine
