// Keeps this thread's error text, and the names and texts of all statuses.
// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace dtrain {
namespace {

// A plain buffer without a destructor, so that it is safe with dlclose() and late in a thread's
// life.
thread_local char last_text[error_text_size];

Status close_status(int error) {
    switch (error) {
    case ENOMEM: return DTRAIN_ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE: return DTRAIN_ERR_LIMIT;
    case ENOENT: return DTRAIN_ERR_NOT_FOUND;
    default: return DTRAIN_ERR_IO;
    }
}

} // namespace

Status fail(Status status, const char *format, ...) {
    // Formatted into another buffer first, since an argument may be this thread's own text.
    char fresh[error_text_size];
    va_list args;
    va_start(args, format);
    std::vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    std::memcpy(last_text, fresh, sizeof fresh);
    return status;
}

Status fail_within(Status status, const char *format, ...) {
    char before[error_text_size], whole[2 * error_text_size + 2];
    va_list args;
    va_start(args, format);
    std::vsnprintf(before, sizeof before, format, args);
    va_end(args);
    std::snprintf(whole, sizeof whole, "%s: %s", before, last_text);
    set_error_text(whole);
    return status;
}

Status fail_errno(int error, const char *format, ...) {
    char what[error_text_size], why[128], whole[error_text_size + 160];
    va_list args;
    va_start(args, format);
    std::vsnprintf(what, sizeof what, format, args);
    va_end(args);
    std::snprintf(whole, sizeof whole, "%s: %s%s", what, strerror_r(error, why, sizeof why),
                  error == EMFILE ? "; raise ulimit -n" : "");
    set_error_text(whole);
    return close_status(error);
}

KeptErrorText::KeptErrorText() { std::memcpy(text_, last_text, sizeof text_); }

const char *error_text() { return last_text; }

void set_error_text(const char *from) {
    if (from == last_text) return;
    const size_t length = strnlen(from, sizeof last_text - 1); // text that does not fit is cut
    std::memcpy(last_text, from, length);
    last_text[length] = 0;
}

const char *status_name(Status status) {
    switch (status) {
#define DTRAIN_X(name, value, text)                                                                \
    case value: return "DTRAIN_" #name;
        DTRAIN_STATUS_MAP(DTRAIN_X)
#undef DTRAIN_X
    default: return "DTRAIN_ERR_UNKNOWN";
    }
}

const char *status_text(Status status) {
    switch (status) {
#define DTRAIN_X(name, value, text)                                                                \
    case value: return text;
        DTRAIN_STATUS_MAP(DTRAIN_X)
#undef DTRAIN_X
    default: return "unknown status";
    }
}

} // namespace dtrain
