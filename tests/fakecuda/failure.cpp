// What every call checks first, and failures that tests have asked for.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstdlib>
#include <sstream>
#include <vector>

namespace fakecuda {
namespace {

struct Wish {
    std::string function;
    int call; // counted from 1; 0: it has happened
    Result result;
};
std::mutex wishes_mutex;
std::vector<Wish> wishes;

void add_wishes(const char *text) {
    std::istringstream all(text);
    for (std::string one; std::getline(all, one, ',');) {
        std::istringstream parts(one);
        std::string function, call = "1", result = "999";
        std::getline(parts, function, ':');
        std::getline(parts, call, ':');
        std::getline(parts, result, ':');
        wishes.push_back({function, std::atoi(call.c_str()), std::atoi(result.c_str())});
    }
}

Result injected(const char *function) {
    const std::lock_guard lock(wishes_mutex);
    static bool read = false;
    if (!read) {
        read = true;
        if (const char *text = std::getenv("FAKECUDA_FAIL")) add_wishes(text);
    }
    for (Wish &wish : wishes)
        if (wish.function == function && wish.call > 0 && --wish.call == 0) return wish.result;
    return success;
}

} // namespace

Result enter(const char *function, bool needs_context, bool frees) {
    if (fake().owner == 0) return not_initialized;
    if (fake().owner != getpid()) { // the real driver fails, too; nothing should have called it
        complain("%s in a child made by fork()", function);
        _exit(99);
    }
    if (in_host_function) {
        complain("%s in a host function, which must not call the driver", function);
        return not_permitted;
    }
    if (const Result r = fake().sticky; r != success && !frees) return r;
    if (const Result r = injected(function)) return r;
    if (!needs_context) return success;
    const Context context = current_context();
    if (!is_context(context)) return invalid_context;
    const std::shared_lock gate(fake().calls[device_of(context)]); // is there a call that waits?
    return success;
}

void wait_for_held_streams() {
    const int device = device_of(current_context());
    const std::lock_guard gate(fake().calls[device]);
    while (fake().held[device] > 0 && fake().sticky == success) usleep(100);
}

} // namespace fakecuda

// Replaces the wishes by those of the text, which is as FAKECUDA_FAIL.
FAKE_API void fakecuda_fail(const char *text) {
    (void)fakecuda::injected("");
    const std::lock_guard lock(fakecuda::wishes_mutex);
    fakecuda::wishes.clear();
    fakecuda::add_wishes(text);
}
