// Makes calls one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "accel/call_thread.h"

#include "base/thread.h"

#include <utility>

namespace dtrain::accel {

Status CallThread::add(std::function<void()> call) {
    if (!thread_.joinable()) {
        if (Status s = start_thread(thread_, "dtrain-device", [this] { run(); }); s != DTRAIN_OK)
            return s;
        process_ = getpid();
    }
    calls_.push_back(std::move(call));
    changed_.notify_one();
    return DTRAIN_OK;
}

Status CallThread::give(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    return add(std::move(call));
}

Status CallThread::check(dtrain_dv_queue_t *queue) {
    const std::lock_guard lock(mutex_);
    if (failed_ != DTRAIN_OK) return set_error_text(failure_.c_str()), failed_;
    if (asks_) return DTRAIN_OK;
    asks_ = add([this, queue] {
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

void CallThread::finish() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (!thread_.joinable()) return;
    if (process_ == getpid())
        thread_.join();
    else
        thread_.detach(); // a child made by fork() has no such thread
}

void CallThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !calls_.empty(); });
        if (calls_.empty()) return;
        std::function<void()> call = std::move(calls_.front());
        calls_.pop_front();
        lock.unlock();
        call();
        call = nullptr;
        lock.lock();
    }
}

} // namespace dtrain::accel
