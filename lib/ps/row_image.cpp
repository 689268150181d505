// SPDX-License-Identifier: Apache-2.0
#include "ps/row_image.h"

#include "device/kernels.h"
#include "ps/narrow.h"
#include "ps/protocol.h"

#include <algorithm>

namespace dtrain::ps {
namespace {

constexpr uint64_t least_step = 64 << 10; // of what is reserved

} // namespace

std::vector<RowImage::Column> RowImage::columns_of(const TableParams &params) {
    const RowLayout layout(params);
    const uint32_t dtype = storage_dtype_of(params);
    const uint64_t bytes = params.dim * device::dtype_size(dtype), blocks = blocks_of(params.dim);
    std::vector<Column> all = {{"values", dtype, 0, bytes, params.dim}};
    if (bytes < layout.values)
        all.push_back(
            {"scales", DTRAIN_F32, bytes, layout.values - bytes, blocks == 1 ? 0 : blocks});
    const std::vector<StateArray> slots = slots_of(params);
    for (size_t i = 0; i < slots.size(); i++)
        all.push_back({slots[i].name, slots[i].dtype, layout.slots[i].at, layout.slots[i].bytes,
                       slots[i].by_row ? 0 : slots[i].numbers_of(params.dim)});
    if (counts_steps(params))
        all.push_back({"steps", DTRAIN_U32, layout.steps_at, sizeof(uint32_t), 0});
    return all;
}

Status RowImage::make_room(const Reserve &reserve) {
    const uint64_t own_limit = params.max_bytes > 0 ? params.max_bytes : UINT64_MAX;
    const uint64_t used = store.memory(), step = std::max(least_step, used / 8);
    if (reserved_ >= own_limit) return fail_for(Reason::table_limit, used, own_limit - used);
    if (reserved_ - used >= step)
        return fail_for(Reason::no_memory, step, 0); // it was not the limit
    const uint64_t granted = reserve(step);
    if (granted == 0) return fail_for(Reason::rows_limit, used, reserved_ - used);
    reserved_ += granted;
    store.set_limit(std::min(reserved_, own_limit));
    return DTRAIN_OK;
}

std::unique_ptr<RowImage> SparseShard::image() const {
    auto image = std::make_unique<RowImage>(params_);
    const uint64_t row = layout_.bytes, count = rows_.size();
    if (!image->keys.allocate(count * sizeof(uint64_t)) || !image->rows.allocate(count * row))
        return nullptr;
    rows_.copy(reinterpret_cast<uint64_t *>(image->keys.at(0)), image->rows.at(0));
    image->count = count;
    image->updates = updates_;
    image->rate = rule_.rate();
    return image;
}

void SparseShard::adopt(RowImage &&image) {
    rows_ = std::move(image.store);
    updates_ = image.updates;
    set_rate(image.rate);
    for (RowStore &sums : sums_) sums.clear(); // their rows may be gone
}

} // namespace dtrain::ps
