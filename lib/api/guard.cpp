// Turns exceptions into statuses.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"

#include "base/callback.h"

#include <exception>
#include <new>

namespace dtrain::api {

Status caught() {
    if (caught_end_of_thread()) throw;
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return out_of_memory();
    } catch (const std::exception &e) {
        return fail(DTRAIN_ERR_INTERNAL, "%s", e.what());
    } catch (...) {
        return fail(DTRAIN_ERR_INTERNAL, "unknown exception");
    }
}

} // namespace dtrain::api
