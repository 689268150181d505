// The CUDA driver, opened at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "driver_functions.h"
#include "host.h"

#include <sys/types.h>

namespace dtrain::cuda {

#define DTRAIN_CUDA_MEMBER(member, symbol, must, ...)                                              \
    std::add_pointer_t<__VA_ARGS__> member = nullptr;

// Its functions by our own names; those that an older driver may lack are nullptr there.
struct Driver {
    DTRAIN_CUDA_FUNCTIONS(DTRAIN_CUDA_MEMBER)
    int version = 0; // 1000 * major + 10 * minor
    pid_t owner = 0; // the process that has initialized it: it does not work in others

    // Describes a failed call: what was done, and the driver's name for what is wrong.
    Status fail(const Host &host, Result result, const char *format, ...) const
        __attribute__((format(printf, 4, 5)));
    Status fail_with(const Host &host, Result result, const char *format, va_list words) const
        __attribute__((format(printf, 4, 0)));
};
#undef DTRAIN_CUDA_MEMBER

// Opens and initializes the driver at the first call. UNSUPPORTED: it is not here, has no device,
// or is too old; STATE: this is a child made by fork(). Any thread.
Status open_driver(const Host &host, const Driver *&out);

} // namespace dtrain::cuda
