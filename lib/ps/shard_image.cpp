// SPDX-License-Identifier: Apache-2.0
#include "ps/shard_image.h"

#include "device/kernels.h"

namespace dtrain::ps {
ShardImage::ShardImage(const TableParams &table, const Range &part)
    : params(table), range(part), steps(part.count / counted_elements(table)),
      rate(table.learning_rate) {}

bool ShardImage::allocate() {
    auto fresh = [](uint64_t bytes) -> std::shared_ptr<Buffer> {
        auto buffer = std::make_shared<Buffer>();
        return buffer->allocate(bytes) ? buffer : nullptr;
    };
    values = fresh(range.count * device::dtype_size(params.dtype));
    bool all = values != nullptr;
    for (const StateArray &state : slots_of(params)) {
        slots.push_back(fresh(state.bytes_of(range.count)));
        all = all && slots.back() != nullptr;
    }
    return all;
}

std::vector<ShardImage::Array> ShardImage::arrays_of(const TableParams &params) {
    std::vector<Array> all = {
        {"values", params.dtype, device::dtype_size(params.dtype), 1, 1, nullptr}};
    for (const StateArray &state : state_arrays(params))
        all.push_back({state.name, state.dtype, state.size * state.numbers, state.elements,
                       state.numbers, nullptr});
    return all;
}

std::vector<ShardImage::Array> ShardImage::arrays() const {
    std::vector<Array> all = arrays_of(params);
    all[0].numbers = values->at(0);
    for (size_t i = 0; i < slots.size(); ++i) all[i + 1].numbers = slots[i]->at(0);
    return all;
}

} // namespace dtrain::ps
