// Numbers the known tensors, and reuses the least recently used numbers.
// SPDX-License-Identifier: Apache-2.0
#include "gradients/table.h"

namespace dtrain::gradients {

uint32_t Table::find(const std::string &name) const {
    auto at = numbers_.find(name);
    return at == numbers_.end() ? no_tensor : at->second;
}

uint32_t Table::least_used(const Bits &kept, uint64_t cycle) const {
    uint32_t best = no_tensor;
    for (uint32_t i = 0; i < tensors_.size(); i++) {
        const Tensor &t = tensors_[i];
        if (t.agreed || t.used == cycle || get(kept, i)) continue;
        if (best == no_tensor || t.used < tensors_[best].used) best = i;
    }
    return best;
}

uint32_t Table::add(const std::string &name, const Bits &kept, uint64_t cycle) {
    if (full())
        if (uint32_t i = least_used(kept, cycle); i != no_tensor) remove(i);
    if (free_.empty()) {
        if (tensors_.size() >= max_tensors) return no_tensor;
        free_.push_back(uint32_t(tensors_.size()));
        tensors_.emplace_back();
    }
    uint32_t i = free_.back();
    free_.pop_back();
    tensors_[i].name = name;
    tensors_[i].used = cycle;
    numbers_.emplace(name, i);
    return i;
}

void Table::remove(uint32_t i) {
    numbers_.erase(tensors_[i].name);
    tensors_[i] = {};
    free_.push_back(i);
}

} // namespace dtrain::gradients
