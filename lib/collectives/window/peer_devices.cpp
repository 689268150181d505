// Imports the other ranks' memory on an accelerator.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/peer_devices.h"

#include "accel/quiet.h"

#include <algorithm>
#include <cstring>

namespace dtrain::collectives {

static bool is_inside(const accel::SharedAllocation &allocation, uint64_t bytes) {
    return allocation.offset <= allocation.bytes && bytes <= allocation.bytes - allocation.offset;
}

// Kernels of an operation that has failed may still run.
PeerDevices::~PeerDevices() {
    for (auto &of_rank : imported_)
        for (Imported &one : of_rank) one.domain->retire(one.memory);
}

uint8_t *PeerDevices::find(uint32_t rank, const accel::DirectBuffer &buffer, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return find_imported(rank, buffer, bytes);
}

uint8_t *PeerDevices::find_imported(uint32_t rank, const accel::DirectBuffer &buffer,
                                    uint64_t bytes) {
    calls_++;
    const accel::SharedAllocation &wanted = buffer.allocation;
    if (!is_inside(wanted, bytes)) return nullptr;
    for (Imported &one : imported_[rank])
        if (one.allocation.serial == wanted.serial && one.allocation.bytes == wanted.bytes &&
            std::memcmp(one.allocation.handle, wanted.handle, sizeof wanted.handle) == 0) {
            one.used = calls_;
            return static_cast<uint8_t *>(one.domain->ops().address(one.memory)) + wanted.offset;
        }
    return nullptr;
}

void PeerDevices::want(uint32_t rank, const accel::DirectBuffer &buffer, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (wanted_.size() >= most * imported_.size()) return;
    wanted_.push_back({rank, buffer, bytes});
    wants_ = true;
}

void PeerDevices::import_wanted(accel::Domain &domain) {
    if (!wants_) return;
    const accel::Quiet quiet;
    if (!quiet) return;
    const std::lock_guard lock(mutex_);
    std::vector<size_t> added(imported_.size());
    for (const Wanted &one : wanted_)
        if (added[one.rank] < most_at_once &&
            find_imported(one.rank, one.buffer, one.bytes) == nullptr &&
            add(domain, one.rank, one.buffer, one.bytes) == DTRAIN_OK) // it may be gone meanwhile
            added[one.rank]++;
    wanted_.clear();
    wants_ = false;
}

Status PeerDevices::import(accel::Domain &domain, uint32_t rank, const accel::DirectBuffer &buffer,
                           uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    return add(domain, rank, buffer, bytes);
}

Status PeerDevices::add(accel::Domain &domain, uint32_t rank, const accel::DirectBuffer &buffer,
                        uint64_t bytes) {
    const accel::SharedAllocation &wanted = buffer.allocation;
    if (!is_inside(wanted, bytes))
        return fail(DTRAIN_ERR_INTERNAL, "rank %u: its buffer is not in the memory that it names",
                    rank);
    Imported made{.allocation = wanted, .domain = &domain, .memory = nullptr, .used = calls_};
    set_error_text("");
    if (Status s = domain.ops().import(domain.dev(), wanted.handle, wanted.bytes, &made.memory);
        s != DTRAIN_OK)
        return accel::explain(s, domain.name().c_str(), "importing memory");
    auto &of_rank = imported_[rank];
    if (of_rank.size() == most) {
        const auto oldest =
            std::min_element(of_rank.begin(), of_rank.end(),
                             [](const Imported &a, const Imported &b) { return a.used < b.used; });
        oldest->domain->retire(oldest->memory);
        of_rank.erase(oldest);
    }
    of_rank.push_back(made);
    return DTRAIN_OK;
}

void PeerDevices::note_failure() {
    failed_ = true;
    log_.write(DTRAIN_LOG_WARN,
               "the ranks cannot work on their buffers on an accelerator, host memory is used "
               "instead: %s",
               error_text());
}

} // namespace dtrain::collectives
