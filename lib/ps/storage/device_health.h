// Whether an accelerator still has a table's values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/own_queue.h"
#include "base/log.h"
#include "ps/table/protocol.h"

#include <deque>
#include <string>
#include <utility>

namespace dtrain::ps {

// All calls need the agent's lock, or that nobody else knows the table. Pulls under way may outlive
// the table.
class DeviceHealth {
  public:
    DeviceHealth(std::string table, std::string device)
        : table_(std::move(table)), device_(std::move(device)) {}
    void set_log(Log *log) { log_ = log; } // nullptr: none

    // Notes work on the values of which it may not be known yet whether it could be submitted.
    void watch(const accel::OwnQueue::Posted &posted);
    // Numbers that cannot be had count as a failure, and so does an update that is made in part.
    Reason outcome(Status status);
    // Why the values are lost; "": they are not.
    const std::string &broken();
    void renew(); // all of them are about to be written

  private:
    void settle();
    void note(Status status);

    const std::string table_, device_;
    Log *log_ = nullptr;
    std::string broken_;
    std::deque<accel::OwnQueue::Posted> watched_;
};

} // namespace dtrain::ps
