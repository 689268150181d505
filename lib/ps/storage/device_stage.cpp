// Copies by way of pinned memory, and submits work.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_stage.h"

#include "base/clock.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr int64_t patience = 10 * second;

} // namespace

Status DeviceStage::open(accel::Domain &domain, std::shared_ptr<DeviceStage> &out) {
    std::shared_ptr<DeviceStage> made(new DeviceStage(domain));
    if (Status s = domain.pinned().take(1, made->words_); s != DTRAIN_OK) return s;
    if (Status s = made->queue_.open(domain.ops(), domain.dev(), *made->words_, 0,
                                     domain.attr().limit_bytes, nullptr);
        s != DTRAIN_OK)
        return accel::explain(s, domain.name().c_str(), "table");
    for (Slot &slot : made->slots_)
        if (Status s = domain.pinned().take(slot_bytes, slot.block); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

DeviceStage::~DeviceStage() {
    drain();
    const bool idle =
        words_ == nullptr || queue_.is_idle(); // else the device may still write to its memory
    queue_.close();
    for (Slot &slot : slots_)
        if (slot.block != nullptr)
            domain_.pinned().give_back(std::move(slot.block), [=] { return idle; });
    if (words_ != nullptr) domain_.pinned().give_back(std::move(words_), [=] { return idle; });
}

void DeviceStage::drain() { queue_.drain(monotonic_clock().now_ns() + patience); }

Status DeviceStage::reserve(uint64_t bytes) {
    if (scratch_ != nullptr && scratch_->bytes() >= bytes) return DTRAIN_OK;
    std::shared_ptr<accel::DeviceMemory> larger;
    if (Status s = accel::DeviceMemory::allocate(domain_, bytes, false, larger); s != DTRAIN_OK)
        return s;
    drain();
    scratch_ = std::move(larger);
    return DTRAIN_OK;
}

Status DeviceStage::wait(uint32_t batch) {
    const Status s = queue_.wait(batch, monotonic_clock().now_ns() + patience);
    return s == DTRAIN_OK ? s : accel::explain(s, domain_.name().c_str(), "table");
}

Status DeviceStage::take_slot(Slot *&out) {
    Slot &slot = slots_[next_];
    if (slot.kept)
        if (Status s = flush(); s != DTRAIN_OK) return s;
    if (Status s = wait(slot.batch); s != DTRAIN_OK) return s;
    next_ = (next_ + 1) % slots_.size();
    out = &slot;
    return DTRAIN_OK;
}

Status DeviceStage::put(void *to, const void *from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += slot_bytes) {
        const uint64_t n = std::min(slot_bytes, bytes - at);
        Slot *slot = nullptr;
        if (Status s = take_slot(slot); s != DTRAIN_OK) return s;
        std::memcpy(slot->block->host(), static_cast<const char *>(from) + at, n);
        copies_.push_back({static_cast<uint8_t *>(to) + at, slot->block->device(), n});
        slot->kept = true;
        domain_.to_device().count(n);
    }
    return DTRAIN_OK;
}

Status DeviceStage::submit(const Work &work) {
    bool begun = false;
    const Status s = queue_.submit(
        [&](dtrain_dv_queue_t *queue, bool &any) -> Status {
            any = true;
            const Status copied =
                submit_copies(domain_.ops(), queue, copies_, domain_.attr().limit_bytes);
            return copied == DTRAIN_OK ? work(queue) : copied;
        },
        last_, begun);
    copies_.clear();
    for (Slot &slot : slots_)
        if (std::exchange(slot.kept, false)) slot.batch = last_;
    return s == DTRAIN_OK ? s : accel::explain(s, domain_.name().c_str(), "table");
}

Status DeviceStage::get(void *to, const void *from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += slot_bytes) {
        const accel::Copy copy = {nullptr, static_cast<const uint8_t *>(from) + at,
                                  std::min(slot_bytes, bytes - at)};
        Slot *slot = nullptr;
        if (Status s = take_slot(slot); s != DTRAIN_OK) return s;
        slot->kept = true;
        const Status s = submit([&](dtrain_dv_queue_t *queue) {
            return submit_copies(
                domain_.ops(), queue,
                std::array{accel::Copy{slot->block->device(), copy.src, copy.bytes}},
                domain_.attr().limit_bytes);
        });
        if (s != DTRAIN_OK) return s;
        if (Status waited = wait(slot->batch); waited != DTRAIN_OK) return waited;
        std::memcpy(static_cast<char *>(to) + at, slot->block->host(), copy.bytes);
        domain_.to_host().count(copy.bytes);
    }
    return DTRAIN_OK;
}

Status DeviceStage::finish() {
    const Status s = flush();
    return s == DTRAIN_OK ? wait(last_) : s;
}

} // namespace dtrain::ps
