// Methods that reduce a vector with fewer bytes on the network: state machines that neither wait
// nor communicate.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/call.h"
#include "compression/params.h"

#include <cstdint>
#include <memory>

namespace dtrain::compression {

// This rank's place in its communicator.
struct Group {
    int32_t rank = 0, size = 1;
};

// What the caller must do next for a method.
struct Action {
    enum class Kind {
        again,   // call next() again for more arithmetic
        call,    // run this collective, then call next() again
        done,    // the result is complete
        corrupt, // a rank sent invalid data; the text is in dtrain::error_text()
    };
    Kind kind = Kind::again;
    collectives::Call call = {};
    int32_t rank = -1; // the rank at fault
};

// Reduces one vector, run after run. Allocates all memory when it is made. Not thread-safe.
class Method {
  public:
    virtual ~Method() = default;
    // Begins a run: recv = sum or mean over ranks of send. Both hold the vector and may be the same
    // buffer.
    virtual void begin(const float *send, float *recv, bool average) = 0;
    // Does a bounded amount of work.
    virtual Action next() = 0;
    virtual void reset() = 0;
    virtual uint64_t sent_bytes() const = 0; // to other ranks, in one run
    virtual double kept_square() const = 0;  // squared norm of the values not sent yet
};

std::unique_ptr<Method> make_method(const Params &params, Group group);

// The bytes that a rank sends in the cheapest all-reduce of `bytes`.
constexpr uint64_t allreduce_bytes(uint64_t bytes, int32_t size) {
    return 2 * bytes / uint64_t(size) * uint64_t(size - 1);
}

// Bounded, because the agent has other work, too.
inline constexpr uint64_t elements_per_step = 64 << 10;

} // namespace dtrain::compression
