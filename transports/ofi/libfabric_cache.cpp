// Turns off libfabric's own cache of registrations.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/libfabric_cache.h"

#include <cstdlib>
#include <mutex>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>

namespace dtrain::ofi {
namespace {

// For all users of libfabric in the process; only one exists.
class Watcher {
  public:
    Watcher() {
        calls_.size = sizeof calls_;
        calls_.start = [](fid_mem_monitor *) { return -FI_ENOSYS; };
        calls_.stop = [](fid_mem_monitor *) {};
        calls_.subscribe = [](fid_mem_monitor *, const void *, size_t) { return -FI_ENOSYS; };
        calls_.unsubscribe = [](fid_mem_monitor *, const void *, size_t) {};
        calls_.valid = [](fid_mem_monitor *, const void *, size_t) { return false; };
        monitor_.fid.fclass = FI_CLASS_MEM_MONITOR;
        monitor_.export_ops = &calls_;
        error_ = fi_import(FI_VERSION(1, 17), "mr_cache", nullptr, 0, 0, &monitor_.fid, nullptr);
    }
    ~Watcher() {
        if (!error_) fi_close(&monitor_.fid);
    }
    int error() const { return error_; }

  private:
    fi_ops_mem_monitor calls_{};
    fid_mem_monitor monitor_{};
    int error_;
};

} // namespace

void refuse_libfabric_cache(const tp::Host &host) {
    if (getenv("FI_MR_CACHE_MONITOR")) return; // the user has chosen
    static const Watcher watcher;
    static std::once_flag said;
    if (watcher.error())
        std::call_once(said, [&] {
            host.log(DTRAIN_LOG_WARN,
                     "ofi: libfabric's cache of registrations, which misses memory that is freed "
                     "by system calls, cannot be turned off any more (%s): set "
                     "FI_MR_CACHE_MONITOR=disabled in the environment",
                     fi_strerror(-watcher.error()));
        });
}

} // namespace dtrain::ofi
