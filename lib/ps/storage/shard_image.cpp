// Allocates images of a dense shard, and lists their arrays.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard_image.h"

#include "device/kernels.h"

namespace dtrain::ps {
ShardImage::ShardImage(const TableParams &table, const Part &its_part)
    : Image(table), part(its_part), values(table, its_part.count()),
      steps(its_part.count() / counted_elements(table)) {
    rate = table.learning_rate;
}

bool ShardImage::allocate(Buffer::Pages pages) {
    auto fresh = [&](uint64_t bytes) -> std::shared_ptr<Buffer> {
        auto buffer = std::make_shared<Buffer>();
        return buffer->allocate(bytes, pages) ? buffer : nullptr;
    };
    bool all = values.allocate(pages);
    for (const StateArray &state : slots_of(params)) {
        slots.push_back(fresh(state.bytes_of(part.count())));
        all = all && slots.back() != nullptr;
    }
    return all;
}

void ShardImage::reuse(ShardImage &&other) {
    values.memory = std::move(other.values.memory);
    values.scales = std::move(other.values.scales);
    slots = std::move(other.slots);
}

bool ShardImage::lend() const {
    bool all = values.memory->lend() && (values.scales == nullptr || values.scales->lend());
    for (const auto &slot : slots) all = all && slot->lend();
    return all;
}

uint64_t ShardImage::bytes_of(const TableParams &params, uint64_t count) {
    uint64_t bytes = DenseValues(params, count).bytes();
    for (const StateArray &state : slots_of(params)) bytes += state.bytes_of(count);
    return bytes;
}

std::vector<ShardImage::Array> ShardImage::arrays_of(const TableParams &params) {
    const DenseValues values(params, 0);
    const uint32_t dtype = storage_dtype_of(params);
    std::vector<Array> all = {{"values", dtype, values.stored_size(), 1, 1, nullptr}};
    if (params.storage_dtype == DTRAIN_I8)
        all.push_back({"scales", DTRAIN_F32, values.scales_of_row() * sizeof(float), values.row(),
                       values.scales_of_row(), nullptr});
    for (const StateArray &state : state_arrays(params))
        all.push_back({state.name, state.dtype, state.size * state.numbers, state.elements,
                       state.numbers, nullptr});
    return all;
}

std::vector<ShardImage::Array> ShardImage::arrays() const {
    std::vector<Array> all = arrays_of(params);
    size_t next = 0;
    all[next++].numbers = values.at(0);
    if (values.scales != nullptr) all[next++].numbers = values.scales->at(0);
    for (const auto &slot : slots) all[next++].numbers = slot->at(0);
    return all;
}

} // namespace dtrain::ps
