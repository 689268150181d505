// The accelerators of a context: which plugins are loaded, and whose memory an address is.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domain.h"
#include "accel/known_memory.h"
#include "base/fd.h"

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::accel {

// What dtrain_context_describe() tells of a device.
struct DeviceReport {
    dtrain_dv_attr_t attr = {};
    bool is_open = false;
    // Since the context was made: copied; sums, and copies, for all ranks on the device.
    uint64_t to_host_bytes = 0, to_device_bytes = 0, reduced_bytes = 0, moved_bytes = 0;
};
struct PluginReport {
    std::string name, why; // why: the reason why it is not used; "": it is
    std::vector<DeviceReport> devices;
};

class Domains { // thread-safe
  public:
    // Both outlive it.
    Domains(const Options &options, Log &log);
    ~Domains();

    // Loads the plugins that the option `accelerators` names; with "auto" as look(). wake_fd: an
    // eventfd that ends the sleep of threads which wait for copies; a duplicate of it is kept.
    Status open(int wake_fd);
    // With "auto": loads the plugins of accelerators whose own libraries the program has loaded
    // meanwhile. A plugin that cannot be loaded is reported and not used.
    void look();
    // Loads the plugin because the program has said that it uses that accelerator.
    Status require(std::string_view plugin);

    // Whether an address may be an accelerator's. Costs a load.
    bool any() const { return usable_.load(std::memory_order_relaxed); }
    // Finds out where a buffer lies. INVALID: it is neither of this process nor of an accelerator,
    // or reaches beyond its allocation. Of registered memory the program says that it stays; other
    // answers are not cached: whether one is still true, only the driver knows, and asking it that
    // costs as much as asking it all.
    Status find(const void *address, uint64_t bytes, Where &out);
    // The device of a plugin by its number; loads the one and opens the other. INVALID: it has none
    // of that number.
    Status find_device(std::string_view plugin, int32_t ordinal, Domain *&out);
    KnownMemory &known() { return known_; } // registered memory

    std::vector<PluginReport> report();
    // Counts what uses domains (StagedBuffers).
    void hold() { users_.fetch_add(1, std::memory_order_relaxed); }
    void release() { users_.fetch_sub(1, std::memory_order_release); }
    bool in_use() const { return users_.load(std::memory_order_acquire) != 0; }

  private:
    class Plugin;
    Status load(std::string_view name);
    Plugin *find_plugin_of(std::string_view name);

    const Options &options_;
    const std::shared_ptr<Host> host_;
    int wake_fd_ = -1;
    Waker::Owner waker_;      // once a plugin is loaded
    std::shared_mutex mutex_; // of plugins_
    std::vector<std::unique_ptr<Plugin>> plugins_;
    std::vector<PluginReport> unused_;
    KnownMemory known_;
    std::atomic<bool> usable_{false};
    std::atomic<uint32_t> users_{0};
};

} // namespace dtrain::accel
