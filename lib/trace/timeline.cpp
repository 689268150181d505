// Starts, fills and ends the file of a timeline.
// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.h"

#include "base/clock.h"
#include "base/output_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace dtrain::trace {
namespace {

constexpr uint64_t slots = 1 << 16;       // 4.5 MiB
constexpr size_t write_bytes = 256 << 10; // bytes per write
constexpr uint32_t first_tid[] = {1, 101, 201};
constexpr const char *track_names[] = {"operations", "steps", "marks"};

// The difference between the time of day and CLOCK_MONOTONIC, in ns.
int64_t wall_offset_ns() {
    timespec wall;
    int64_t before = monotonic_clock().now_ns();
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t after = monotonic_clock().now_ns();
    return wall.tv_sec * second + wall.tv_nsec - before - (after - before) / 2;
}

} // namespace

Timeline::~Timeline() {
    if (fd_) (void)stop();
}

std::string Timeline::file_name(std::string_view path, int32_t rank) {
    std::string number = std::to_string(rank), name(path);
    size_t at = name.find("%r");
    if (at == std::string::npos) return name + "." + number + ".json";
    return name.replace(at, 2, number);
}

const char *Timeline::intern(std::string_view text) {
    std::lock_guard lock(names_mutex_);
    std::string name(text);
    if (names_.size() == max_names && !names_.contains(name)) return "...";
    return names_.insert(std::move(name)).first->c_str();
}

void Timeline::record(const Record &record) {
    Ring *ring = ring_.load(std::memory_order_acquire);
    if (ring != nullptr) ring->put(record);
}

Status Timeline::start(const Params &params) {
    std::lock_guard lock(file_mutex_);
    if (fd_)
        return fail(DTRAIN_ERR_STATE, "timeline: it is being written to \"%s\"; stop it first",
                    name_.c_str());
    std::string name = file_name(params.path, params.rank);
    Fd fd;
    if (Status s = replace_file(name, fd); s != DTRAIN_OK)
        return fail_within(DTRAIN_ERR_IO, "timeline: \"%s\" cannot be written (option timeline)",
                           name.c_str());
    if (owned_ring_ == nullptr) owned_ring_ = std::make_unique<Ring>(slots);
    drain(); // late records of the last file
    fd_ = std::move(fd);
    name_ = name;
    begin_file(params);
    ring_.store(owned_ring_.get(), std::memory_order_release);
    on_.store(true, std::memory_order_release);
    return DTRAIN_OK;
}

void Timeline::begin_file(const Params &params) {
    rank_ = params.rank;
    dropped_before_ = owned_ring_->dropped();
    dropped_ = 0;
    lanes_ = {};
    named_ = {};
    std::string text, number = std::to_string(rank_);
    buffer_ = "[\n";
    append_meta(buffer_, "process_name", rank_, 0, "name", "\"rank " + number + "\"");
    append_meta(buffer_, "process_sort_index", rank_, 0, "sort_index", number);
    append_quoted(text, params.host);
    append_meta(buffer_, "dtrain_host", rank_, 0, "host", text);
    append_meta(buffer_, "dtrain_wall_offset", rank_, 0, "ns", std::to_string(wall_offset_ns()));
}

void Timeline::append(const Record &record) {
    auto track = size_t(record.track);
    uint32_t lane = lanes_[track].place(record.begin_ns, record.end_ns);
    uint32_t tid = first_tid[track] + lane;
    if (lane >= named_[track]) {
        std::string name = track_names[track];
        if (lane > 0) name += " " + std::to_string(lane + 1);
        append_meta(buffer_, "thread_name", rank_, tid, "name", "\"" + name + "\"");
        append_meta(buffer_, "thread_sort_index", rank_, tid, "sort_index", std::to_string(tid));
        named_[track] = lane + 1;
    }
    append_record(buffer_, record, rank_, tid);
}

// Writes whole lines only, so that a process that is killed leaves a readable file.
bool Timeline::flush() {
    const char *at = buffer_.data();
    size_t left = buffer_.size();
    while (left > 0) {
        ssize_t n = write(fd_.get(), at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            log_.write(DTRAIN_LOG_WARN, "timeline: \"%s\" ends here: %s", name_.c_str(),
                       std::strerror(errno));
            return false;
        }
        at += n;
        left -= size_t(n);
    }
    buffer_.clear();
    return true;
}

uint64_t Timeline::drain() {
    uint64_t taken = 0;
    for (Record record; taken < slots && owned_ring_->take(record); taken++) {
        if (!fd_) continue;
        append(record);
        if (buffer_.size() < write_bytes || flush()) continue;
        close_file();
    }
    return taken;
}

void Timeline::append_dropped() {
    dropped_ = owned_ring_->dropped() - dropped_before_;
    append_meta(buffer_, "dtrain_dropped", rank_, 0, "records", std::to_string(dropped_));
}

void Timeline::close_file() {
    on_.store(false, std::memory_order_release);
    fd_.reset();
    buffer_.clear();
}

uint64_t Timeline::write_out() {
    std::lock_guard lock(file_mutex_);
    if (!fd_) return 0;
    uint64_t taken = drain();
    if (owned_ring_->dropped() - dropped_before_ != dropped_) append_dropped();
    if (fd_ && !flush()) close_file();
    return taken;
}

Status Timeline::stop() {
    std::lock_guard lock(file_mutex_);
    if (!fd_) return fail(DTRAIN_ERR_STATE, "timeline: it has not been started");
    on_.store(false, std::memory_order_release);
    drain();
    if (!fd_) return DTRAIN_OK; // the warning was logged
    append_dropped();
    buffer_.resize(buffer_.size() - 2); // removes the last comma
    buffer_ += "\n]\n";
    flush();
    close_file();
    return DTRAIN_OK;
}

} // namespace dtrain::trace
