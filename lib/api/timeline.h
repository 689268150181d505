// Starts and stops a context's timeline, which is written only once the context has a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/timeline_writer.h"

#include <mutex>
#include <string>

namespace dtrain::api {

class Timeline {
  public:
    Timeline(engine::Agent &agent, std::string_view path) : writer(agent), wanted_(path) {}

    // Called when the context has joined a job as `rank`. Opens the path that was set before, if
    // any.
    Status joined(engine::Agent &agent, engine::Helper &helper, int32_t rank,
                  const std::string &host);
    Status start(engine::Agent &agent, engine::Helper &helper, const char *path);
    Status stop(engine::Agent &agent, engine::Helper &helper);

    engine::TimelineWriter writer; // must outlive the helper

  private:
    Status open(engine::Agent &agent, engine::Helper &helper, const std::string &path);

    std::mutex mutex_;
    std::string wanted_; // the path that joined() will open; "": none
    int32_t rank_ = -1;  // -1: not a member yet
    std::string host_;
};

} // namespace dtrain::api
