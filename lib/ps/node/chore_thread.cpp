// Runs chores one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/chore_thread.h"

#include "base/thread.h"

#include <utility>

namespace dtrain::ps {

Status ChoreThread::start(std::function<void()> work, std::function<void()> done) {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
        if (ending_) return fail(DTRAIN_ERR_CANCELED, "the server is leaving the job");
        if (Status s = start_thread(thread_, "dtrain-gpu", [this] { run(); }); s != DTRAIN_OK)
            return s;
    }
    chores_.push_back({std::move(work), std::move(done)});
    changed_.notify_one();
    return DTRAIN_OK;
}

void ChoreThread::finish() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void ChoreThread::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !chores_.empty(); });
        if (chores_.empty()) return;
        Chore chore = std::move(chores_.front());
        chores_.pop_front();
        lock.unlock();
        chore.work();
        if (chore.done != nullptr) locked_(chore.done);
        chore = {}; // what it holds may start others
        lock.lock();
    }
}

} // namespace dtrain::ps
