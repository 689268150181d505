// An opened accelerator, and the kind of memory that an address is.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/host.h"
#include "accel/own_queue.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace dtrain::accel {

// A device of a plugin with the library's own queues on it and memory for copies.
class Domain : public std::enable_shared_from_this<Domain> {
  public:
    struct Config {
        uint64_t keep = 0;      // most bytes of pinned memory that are kept for reuse
        Waker *waker = nullptr; // used until the end
    };
    static Status open(const dtrain_dv_ops_t &ops, std::shared_ptr<Host> host,
                       const std::string &name, const dtrain_dv_attr_t &attr, const Config &config,
                       std::shared_ptr<Domain> &out);
    // Drains it. What it has is freed once no stream waits; nobody uses it meanwhile.
    static void end(std::shared_ptr<Domain> domain);
    ~Domain();
    Domain(const Domain &) = delete;
    Domain &operator=(const Domain &) = delete;

    const std::string &name() const { return name_; }
    const dtrain_dv_attr_t &attr() const { return attr_; }
    const dtrain_dv_ops_t &ops() const { return ops_; }
    dtrain_dv_dev_t *dev() const { return dev_; }
    PinnedPool &pinned() { return *pool_; }
    const Config &config() const { return config_; }
    void drain(); // waits for the library's own work in flight, at most 10 s
    // Two for copies, so that results never wait behind the input of other operations.
    OwnQueue &to_host() { return to_host_; }
    OwnQueue &to_device() { return to_device_; }
    OwnQueue &kernels() { return kernels_; }
    const OwnQueue &to_host() const { return to_host_; }
    const OwnQueue &to_device() const { return to_device_; }
    // Counts bytes that work between ranks' buffers on the device stores: sums, or copies.
    void count_done(bool sums, uint64_t bytes) {
        (sums ? reduced_ : moved_).fetch_add(bytes, std::memory_order_relaxed);
    }
    uint64_t reduced_bytes() const { return reduced_.load(std::memory_order_relaxed); }
    uint64_t moved_bytes() const { return moved_.load(std::memory_order_relaxed); }
    // Whether kernels of this dtype can run; if not now, perhaps later. Loads them at first, once
    // no stream waits, if that is before the time (monotonic_clock(); 0: now): slow, not while a
    // lock is held that work in flight needs.
    bool prepare(uint32_t dtype, int64_t until_ns = 0);
    Status check() { return kernels_.check(); } // OK while the accelerator goes on
    // Releases memory that kernels in flight may still use, once none does and no stream waits.
    void retire(dtrain_dv_mem_t *memory);
    // After a stream's wait: makes what was postponed if it was the last. Waits for no call.
    void after_wait();

  private:
    Domain(const dtrain_dv_ops_t &ops, std::shared_ptr<Host> host, const std::string &name,
           const dtrain_dv_attr_t &attr, const Config &config)
        : ops_(ops), host_(std::move(host)), name_(name), attr_(attr), config_(config) {}

    Status open_parts();
    void set_prepared(uint32_t dtype);

    const dtrain_dv_ops_t ops_;
    const std::shared_ptr<Host> host_;
    const std::string name_;
    const dtrain_dv_attr_t attr_;
    const Config config_;
    dtrain_dv_dev_t *dev_ = nullptr;
    std::unique_ptr<PinnedBlock> words_;
    std::optional<PinnedPool> pool_;
    CallThread calls_{ops_};
    OwnQueue to_host_, to_device_, kernels_;
    std::atomic<uint64_t> reduced_{0}, moved_{0};
    std::mutex mutex_;                  // of what follows
    uint64_t known_ = 0, prepared_ = 0; // bits by dtype
};

class DeviceMemory;

// Where a buffer lies.
struct Where {
    Domain *domain = nullptr;                   // nullptr: in memory that the host can access
    void *address = nullptr;                    // by which the domain's device reaches it
    uint32_t kind = DTRAIN_DV_HOST;             // DTRAIN_DV_*
    uint64_t allocation_bytes = 0;              // if it is on the device and was asked for now
    std::shared_ptr<const DeviceMemory> memory; // if it is registered: keeps it in use
};

// A plugin may fail without setting a text; the text of an older failure must not be used for it.
// Adds the accelerator's name and the operation.
Status explain(Status status, const char *name, const char *operation);

} // namespace dtrain::accel
