// Moves on what a transport still holds of messages that are sent, while NCCL makes no calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/rail.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace dtrain::nccl {

// NCCL may reuse a buffer once its send is done, and may then make no call for as long as it likes.
// A library such as UCX may have only copied the message by then. So a thread looks now and then,
// and calls the device if nobody else has since it last looked.
class Keeper {
  public:
    explicit Keeper(Rail &rail) : rail_(rail) {}
    ~Keeper();
    Keeper(const Keeper &) = delete;
    Keeper &operator=(const Keeper &) = delete;

    Status start();

  private:
    void run();

    Rail &rail_;
    std::mutex mutex_;
    std::condition_variable stopping_;
    bool stops_ = false; // guarded by mutex_
    std::thread thread_;
};

} // namespace dtrain::nccl
