// How a rule's state is read and written from outside. SPDX-License-Identifier: Apache-2.0
#include "ps/shard.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr uint64_t most_steps = uint64_t{1} << 53; // exact as doubles

Range in_items(const Range &range, const StateArray &array) {
    return {range.first / array.elements, range.count / array.elements};
}

} // namespace

Shard::State Shard::state(uint64_t index, const Range &range) {
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

Reason Shard::set_state(uint64_t index, const Range &range, const void *numbers) {
    StateArray array;
    if (!find_state(params_, index, array)) return Reason::unknown_state;
    Range items = in_items(local(range), array);
    if (array.steps) {
        std::vector<uint64_t> counts(items.count); // aligned
        std::memcpy(counts.data(), numbers, items.count * array.size);
        if (*std::max_element(counts.begin(), counts.end()) > most_steps) return Reason::bad_steps;
        steps_.write(items, counts.data());
        return Reason::none;
    }
    Reason reason = allocate_slots();
    if (reason != Reason::none) return reason;
    const uint64_t size = array.numbers * array.size;
    std::memcpy(slots_[index]->at(items.first * size), numbers, items.count * size);
    return Reason::none;
}

std::unique_ptr<ShardImage> Shard::image() const {
    auto image = std::make_unique<ShardImage>(params_, part_);
    if (!image->allocate()) return nullptr;
    image->values.copy(values_);
    for (size_t i = 0; i < slots_.size(); ++i)
        if (slots_[i] != nullptr)
            std::memcpy(image->slots[i]->at(0), slots_[i]->at(0),
                        arrays_[i].bytes_of(part_.count()));
    image->steps = steps_;
    image->updates = updates_;
    image->rate = rule_.rate();
    return image;
}

uint64_t Shard::image_bytes() const { return ShardImage::bytes_of(params_, part_.count()); }

void Shard::adopt(ShardImage &&image) {
    values_ = std::move(image.values);
    slots_ = std::move(image.slots);
    steps_ = std::move(image.steps);
    updates_ = image.updates;
    set_rate(image.rate);
    backups_.clear(); // nobody has pulled these values
}

} // namespace dtrain::ps
