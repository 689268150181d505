// Defers the cancellation of a thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

namespace dtrain::tp {

// While it lives, pthread_cancel() of this thread is deferred, since the thread must not end while
// it holds a lock or a transport's state. The thread ends at its next cancellation point after the
// call.
class Uncancelled {
  public:
    Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
    Uncancelled(const Uncancelled &) = delete;
    Uncancelled &operator=(const Uncancelled &) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

} // namespace dtrain::tp
