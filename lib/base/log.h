// Log lines; they go to stderr until the program sets a sink.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"

#include <atomic>
#include <mutex>

namespace dtrain {

class Log {
  public:
    void set_level(int32_t level) { level_ = level; }
    void set_sink(dtrain_log_fn sink, void *arg);
    bool enabled(int32_t level) const { return level <= level_.load(std::memory_order_relaxed); }
    [[gnu::format(printf, 3, 4)]] void write(int32_t level, const char *format, ...);
    void write_line(int32_t level, const char *line);
    // Writes what the user has asked for, whatever the log level.
    [[gnu::format(printf, 2, 3)]] void tell(const char *format, ...);

  private:
    void put(int32_t level, const char *line);

    std::atomic<int32_t> level_{DTRAIN_LOG_WARN};
    // Held while a line is in the sink, so that the sink is not replaced meanwhile.
    std::mutex mutex_;
    dtrain_log_fn sink_ = nullptr;
    void *arg_ = nullptr;
};

} // namespace dtrain
