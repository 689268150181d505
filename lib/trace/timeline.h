// The timeline of a rank: records are kept in memory while it works, and written to a file in the
// background.
// SPDX-License-Identifier: Apache-2.0
//
// While it is off, it costs only on(). While it is on, record() puts 64 bytes into a ring and never
// waits: records that find the ring full are dropped and counted, and the file reports their
// number.
#pragma once
#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "trace/chrome.h"
#include "trace/ring.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace dtrain::trace {

class Timeline {
  public:
    struct Params {
        std::string path; // %r stands for the rank; without it ".<rank>.json" is appended
        int32_t rank = 0;
        std::string host; // equal for processes that share their CLOCK_MONOTONIC; opaque
    };
    explicit Timeline(Log &log) : log_(log) {}
    ~Timeline();

    bool on() const { return on_.load(std::memory_order_relaxed); }
    void record(const Record &record); // any thread
    // Returns a copy of the text that lives as long as the timeline; "..." after max_names of them.
    const char *intern(std::string_view text);

    // Any thread. start(): IO if the file cannot be written, STATE if the timeline is on.
    Status start(const Params &params);
    Status stop();
    // Writes what has been recorded so far; returns the number of records. If that fails, it logs
    // one warning and the timeline ends.
    uint64_t write_out();

    static std::string file_name(std::string_view path, int32_t rank);
    static constexpr size_t max_names = 4096;

  private:
    void begin_file(const Params &params);
    void append(const Record &record);
    bool flush();
    uint64_t drain();
    void append_dropped();
    void close_file();

    Log &log_;
    std::atomic<bool> on_{false};
    std::atomic<Ring *> ring_{nullptr}; // created at the first start, kept until destruction

    std::mutex file_mutex_; // guards all of the following
    std::unique_ptr<Ring> owned_ring_;
    Fd fd_;
    std::string name_, buffer_;
    int32_t rank_ = 0;
    uint64_t dropped_before_ = 0, dropped_ = 0; // count when the file was begun; count since
    std::array<Lanes, track_count> lanes_;
    std::array<uint32_t, track_count> named_{}; // number of lanes that have names

    std::mutex names_mutex_;
    std::unordered_set<std::string> names_; // node-based: texts do not move
};

} // namespace dtrain::trace
