// Maps and pins blocks, and finds a free one that fits.
// SPDX-License-Identifier: Apache-2.0
#include "accel/pinned_memory.h"

#include "accel/quiet.h"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace dtrain::accel {
namespace {

constexpr uint64_t granule = 64 << 10; // sizes that differ by less share blocks
constexpr uint64_t most_waste = 4;     // a free block may be so many times larger than asked for

} // namespace

Status PinnedBlock::make(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, uint64_t bytes,
                         std::unique_ptr<PinnedBlock> &out) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return fail_errno(errno, "%llu bytes of host memory for copies",
                          static_cast<unsigned long long>(bytes));
    madvise(memory, bytes, MADV_DONTFORK);
    std::unique_ptr<PinnedBlock> made(new PinnedBlock(ops, static_cast<uint8_t *>(memory), bytes));
    if (Status s = ops.pin(dev, memory, bytes, &made->mem_); s != DTRAIN_OK) {
        made->mem_ = nullptr;
        return fail_within(s, "pinning %llu bytes of host memory for copies",
                           static_cast<unsigned long long>(bytes));
    }
    out = std::move(made);
    return DTRAIN_OK;
}

PinnedBlock::~PinnedBlock() {
    if (mem_ != nullptr) ops_.release(mem_);
    munmap(host_, bytes_);
}

Status PinnedPool::take(uint64_t bytes, std::unique_ptr<PinnedBlock> &out) {
    if (bytes > UINT64_MAX / 2)
        return fail(DTRAIN_ERR_NO_MEMORY, "%llu bytes of host memory for copies",
                    static_cast<unsigned long long>(bytes));
    bytes = (std::max<uint64_t>(bytes, 1) + granule - 1) / granule * granule;
    sweep();
    const Quiet quiet;                               // for unpinning, which waits for streams
    std::list<std::unique_ptr<PinnedBlock>> surplus; // unpinned without the lock
    {
        std::lock_guard lock(mutex_);
        auto best = free_.end();
        for (auto at = free_.begin(); at != free_.end(); ++at) {
            const uint64_t has = (*at)->bytes();
            if (has < bytes || has / most_waste > bytes) continue;
            if (best == free_.end() || has < (*best)->bytes()) best = at;
        }
        if (best != free_.end()) {
            out = std::move(*best);
            free_.erase(best);
            free_bytes_ -= out->bytes();
            return DTRAIN_OK;
        }
        while (quiet && free_bytes_ > keep_) {
            free_bytes_ -= free_.back()->bytes();
            surplus.splice(surplus.begin(), free_, std::prev(free_.end()));
        }
    }
    surplus.clear();
    return PinnedBlock::make(ops_, dev_, bytes, out);
}

void PinnedPool::give_back(std::unique_ptr<PinnedBlock> block) {
    std::lock_guard lock(mutex_);
    free_bytes_ += block->bytes();
    free_.push_front(std::move(block));
}

void PinnedPool::give_back(std::unique_ptr<PinnedBlock> block, std::function<bool()> is_over) {
    if (is_over()) return give_back(std::move(block));
    std::lock_guard lock(mutex_);
    used_.push_back({std::move(block), std::move(is_over)});
}

void PinnedPool::sweep() {
    std::list<Used> over; // dropped without the lock, since is_over() may hold other blocks
    {
        std::lock_guard lock(mutex_);
        for (auto at = used_.begin(); at != used_.end();) {
            auto next = std::next(at);
            if (at->is_over()) over.splice(over.end(), used_, at);
            at = next;
        }
    }
    for (Used &used : over) give_back(std::move(used.block));
}

void PinnedPool::close() {
    std::list<Used> rest;
    std::lock_guard lock(mutex_);
    rest.swap(used_);
}

} // namespace dtrain::accel
