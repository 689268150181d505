// Calls that wait for streams, left until no stream of the process waits for an operation.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace dtrain::accel {

// One list for the process, because a call waits for the streams of all contexts. What nobody makes
// until the process ends is left to the system.
class Postponed { // thread-safe
  public:
    using Call = std::function<bool()>; // whether it is done: if not, it is made again later
    // Makes the call now, if no stream waits; else, or if it is not done, make_all() does.
    static void make(Call call);
    static void make_all(); // which can be made now
    static bool any();
};

} // namespace dtrain::accel
