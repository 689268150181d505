// The timeline of a rank: records in memory while it works, a file behind its back.
// SPDX-License-Identifier: Apache-2.0
//
// While it is off, on() is all that it costs. While it is on, record() puts 64 bytes into a ring
// and never waits: what finds the ring full is dropped, counted, and reported in the file.
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
        std::string path; // %r is the rank; without it ".<rank>.json" is appended
        int32_t rank = 0;
        std::string host; // equal for processes that share their CLOCK_MONOTONIC; opaque
    };
    explicit Timeline(Log &log) : log_(log) {}
    ~Timeline();

    bool on() const { return on_.load(std::memory_order_relaxed); }
    void record(const Record &record); // any thread
    // A copy of the text that lives as long as the timeline; after max_names of them "...".
    const char *intern(std::string_view text);

    // Any thread. start(): IO when the file cannot be written, STATE when it is on.
    Status start(const Params &params);
    Status stop();
    // Writes what has been recorded so far; one warning when that fails, which ends the timeline.
    // Returns the number of records.
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
    std::atomic<Ring *> ring_{nullptr}; // made at the first start, kept until the end

    std::mutex file_mutex_; // all of the following
    std::unique_ptr<Ring> owned_ring_;
    Fd fd_;
    std::string name_, buffer_;
    int32_t rank_ = 0;
    uint64_t dropped_before_ = 0, dropped_ = 0; // when the file was begun; as it says
    std::array<Lanes, track_count> lanes_;
    std::array<uint32_t, track_count> named_{}; // lanes that have got their names

    std::mutex names_mutex_;
    std::unordered_set<std::string> names_; // nodes: they stay where they are
};

} // namespace dtrain::trace
