// Starts and stops a context's timeline, which is written only once the context has a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/backgrounds.h"
#include "engine/timeline_writer.h"

#include <memory>
#include <mutex>
#include <string>

namespace dtrain::api {

class Timeline {
  public:
    // waiting: run by threads that wait (progress=manual); nullptr: the file is written by a thread
    // of its own, because a disk that hangs must not keep heartbeats waiting.
    Timeline(engine::Agent &agent, std::string_view path, engine::Backgrounds *waiting)
        : agent_(agent), writer_(agent), waiting_(waiting), wanted_(path) {}

    // Called when the context has joined a job as `rank`. Opens the path that was set before, if
    // any.
    Status joined(int32_t rank, const std::string &host);
    Status start(const char *path);
    Status stop();

  private:
    Status open(const std::string &path);
    Status begin_writing();
    void end_writing();

    engine::Agent &agent_;
    engine::TimelineWriter writer_;
    engine::Backgrounds *const waiting_;
    std::unique_ptr<engine::Backgrounds> own_;
    std::mutex mutex_;
    std::string wanted_; // the path that joined() will open; "": none
    int32_t rank_ = -1;  // -1: not a member yet
    std::string host_;
};

} // namespace dtrain::api
