// Keeps calls in a list, and makes them while no stream waits.
// SPDX-License-Identifier: Apache-2.0
#include "accel/postponed.h"

#include "accel/quiet.h"

#include <list>
#include <mutex>
#include <utility>

namespace dtrain::accel {
namespace {

struct Kept {
    std::mutex mutex;
    std::list<Postponed::Call> calls;
};
// Never destroyed: at the end of the process the accelerator's library may be gone.
Kept &kept() {
    static Kept &it = *new Kept;
    return it;
}

} // namespace

// Whoever ends the last wait looks at the list after it, and who adds to the list looks after that
// whether a stream waits: one of them makes the call.
void Postponed::make(Call call) {
    bool waits = false;
    if (const Quiet quiet; quiet) {
        if (call()) return;
    } else {
        waits = true;
    }
    {
        const std::lock_guard lock(kept().mutex);
        kept().calls.push_back(std::move(call));
    }
    if (waits) make_all();
}

void Postponed::make_all() {
    const Quiet quiet;
    if (!quiet) return;
    std::list<Call> calls;
    {
        const std::lock_guard lock(kept().mutex);
        calls.swap(kept().calls);
    }
    std::erase_if(calls, [](Call &call) { return call(); });
    const std::lock_guard lock(kept().mutex);
    kept().calls.splice(kept().calls.begin(), calls);
}

bool Postponed::any() {
    const std::lock_guard lock(kept().mutex);
    return !kept().calls.empty();
}

} // namespace dtrain::accel
