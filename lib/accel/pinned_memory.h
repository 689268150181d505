// Host memory that an accelerator copies from and to at full speed, kept for reuse.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain_device.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace dtrain::accel {

// Pages of host memory that are pinned for one device. Children made by fork() do not have them: a
// copy of pinned pages would leave the parent with pages that the device does not write to.
class PinnedBlock {
  public:
    static Status make(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, uint64_t bytes,
                       std::unique_ptr<PinnedBlock> &out);
    ~PinnedBlock(); // no work in flight may use it
    PinnedBlock(const PinnedBlock &) = delete;
    PinnedBlock &operator=(const PinnedBlock &) = delete;

    uint8_t *host() const { return host_; }
    uint8_t *device() const { return static_cast<uint8_t *>(ops_.address(mem_)); }
    dtrain_dv_mem_t *mem() const { return mem_; }
    uint64_t bytes() const { return bytes_; }

  private:
    PinnedBlock(const dtrain_dv_ops_t &ops, uint8_t *host, uint64_t bytes)
        : ops_(ops), host_(host), bytes_(bytes) {}

    const dtrain_dv_ops_t &ops_;
    uint8_t *const host_;
    const uint64_t bytes_;
    dtrain_dv_mem_t *mem_ = nullptr;
};

// Pinning takes about as long as copying, so blocks are kept.
class PinnedPool { // thread-safe
  public:
    // keep: most bytes of free blocks.
    PinnedPool(const dtrain_dv_ops_t &ops, dtrain_dv_dev_t *dev, uint64_t keep)
        : ops_(ops), dev_(dev), keep_(keep) {}

    // Slow if no free block fits; unpins what is more than is kept. Not under a lock that work in
    // flight needs.
    Status take(uint64_t bytes, std::unique_ptr<PinnedBlock> &out);
    void give_back(std::unique_ptr<PinnedBlock> block);
    // The same for a block that copies may still use: it is free once is_over() is true.
    void give_back(std::unique_ptr<PinnedBlock> block, std::function<bool()> is_over);
    void close(); // drops what is_over() holds; before the pool's end

  private:
    const dtrain_dv_ops_t &ops_;
    dtrain_dv_dev_t *const dev_;
    const uint64_t keep_;
    std::mutex mutex_;
    std::list<std::unique_ptr<PinnedBlock>> free_; // the last used first
    struct Used {
        std::unique_ptr<PinnedBlock> block;
        std::function<bool()> is_over;
    };
    void sweep();
    std::list<Used> used_; // returned while copies were in flight
    uint64_t free_bytes_ = 0;
};

} // namespace dtrain::accel
