// Versions, status names and the last error's text.
// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "device/kernels.h"

#include <cstring>

uint32_t dtrain_version(void) { return DTRAIN_API_VERSION; }

const char *dtrain_version_string(void) { return DTRAIN_VERSION; }

const char *dtrain_status_name(dtrain_status_t status) { return dtrain::status_name(status); }

const char *dtrain_status_text(dtrain_status_t status) { return dtrain::status_text(status); }

size_t dtrain_last_error(char *buf, size_t len) {
    const char *text = dtrain::error_text();
    size_t whole = std::strlen(text);
    if (buf != nullptr && len > 0) {
        size_t kept = whole < len ? whole : len - 1;
        std::memcpy(buf, text, kept);
        buf[kept] = 0;
    }
    return whole;
}

size_t dtrain_dtype_size(uint32_t dtype) { return dtrain::device::dtype_size(dtype); }
