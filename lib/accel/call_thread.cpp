// Asks whether an accelerator goes on.
// SPDX-License-Identifier: Apache-2.0
#include "accel/call_thread.h"

namespace dtrain::accel {

Status CallThread::check(dtrain_dv_queue_t *queue) {
    const std::lock_guard lock(mutex_);
    if (failed_ != DTRAIN_OK) return set_error_text(failure_.c_str()), failed_;
    if (asks_) return DTRAIN_OK;
    asks_ = give([this, queue] {
                set_error_text("");
                const Status s = ops_.queue_done(queue);
                const std::lock_guard inner(mutex_);
                asks_ = false;
                if (s == DTRAIN_OK || s == DTRAIN_IN_PROGRESS) return;
                failed_ = s;
                failure_ = error_text();
            }) == DTRAIN_OK; // if there is no thread, the operation's deadline ends it
    return DTRAIN_OK;
}

} // namespace dtrain::accel
