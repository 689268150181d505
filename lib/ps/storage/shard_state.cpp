// Pulls from a dense shard, requests about its state, and images.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

Range in_items(const Range &range, const StateArray &array) {
    return {range.first / array.elements, range.count / array.elements};
}

} // namespace

Storage::Pulled Shard::state(uint64_t index, const Range &range) {
    StateArray array;
    if (!find_state(params_, index, array)) return {};
    Range items = in_items(local(range), array);
    if (array.steps) {
        auto copy = std::make_shared<Buffer>();
        if (!copy->allocate(items.count * array.size)) return {};
        steps_.read(items, reinterpret_cast<uint64_t *>(copy->at(0)));
        return {copy->at(0), copy};
    }
    if (allocate_slots() != Reason::none) return {};
    return {slots_[index]->at(items.first * array.numbers * array.size), slots_[index]};
}

bool Shard::copies_state(uint64_t index) const {
    StateArray array;
    return find_state(params_, index, array) && array.steps;
}

Reason Shard::pull(const Items &items, uint32_t worker, const Into &out) {
    const Range range = items.range();
    if (transforms()) {
        const Reason reason = transform(range, out.hold);
        if (reason == Reason::none) out.numbers = out.hold->at(0);
        return reason;
    }
    const Reason reason = note_pull(worker, range);
    if (reason != Reason::none) return reason;
    if (lie_as_sent_) {
        out.numbers = at(range.first);
        out.hold = values();
        return Reason::none;
    }
    out.hold = as_sent(range);
    if (out.hold == nullptr) return Reason::no_memory;
    out.numbers = out.hold->at(0);
    return Reason::none;
}

Reason Shard::pull_state(uint64_t index, const Items &items, const Into &out) {
    Pulled pulled = state(index, items.range());
    out.numbers = pulled.numbers;
    out.hold = std::move(pulled.hold);
    return out.numbers != nullptr ? Reason::none : Reason::no_memory;
}

Reason Shard::set_state(uint64_t index, const Range &range, const void *numbers) {
    StateArray array;
    if (!find_state(params_, index, array)) return Reason::unknown_state;
    Range items = in_items(local(range), array);
    if (array.steps) return write_steps(steps_, items, numbers);
    Reason reason = allocate_slots();
    if (reason != Reason::none) return reason;
    before_change(local(range));
    const uint64_t size = array.numbers * array.size;
    std::memcpy(slots_[index]->at(items.first * size), numbers, items.count * size);
    return Reason::none;
}

std::unique_ptr<ShardImage> Shard::image() {
    auto image = std::make_unique<ShardImage>(params_, part_);
    if (kept_ != nullptr)
        image->reuse(std::move(*std::exchange(kept_, nullptr)));
    else if (!image->allocate(Buffer::Pages::small))
        return nullptr;
    const uint64_t count = part_.count();
    std::vector<ArrayCopy::Array> arrays = {
        {values_.memory, image->values.memory, count * values_.stored_size()}};
    if (values_.scales != nullptr)
        arrays.push_back({values_.scales, image->values.scales,
                          values_.bytes() - count * values_.stored_size()});
    for (size_t i = 0; i < slots_.size(); ++i)
        arrays.push_back({slots_[i], image->slots[i], arrays_[i].bytes_of(count)});
    const std::shared_ptr<ArrayCopy> copy = ArrayCopy::begin(std::move(arrays));
    if (copy == nullptr) return nullptr;
    image->copy = copy;
    image->steps = steps_;
    copies_.add(copy);
    image->updates = updates_;
    image->rate = rate_.set_to();
    return image;
}

void Shard::copy_first(const Range &local) {
    copies_.for_each([&](ArrayCopy &copy) {
        size_t array = 0;
        const uint64_t size = values_.stored_size();
        const Range values = values_.changed(local);
        copy.before_change(array++, values.first * size, values.count * size);
        if (values_.scales != nullptr) {
            const Range scales = values_.changed_scales(local);
            copy.before_change(array++, scales.first * sizeof(float), scales.count * sizeof(float));
        }
        for (const StateArray &state : arrays_) {
            const uint64_t bytes = state.numbers * state.size;
            const uint64_t first = local.first / state.elements;
            const uint64_t end = (local.end() + state.elements - 1) / state.elements;
            copy.before_change(array++, first * bytes, (end - first) * bytes);
        }
    });
}

uint64_t Shard::image_bytes() const { return ShardImage::bytes_of(params_, part_.count()); }

void Shard::adopt(ShardImage &&image) {
    copies_.for_each([](ArrayCopy &copy) { copy.settle(); }); // they keep the replaced buffers
    values_ = std::move(image.values);
    slots_ = std::move(image.slots);
    steps_ = std::move(image.steps);
    updates_ = image.updates;
    set_rate(image.rate);
    backups_.clear(); // no worker has pulled these values
}

} // namespace dtrain::ps
