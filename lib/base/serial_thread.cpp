// Does work in order.
// SPDX-License-Identifier: Apache-2.0
#include "base/serial_thread.h"

#include "base/thread.h"

#include <utility>

namespace dtrain {

Status SerialThread::give(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
        if (ending_) return fail(DTRAIN_ERR_CANCELED, "thread \"%s\" is ending", name_);
        if (Status s = start_thread(thread_, name_, [this] { run(); }); s != DTRAIN_OK) return s;
        process_ = getpid();
    }
    given_.push_back(std::move(work));
    changed_.notify_one();
    return DTRAIN_OK;
}

void SerialThread::finish() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (!thread_.joinable()) return;
    if (process_ == getpid())
        thread_.join();
    else
        thread_.detach(); // a child made by fork() has no such thread
}

void SerialThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !given_.empty(); });
        if (given_.empty()) return;
        std::function<void()> work = std::move(given_.front());
        given_.pop_front();
        lock.unlock();
        work();
        work = nullptr; // what it holds may give more
        lock.lock();
    }
}

} // namespace dtrain
