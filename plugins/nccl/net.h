// The opened devices, and the connections that are being made. One per process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/log.h"
#include "base/options.h"
#include "nccl/card.h"
#include "nccl/dialer.h"
#include "nccl/keeper.h"
#include "nccl/listener.h"
#include "nccl/rail.h"
#include "transport/host.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dtrain::nccl {

// Memory of NCCL that is registered with one device.
struct Registration {
    Rail &rail;
    dtrain_tp_mr_t *region = nullptr; // nullptr: the device needs none
};

class Net {
  public:
    // Reads the options (DTRAIN_...), and opens the devices of the first transport in option
    // transports that this machine has. shm is passed over: inside a host NCCL has its own.
    static Status open(dtrain_log_fn sink, std::unique_ptr<Net> &out);

    Log &log() { return log_; }
    int devices() const { return int(rails_.size()); }
    Status describe(int device, Card &card);
    Status listen(int device, void *handle, std::unique_ptr<Listener> &out);
    // The first call of an attempt writes its number into the handle; later ones find it there.
    Status connect(int device, void *handle, std::unique_ptr<Comm> &out);
    static Status register_memory(Rail &rail, void *data, size_t bytes,
                                  std::unique_ptr<Registration> &out);
    static void deregister(Registration &registration);

    // What NCCL has not closed yet; while there is any, the devices stay open.
    std::atomic<int> users{0};

  private:
    Net() = default;
    Status read_options();
    Status open_rails();
    Status keep(Rail &rail);
    Status check(int device) const;
    std::unique_ptr<Dialer> find_dialer(const Handle &handle);

    Log log_; // before what writes to it
    Options options_;
    std::unique_ptr<transport::Host> host_;
    std::string address_, who_;
    int64_t patience_ns_ = 0;
    // Carries hellos and welcomes; always tcp, authenticated like every device.
    std::unique_ptr<Rail> control_;
    std::vector<std::unique_ptr<Rail>> rails_;
    std::vector<std::unique_ptr<Keeper>> keepers_; // of rails that need one; end before them
    std::vector<CardTexts> cards_;
    std::mutex mutex_; // of the dialers
    std::vector<std::unique_ptr<Dialer>> dialers_;
};

} // namespace dtrain::nccl
