// Formats log lines and passes them to the sink or stderr.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/callback.h"

#include <cstdarg>
#include <cstdio>
#include <unistd.h>

namespace dtrain {

void Log::set_sink(dtrain_log_fn sink, void *arg) {
    std::lock_guard lock(mutex_);
    sink_ = sink;
    arg_ = arg;
}

void Log::write(int32_t level, const char *format, ...) {
    if (!enabled(level)) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    write_line(level, line);
}

void Log::write_line(int32_t level, const char *line) {
    if (enabled(level)) put(level, line);
}

void Log::tell(const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(DTRAIN_LOG_INFO, line);
}

void Log::put(int32_t level, const char *line) {
    std::lock_guard lock(mutex_);
    Thrown thrown;
    if (sink_ != nullptr && returns([&] { sink_(arg_, level, line); }, thrown)) return;
    if (sink_ != nullptr)
        std::fprintf(stderr,
                     "dtrain error: the log callback threw %s (callbacks must not throw) at this "
                     "line:\n",
                     thrown.text);
    static constexpr const char *names[] = {"", "error", "warning", "info", "debug"};
    std::fprintf(stderr, "dtrain %s: %s\n", names[level], line);
}

} // namespace dtrain
