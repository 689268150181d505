// Makes images of a sparse shard, reserves memory for them, and adopts them.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_image.h"

#include "device/kernels.h"
#include "ps/table/narrow.h"
#include "ps/table/protocol.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr uint64_t least_step = 64 << 10; // bytes to reserve at a time, at least

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
        return fail_for(Reason::no_memory, step, 0); // there was enough room under the limit
    const uint64_t granted = reserve(step);
    if (granted == 0) return fail_for(Reason::rows_limit, used, reserved_ - used);
    reserved_ += granted;
    store.set_limit(std::min(reserved_, own_limit));
    return DTRAIN_OK;
}

bool RowImage::allocate(uint64_t wanted) {
    count = wanted;
    wanted += wanted / 4; // untouched memory costs nothing
    keys = std::make_shared<Buffer>();
    rows = std::make_shared<Buffer>();
    return keys->allocate(wanted * sizeof(uint64_t), Buffer::Pages::small) &&
           rows->allocate(wanted * layout.bytes, Buffer::Pages::small);
}

bool RowImage::reuse(RowImage &&other, uint64_t wanted) {
    if (other.keys->bytes() < wanted * sizeof(uint64_t) ||
        other.rows->bytes() < wanted * layout.bytes)
        return false;
    count = wanted;
    keys = std::move(other.keys);
    rows = std::move(other.rows);
    return true;
}

bool RowImage::finish() {
    store.set_limit(UINT64_MAX);
    const auto *all = reinterpret_cast<const uint64_t *>(keys->at(0));
    const size_t made = store.obtain(
        all, count, [](uint64_t, char *) {},
        [&](size_t i, char *row) { std::memcpy(row, rows->at(i * layout.bytes), layout.bytes); });
    keys.reset();
    rows.reset();
    return made == count;
}

SparseShard::~SparseShard() = default;

std::unique_ptr<RowImage> SparseShard::image() {
    auto image = std::make_unique<RowImage>(params_);
    const std::unique_ptr<RowImage> kept = std::move(kept_);
    const bool reused = kept != nullptr && image->reuse(std::move(*kept), rows_.size());
    if (!reused && !image->allocate(rows_.size())) return nullptr;
    const std::shared_ptr<RowCopy> copy = RowCopy::begin(rows_, image->keys, image->rows);
    if (copy == nullptr) return nullptr;
    image->copy = copy;
    copies_.add(copy);
    image->updates = updates_;
    image->rate = rate_.set_to();
    return image;
}

std::unique_ptr<Image> SparseShard::begin_image() { return image(); }

std::unique_ptr<Image> SparseShard::blank_image() const {
    return std::make_unique<RowImage>(params_);
}

void SparseShard::keep(std::unique_ptr<Image> &image) { exchange(image, kept_); }

void SparseShard::adopt(Image &&image) { adopt(static_cast<RowImage &&>(image)); }

void SparseShard::adopt(RowImage &&image) {
    if (copies_.any()) {
        const auto before = std::make_shared<const RowStore>(std::move(rows_));
        copies_.for_each([&](RowCopy &copy) { copy.settle(before); });
    }
    rows_ = std::move(image.store);
    rows_.set_limit(UINT64_MAX); // removes the limit that applied while reading
    updates_ = image.updates;
    set_rate(image.rate);
    for (RowStore &sums : sums_) sums.clear(); // their rows may not exist any more
    if (kept_rows_.any()) kept_rows_.recount(rows_);
    recount_sums();
}

} // namespace dtrain::ps
