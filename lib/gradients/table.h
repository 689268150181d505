// The tensors that every rank knows, numbered equally on all ranks (Horovod's response cache).
// SPDX-License-Identifier: Apache-2.0
//
// It is changed only by information that all ranks get at the same time, so it is equal on all
// ranks.
#pragma once
#include "gradients/bits.h"
#include "gradients/tensor.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtrain::gradients {

struct Tensor {
    std::string name; // "": the number is free
    TensorSpec spec;
    int32_t priority = 0;
    int32_t owner = 0;    // the rank that announced it, whose priority counts
    uint64_t used = 0;    // last cycle in which it was agreed on or announced
    bool agreed = false;  // waits on all ranks, not reduced yet
    bool partial = false; // agreed on after some ranks had joined
};

class Table {
  public:
    explicit Table(size_t capacity) : capacity_(capacity) {}

    size_t size() const { return tensors_.size(); } // numbers are below this
    Tensor &operator[](uint32_t i) { return tensors_[i]; }
    const Tensor &operator[](uint32_t i) const { return tensors_[i]; }
    uint32_t find(const std::string &name) const; // no_tensor: unknown
    // Whether add() would need a new number beyond the capacity, or the number of another tensor.
    bool full() const { return free_.empty() && tensors_.size() >= capacity_; }
    // Returns a number for a new name: a free one; with `capacity` tensors already, the number of
    // the least recently used one; or a new one. Never takes a number whose bit in `kept` is set,
    // that is agreed on, or that was used in this cycle. no_tensor: there are already max_tensors.
    uint32_t add(const std::string &name, const Bits &kept, uint64_t cycle);
    void remove(uint32_t i);

  private:
    uint32_t least_used(const Bits &kept, uint64_t cycle) const;

    const size_t capacity_;
    std::vector<Tensor> tensors_;
    std::vector<uint32_t> free_;
    std::unordered_map<std::string, uint32_t> numbers_;
};

} // namespace dtrain::gradients
