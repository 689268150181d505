// Copies arrays page by page, with marks for the copied pages.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/gradual_copy.h"

#include "base/status.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::ps {

bool Marks::allocate(uint64_t count) { return words_.allocate((count + 63) / 64 * 8); }

uint64_t Marks::find(uint64_t at, uint64_t end, bool marked) const {
    while (at < end) {
        const uint64_t wanted = (marked ? word(at) : ~word(at)) >> at % 64;
        if (wanted != 0) return std::min<uint64_t>(at + uint64_t(std::countr_zero(wanted)), end);
        at = (at / 64 + 1) * 64;
    }
    return end;
}

uint32_t Marks::count(uint64_t at, uint64_t end) const {
    uint32_t count = 0;
    for (; at + 64 <= end; at += 64) count += uint32_t(std::popcount(word(at)));
    if (at < end) count += uint32_t(std::popcount(word(at) << (64 - end % 64)));
    return count;
}

GradualCopy::State GradualCopy::advance(uint64_t bytes) {
    if (!going() || copy_more(bytes)) return state_;
    state_ = State::done;
    let_go();
    return state_;
}

void GradualCopy::cancel(std::string why) {
    if (!going()) return;
    state_ = State::canceled;
    why_ = std::move(why);
    let_go();
}

namespace {

std::vector<GradualCopy::Target> targets_of(const std::vector<ArrayCopy::Array> &arrays) {
    std::vector<GradualCopy::Target> targets;
    targets.reserve(arrays.size());
    for (const ArrayCopy::Array &array : arrays) targets.push_back({array.to, array.bytes});
    return targets;
}

} // namespace

ArrayCopy::ArrayCopy(std::vector<Array> arrays, Remote remote)
    : GradualCopy(targets_of(arrays)), arrays_(std::move(arrays)), remote_(std::move(remote)),
      marks_(arrays_.size()) {}

std::shared_ptr<ArrayCopy> ArrayCopy::begin(std::vector<Array> arrays, Remote remote) {
    std::shared_ptr<ArrayCopy> copy(new ArrayCopy(std::move(arrays), std::move(remote)));
    for (size_t i = 0; i < copy->arrays_.size(); ++i)
        if (!copy->marks_[i].allocate(copy->arrays_[i].bytes / page + 1)) return nullptr;
    return copy;
}

uint64_t ArrayCopy::copy(size_t index, uint64_t first, uint64_t end, bool now) {
    const Array &array = arrays_[index];
    Marks &marks = marks_[index];
    uint64_t copied = 0;
    for (uint64_t at = marks.find(first, end, false); at < end; at = marks.find(at, end, false)) {
        const uint64_t stop = marks.find(at, end, true);
        const uint64_t bytes = std::min(stop * page, array.bytes) - at * page;
        if (remote_.read != nullptr) {
            const Remote::Result read =
                remote_.read(index, at * page, bytes, array.to->at(at * page), now);
            if (read == Remote::Result::failed) cancel(error_text());
            if (read != Remote::Result::done) return copied;
        } else if (array.from != nullptr)
            std::memcpy(array.to->at(at * page), array.from->at(at * page), bytes);
        else
            std::memset(array.to->at(at * page), 0, bytes);
        copied += stop - at;
        for (; at < stop; ++at) marks.mark(at);
    }
    return copied;
}

void ArrayCopy::before_change(size_t array, uint64_t first, uint64_t bytes) {
    if (!going() || settled_ || bytes == 0) return;
    copy(array, first / page, (first + bytes - 1) / page + 1, true);
}

bool ArrayCopy::copy_more(uint64_t bytes) {
    if (bytes != rest && remote_.is_busy != nullptr && remote_.is_busy()) return true;
    for (uint64_t left = bytes / page + 1; array_ < arrays_.size(); ++array_, page_ = 0) {
        const uint64_t pages = (arrays_[array_].bytes + page - 1) / page;
        while (page_ < pages) {
            if (left == 0) return true;
            page_ = marks_[array_].find(page_, pages, false);
            const uint64_t end = std::min(page_ + left, pages);
            left -= copy(array_, page_, end, bytes == rest);
            if (!going() || marks_[array_].find(page_, end, false) < end) return true;
            page_ = end;
        }
    }
    return false;
}

void ArrayCopy::let_go() {
    for (Array &array : arrays_) array.from.reset();
    remote_ = {};
}

} // namespace dtrain::ps
