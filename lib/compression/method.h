// How a vector is reduced with less on the wire: state machines that never wait nor communicate.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/call/call.h"
#include "compression/params.h"

#include <cstdint>
#include <memory>

namespace dtrain::compression {

// This rank in its communicator.
struct Group {
    int32_t rank = 0, size = 1;
};

// What a method wants next.
struct Action {
    enum class Kind {
        again,   // more arithmetic: call next() again
        call,    // next() again once this collective is done
        done,    // the result is there
        corrupt, // a rank sent what cannot be; the text is in dtrain::error_text()
    };
    Kind kind = Kind::again;
    collectives::Call call = {};
    int32_t rank = -1; // the guilty one
};

// One vector's reduction, run after run. All memory is allocated when it is made. Not thread-safe.
class Method {
  public:
    virtual ~Method() = default;
    // A run: recv = sum or mean over ranks of send; both hold the vector and may be the same.
    virtual void begin(const float *send, float *recv, bool average) = 0;
    // A bounded amount of work.
    virtual Action next() = 0;
    virtual void reset() = 0;
    virtual uint64_t sent_bytes() const = 0; // to other ranks, of one run
    virtual double kept_square() const = 0;  // squared norm of what was not sent yet
};

std::unique_ptr<Method> make_method(const Params &params, Group group);

// What the cheapest all-reduce of `bytes` makes a rank send.
constexpr uint64_t allreduce_bytes(uint64_t bytes, int32_t size) {
    return 2 * bytes / uint64_t(size) * uint64_t(size - 1);
}

inline constexpr uint64_t elements_per_step = 64 << 10; // the agent has other work, too

} // namespace dtrain::compression
