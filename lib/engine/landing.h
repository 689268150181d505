// Begin and end of an operation whose buffers lie on accelerators.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/direct_buffers.h"
#include "accel/staged_buffers.h"
#include "engine/agent.h"

#include <memory>
#include <span>
#include <vector>

namespace dtrain::engine {

// Belongs to a request whose operation runs on staged buffers. The operation begins when its input
// has been copied; when it completes the request, the landing first copies the results to the
// accelerator, and then completes it. An operation that may reach the buffers themselves decides
// once, before it uses any, whether it works on them or on the copies.
class Landing final : public Operation, public Gate {
  public:
    // How much of the results there is: all, or as many bytes as the outcome says (messages).
    enum class Results { all, received };
    // input_until_ns: when the input must be there. result_limit_ns: for the copies of the results;
    // negative: none.
    Landing(Request *completed, Agent &agent, std::shared_ptr<accel::StagedBuffers> buffers,
            Results results, int64_t input_until_ns, int64_t result_limit_ns);
    // The same for an operation that decides; nothing is copied before. It calls use_copies() or
    // use_direct(). stream: the one in whose order it runs, which staged buffers have opened, or
    // nothing.
    Landing(Request *completed, Agent &agent, std::shared_ptr<accel::StagedBuffers> buffers,
            const accel::DirectBuffers &direct, bool on_stream, int64_t input_until_ns,
            int64_t result_limit_ns);
    // Factors by which the input and the result are multiplied: the copies by the landing, as is a
    // result in a buffer of the host; buffers that the operation works on itself by that.
    struct Scale {
        uint32_t dtype = 0;
        double before = 1, after = 1;
        std::span<uint8_t> on_host; // the result
    };
    void scale_by(const Scale &scale) { scale_ = scale; }
    const Scale &scale() const { return scale_; }
    // Whether the operation must pass the gate, which is this, before it decides: it has to if its
    // buffers are in the order of a stream, which waits from now on.
    Status begin_to_decide(bool &gated);
    // Begins to copy the input, for which the operation then waits at its gate, which is this.
    Status use_copies();
    void use_direct() { choice_ = Choice::direct; }
    const accel::DirectBuffers *undecided() const {
        return choice_ == Choice::open ? &direct_ : nullptr;
    }
    // Not in the request's memory, where the operation lives.
    static void *operator new(size_t bytes) { return ::operator new(bytes); }
    static void operator delete(void *memory) { ::operator delete(memory); }

    // Gate: for operations that are posted while the input is still being copied.
    Status look() override;
    Status wait(int64_t until_ns) override;

    // Called by Request::complete(). True: the results are on their way, and the request completes
    // later. False: there are none, or they cannot be copied (then `outcome` and the request's
    // text say why); the landing is gone. Never waits.
    bool begin(Outcome &outcome);

    void start(Agent &agent) override { agent.wake(this); }
    int advance(Agent &agent) override;
    void fail(Agent &, const Outcome &, const char *) override {} // too late: it ends by itself
    void timed_out(Agent &agent) override;
    void dispose() override;

  private:
    enum class Choice { open, copies, direct };
    ~Landing() override = default;
    void end(Agent &agent, Status status);
    using Parts = std::vector<std::span<uint8_t>>; // of host memory
    bool multiply_some(Parts &parts, double factor) const;
    bool scale_some_input();

    Agent &agent_;
    const std::shared_ptr<accel::StagedBuffers> buffers_;
    const Results results_;
    int64_t input_until_ns_;
    const accel::DirectBuffers direct_;
    const bool decides_on_stream_ = false;
    bool stream_waits_ = false; // before the decision
    Scale scale_;
    Parts unscaled_;
    bool scales_ = false; // unscaled_ is what is left of the input, or of the result
    Choice choice_ = Choice::copies;
    Outcome outcome_;
    uint32_t looks_ = 0;
};

} // namespace dtrain::engine
