// A collective as data: what one rank does, step by step.
// SPDX-License-Identifier: Apache-2.0
//
// Builders (lib/collectives) make schedules. The executor (executor.h) runs them over any transport
// and memory; the checker and the pricer (lib/collectives) run them without a network.
#pragma once
#include <cstdint>
#include <vector>

namespace dtrain::engine {

enum class StepKind : uint8_t {
    send, // src -> peer
    recv, // peer -> dst
    // peer -> staging of the executor; then dst = src op staging; src is dst, or does not overlap
    // it (then dst itself may be the staging).
    recv_reduce,
    copy,   // dst = src
    reduce, // dst = dst op src
    scale,  // dst = dst / number of ranks (AVG; each element exactly once, when its sum is final)
    // ADASUM. Of the vectors in src and dst, a is the one of the lower rank (own or `peer`).
    dots,     // sums = {a.a, b.b, a.b}
    add_sums, // dst += src, three doubles
    blend,    // dst = a (1 - a.b / 2 a.a) + b (1 - a.b / 2 b.b), by sums
    weigh,    // dst = sum of the terms, added in their order; dst may be one of them
    // Comparing results (collectives/schedule/comparison.h).
    hash,   // dst = hash of src, eight bytes
    compare // the run fails if src, this rank's hash, is not equal to those of its neighbors (dst)
};

// The memory that a step accesses: the caller's send buffer (never written), the caller's receive
// buffer, or the schedule's scratch memory. In place, input and output share memory as dtrain.h
// says for each collective, and steps that would copy within it are left out.
enum class Space : uint8_t { input, output, scratch };

struct Place {
    Space space = Space::output;
    uint64_t offset = 0; // bytes
};

// One summand of a weighted sum.
struct Term {
    Place src;
    double weight = 0;
};

struct Step {
    StepKind kind = StepKind::copy;
    int32_t peer = -1; // rank in the communicator; send, recv, recv_reduce, dots, blend, compare
    Place src, dst;
    uint64_t sums = 0; // offset in scratch of three doubles; dots, blend
    // Positive (dots: may be 0); a multiple of the element size in steps that reduce.
    uint64_t bytes = 0;
    uint32_t first_dep = 0;  // deps[first_dep .. first_dep + deps_count): steps that must be done
    uint32_t deps_count = 0; //   before this one starts; each has a smaller index than this one
    uint32_t message = 0;    // number of this message among those from its sender to its receiver;
                             //   both sides count 0, 1, 2, ... in the order of their steps
    uint32_t first_term = 0; // terms[first_term .. first_term + terms_count): weigh; else none
    uint32_t terms_count = 0;
};

struct Schedule {
    std::vector<Step> steps;
    std::vector<uint32_t> deps;
    std::vector<Term> terms;
    uint64_t scratch_bytes = 0;
    uint32_t max_message = 0; // number of messages of the busiest pair
};

} // namespace dtrain::engine
