// The tensors that every rank knows, numbered alike on all of them (Horovod's response cache).
// SPDX-License-Identifier: Apache-2.0
//
// It changes only by what all ranks learn at the same time, so that all have the same.
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
    int32_t owner = 0;    // the rank that made it known, whose priority counts
    uint64_t used = 0;    // cycle in which it was agreed on or announced last
    bool agreed = false;  // ready everywhere, not reduced yet
    bool partial = false; // agreed on while some ranks had joined
};

class Table {
  public:
    explicit Table(size_t capacity) : capacity_(capacity) {}

    size_t size() const { return tensors_.size(); } // numbers are below
    Tensor &operator[](uint32_t i) { return tensors_[i]; }
    const Tensor &operator[](uint32_t i) const { return tensors_[i]; }
    uint32_t find(const std::string &name) const; // or no_tensor
    // Nothing can be added without another number, or one that is in use.
    bool full() const { return free_.empty() && tensors_.size() >= capacity_; }
    // A number for a new name: a free one, one that was not used for the longest time when there
    // are `capacity` already, or a new one. Not one whose bit in `kept` is set, or that is agreed
    // on, or was used in this cycle. no_tensor: there are max_tensors.
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
