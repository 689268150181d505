// Status codes, and the error text that goes with a failure.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"

#include <cstddef>

namespace dtrain {

using Status = dtrain_status_t;

// Longest error text kept, in bytes, with its terminator.
inline constexpr size_t error_text_size = 512;

// Formats the error text into this thread's buffer and returns `status`. The first function that
// knows the cause calls it; callers only pass the status on (or extend the text, see below).
[[gnu::format(printf, 2, 3)]] Status fail(Status status, const char *format, ...);
// Puts "<formatted>: " in front of this thread's error text; returns `status`.
[[gnu::format(printf, 2, 3)]] Status fail_within(Status status, const char *format, ...);
// fail() with strerror(error) and DTRAIN_ERR_IO (or a more specific status for ENOMEM, EMFILE,
// ENFILE).
[[gnu::format(printf, 2, 3)]] Status fail_errno(int error, const char *format, ...);

// This thread's error text, valid until its next fail(). Never NULL.
const char *error_text();
void set_error_text(const char *text);

// Puts this thread's error text back at its end: around work that is not the caller's own.
class KeptErrorText {
  public:
    KeptErrorText();
    ~KeptErrorText() { set_error_text(text_); }
    KeptErrorText(const KeptErrorText &) = delete;
    KeptErrorText &operator=(const KeptErrorText &) = delete;

  private:
    char text_[error_text_size];
};

const char *status_name(Status status);
const char *status_text(Status status);

} // namespace dtrain
