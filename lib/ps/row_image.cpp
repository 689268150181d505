// SPDX-License-Identifier: Apache-2.0
#include "ps/row_image.h"

#include "device/kernels.h"
#include "ps/narrow.h"

namespace dtrain::ps {

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
