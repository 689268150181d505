// A collective in shared memory, as a state machine that never waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/collective.h"
#include "collectives/window.h"
#include "engine/executor.h"

#include <cstdint>

namespace dtrain::collectives {

struct WindowCall {
    Window *window = nullptr;
    CollectiveSpec spec; // without counts of the caller's: offsets are in `blocks`
    const void *send = nullptr;
    void *recv = nullptr;
    uint32_t dtype = 0, op = 0;
    uint64_t fingerprint = 0;
    uint64_t ticket = 0;   // its turn on the window
    uint64_t number = 0;   // of the exchange
    uint64_t position = 0; // of its first byte in the rings
    uint64_t result_bytes = 0;
};

// Small and blocking ones are driven by their caller (run()), without the agent; what does not end
// soon is posted to the agent and polled there.
class WindowOperation : public engine::Operation {
  public:
    enum class Step { idle, moved, done, mismatch };

    WindowOperation(engine::Request *completed, const WindowCall &call,
                    engine::OperationListener &listener, bool on_stack);

    // Does what can be done now.
    Step step();

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void stalled(engine::Agent &agent) override;
    void timed_out(engine::Agent &agent) override;
    bool waits_for(uint32_t rank) const override;
    void dispose() override;

  protected:
    virtual Step move() = 0;                     // as step(), when it is its turn
    virtual bool lacks(uint32_t rank) const = 0; // it waits for this rank, after a move()

    const WindowCall call_;
    const uint32_t rank_, ranks_;

  private:
    engine::OperationListener &listener_;
    const bool on_stack_;
    bool reported_ = false; // a mismatch, to the listener
};

// Everyone publishes a whole contribution, reads what it needs of the others' and combines: all
// kinds, small sizes.
class WindowExchange final : public WindowOperation {
  public:
    WindowExchange(engine::Request *completed, const WindowCall &call,
                   engine::OperationListener &listener, bool on_stack)
        : WindowOperation(completed, call, listener, on_stack),
          end_(call.position + block_bytes(call.spec)) {}
    // Equal on all ranks, as is what it takes of each rank's ring: one block of so many bytes.
    static bool suits(const CollectiveSpec &spec, bool ragged, const Window &window);
    static uint64_t block_bytes(const CollectiveSpec &spec);

  private:
    Step move() override;
    bool lacks(uint32_t rank) const override { return rank == seen_; }
    bool may_publish();
    void publish();
    void combine();
    const uint8_t *contribution(uint32_t rank) const;

    const uint64_t end_; // of its bytes in the rings
    bool published_ = false;
    uint32_t seen_ = 0; // ranks below are known to have published
};

// All-reduce of anything larger: reduce-scatter and all-gather in blocks of one chunk per rank,
// three blocks in work at once.
class WindowPipeline final : public WindowOperation {
  public:
    WindowPipeline(engine::Request *completed, const WindowCall &call,
                   engine::OperationListener &listener, bool on_stack);
    static bool suits(const CollectiveSpec &spec, bool ragged);
    // What a call takes of each rank's ring.
    static uint64_t block_bytes(const CollectiveSpec &spec, const Window &window);
    static uint64_t blocks(const CollectiveSpec &spec, const Window &window);

  private:
    struct Piece {
        uint64_t offset, bytes;
    };
    Step move() override;
    bool lacks(uint32_t rank) const override;
    bool copy_in();
    int reduce_own(); // -1: mismatch
    bool copy_out();
    Piece piece(uint64_t block, uint32_t owner) const;
    uint64_t position(uint64_t block) const { return call_.position + block * chunk_ * ranks_; }
    // Where `rank` puts what it contributes to `owner`'s piece, and as the owner the result.
    uint8_t *slot(uint32_t rank, uint32_t owner, uint64_t block) const {
        return call_.window->at(rank, position(block) + owner * chunk_);
    }

    const uint64_t bytes_, chunk_, blocks_;
    uint64_t copied_ = 0, reduced_ = 0, taken_ = 0; // blocks of this call
};

} // namespace dtrain::collectives
