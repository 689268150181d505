// A context's accelerators with the plugin "plain", and memory of its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/plugin.h"
#include "accel/staged_buffers.h"
#include "base/clock.h"
#include "check.h"

#include <cstring>
#include <sys/eventfd.h>

namespace dtrain::test {

inline void assert_text(const char *part) {
    if (std::strstr(error_text(), part) == nullptr)
        fail_msg("\"%s\" does not tell \"%s\"", error_text(), part);
}

class Rig {
  public:
    explicit Rig(const char *accelerators = "plain", const char *path = PLUGIN_FOLDER) {
        assert_int_equal(options.set("plugin.path", path), DTRAIN_OK);
        assert_int_equal(options.set("accelerators", accelerators), DTRAIN_OK);
    }
    Status open() { return domains.open(wake.get()); }

    Options options;
    Log log;
    Fd wake{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    accel::Domains domains{options, log};
};

// An allocation of the program's.
class Memory {
  public:
    Memory(Rig &rig, uint64_t bytes) : host_(rig.options, rig.log) {
        const dtrain_dv_plugin_t *plugin = nullptr;
        assert_int_equal(accel::find_plugin("plain", PLUGIN_FOLDER, plugin), DTRAIN_OK);
        ops_ = plugin->ops;
        assert_int_equal(ops_->open(host_.table(), "plain0", &dev_), DTRAIN_OK);
        assert_int_equal(ops_->alloc(dev_, bytes, 0, &mem_), DTRAIN_OK);
    }
    ~Memory() {
        ops_->release(mem_);
        ops_->close(dev_);
    }
    Memory(const Memory &) = delete;
    // The host can access it, since the device is host memory.
    uint8_t *address() const { return static_cast<uint8_t *>(ops_->address(mem_)); }

  private:
    accel::Host host_;
    const dtrain_dv_ops_t *ops_ = nullptr;
    dtrain_dv_dev_t *dev_ = nullptr;
    dtrain_dv_mem_t *mem_ = nullptr;
};

} // namespace dtrain::test
