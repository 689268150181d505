// Runs chores one after the other.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/chore_thread.h"

#include <utility>

namespace dtrain::ps {

Status ChoreThread::start(std::function<void()> work, std::function<void()> done) {
    return thread_.give([this, work = std::move(work), done = std::move(done)] {
        work();
        if (done != nullptr) locked_(done);
    });
}

} // namespace dtrain::ps
