// A collective in shared memory, as a state machine that never waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/collective.h"
#include "collectives/window/window.h"
#include "engine/executor.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::collectives {

struct WindowCall {
    Window *window = nullptr;
    CollectiveSpec spec;
    const void *send = nullptr;
    void *recv = nullptr;
    uint32_t dtype = 0, op = 0;
    uint64_t fingerprint = 0;
    uint64_t number = 0;   // of the operation on the window, from 1: decides its turn
    uint64_t position = 0; // of its first byte in the rings
    uint64_t ring_bytes = 0;
    uint64_t result_bytes = 0;
    uint32_t group = 0; // the communicator's tag number
};

// The caller runs small and blocking operations itself, without the agent; operations that do not
// end soon are posted to the agent, which polls them.
class WindowOperation : public engine::Operation {
  public:
    // needs_lock: only the agent can continue. broken: the operation itself failed.
    enum class Step { idle, moved, done, mismatch, needs_lock, broken };

    WindowOperation(engine::Request *completed, const WindowCall &call,
                    engine::OperationListener &listener, bool on_stack);

    // Does what is possible now, without waiting.
    Step step();

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void stalled(engine::Agent &agent) override;
    void timed_out(engine::Agent &agent) override;
    void unable(engine::Agent &agent, Status status, const char *text) override;
    bool waits_for(uint32_t rank) const override;
    bool looks_in_memory() const override { return true; }
    void describe(trace::Record &record) const override;

  protected:
    virtual Step move() = 0;                     // as step(), once it is its turn
    virtual const char *way() const = 0;         // name of the way, for the timeline
    virtual bool lacks(uint32_t rank) const = 0; // after a move(): whether it waits for this rank
    // Whether that rank's call has failed, so that its buffers may have got another use before this
    // rank last looked at them.
    bool has_given_up(uint32_t rank) const {
        const uint64_t first = call_.window->flags(rank).given_up.value.load();
        return first != 0 && first <= call_.number;
    }
    // Once it has failed: whether the others, if they run, have ended what they do to its buffers.
    virtual bool is_left_alone() { return true; }
    // What else it waits for, if it waits for no rank; or nullptr.
    virtual const char *slow_part() const { return nullptr; }

    // A header is used again some operations later. Ranks that have announced one of those in
    // between have read the older header.
    bool may_announce() {
        constexpr uint64_t in_turn = RankFlags::headers_in_turn;
        if (call_.number < in_turn || call_.window->announced >= oldest()) return true;
        // Usually the others are not so late, and then the next calls need not look.
        if (!std::exchange(has_looked_, true) && all_have_announced(call_.number - in_turn / 2))
            return true;
        return all_have_announced(oldest());
    }
    // Whether this rank keeps the header of this operation from being written.
    bool lags(uint32_t rank) const {
        return call_.number >= RankFlags::headers_in_turn && !has_announced(rank, oldest());
    }
    void announce(const void *data, uint64_t bytes) {
        Header &own = call_.window->flags(rank_).header(call_.number);
        own.fingerprint = call_.fingerprint;
        if (bytes > 0) std::memcpy(own.data, data, bytes);
        own.number.store(call_.number, std::memory_order_release);
        call_.window->ring();
    }
    enum class Peer { missing, there, differs }; // differs: the rank makes another call
    Peer look_at(uint32_t rank) const {
        const Header &of_peer = header(rank);
        if (of_peer.number.load(std::memory_order_acquire) < call_.number) return Peer::missing;
        return of_peer.fingerprint == call_.fingerprint ? Peer::there : Peer::differs;
    }
    const Header &header(uint32_t rank) const {
        return call_.window->flags(rank).header(call_.number);
    }
    bool under_lock() const { return posted_; }
    // Fails with the text of the last dtrain::fail().
    Step broken(Status status, int32_t rank) {
        broken_ = {.status = status, .peer = rank};
        return Step::broken;
    }

  private:
    struct Failure {
        engine::Outcome outcome;
        std::string text;
        int64_t patience_ns; // for others to leave its buffers alone
    };
    void end_failed(engine::Agent &agent, const engine::Outcome &outcome, const char *text);
    // The first of the operations whose headers are in use when this one's is written.
    uint64_t oldest() const { return call_.number - RankFlags::headers_in_turn + 1; }
    bool has_announced(uint32_t rank, uint64_t number) const {
        const Header &then = call_.window->flags(rank).header(number);
        return then.number.load(std::memory_order_acquire) >= number;
    }
    bool all_have_announced(uint64_t number) {
        for (uint32_t rank = 0; rank < ranks_; rank++)
            if (!has_announced(rank, number)) return false;
        call_.window->announced = number;
        return true;
    }

    // Copies of the caller's counts and displacements, if it does not wait
    std::vector<uint64_t> kept_;

  protected:
    const WindowCall call_;
    const uint32_t rank_, ranks_;

  private:
    engine::OperationListener &listener_;
    bool has_looked_ = false; // how far the others are
    bool posted_ = false;     // posted to the agent
    bool reported_ = false;   // a mismatch or failure was reported to the listener
    engine::Outcome broken_;
    std::unique_ptr<Failure> failure_; // it has failed, and will end
};

} // namespace dtrain::collectives
