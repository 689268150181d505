// Passes the baton from thread to thread, and the time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "world.h"

namespace dtrain::simulator {

// At the begin of each call: time passes, faults happen, and others may run first.
void step(const char *call);
void find_nothing(); // a look at descriptors takes its time
// Until wake() of that address, or the deadline; whether it was woken.
bool wait_at(const void *address, int64_t deadline = never);
// All, or one of those who wait there in this process.
void wake(const void *address, bool all);
// Until one of the wait's descriptors is ready, or the deadline.
void wait_for(const Wait &wait, int64_t deadline);
void sleep_until(int64_t deadline);
void yield();

int add_thread(int process, const char *name); // nobody: there is no room
void take_baton();                             // waits for it
void begin_with(int thread);
void end_thread();               // gives the baton away for good
[[noreturn]] void end_process(); // of the caller's
[[noreturn]] void fail_life(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace dtrain::simulator
