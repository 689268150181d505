// Signals are for the program's threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>

namespace dtrain::tp {

// Threads that are started while it lives get none.
class SignalsHeld {
  public:
    SignalsHeld() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsHeld(const SignalsHeld &) = delete;
    SignalsHeld &operator=(const SignalsHeld &) = delete;

  private:
    sigset_t before_;
};

} // namespace dtrain::tp
