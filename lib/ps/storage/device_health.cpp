// Notes failures of an accelerator that concern a table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_health.h"

#include "accel/domain.h"

namespace dtrain::ps {

void DeviceHealth::watch(const accel::OwnQueue::Posted &posted) {
    if (posted.later != nullptr) watched_.push_back(posted);
}

void DeviceHealth::settle() {
    while (!watched_.empty() && watched_.front().later->submitted.load(std::memory_order_acquire)) {
        const Status s = watched_.front().result();
        if (s != DTRAIN_OK) note(accel::explain(s, device_.c_str(), "table"));
        watched_.pop_front();
    }
}

void DeviceHealth::note(Status status) {
    if (status == DTRAIN_OK || !broken_.empty()) return;
    broken_ = error_text();
    if (log_ != nullptr)
        log_->write(DTRAIN_LOG_ERROR, "table \"%s\": its values here are lost: %s", table_.c_str(),
                    broken_.c_str());
}

// A failure may have been noted since the work began, perhaps while a save copied what was to
// change.
Reason DeviceHealth::outcome(Status status) {
    note(status);
    return broken().empty() ? Reason::none : Reason::device;
}

const std::string &DeviceHealth::broken() {
    settle();
    return broken_;
}

void DeviceHealth::renew() {
    watched_.clear();
    broken_.clear();
}

} // namespace dtrain::ps
