// Keeps signals away from the library's threads: they are for the program's threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>

namespace dtrain::tp {

// While it lives, threads that are started block all signals.
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
