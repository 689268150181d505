// When a context's timeline is written: from the moment at which it has a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/timeline_writer.h"

#include <mutex>
#include <string>

namespace dtrain::api {

class Timeline {
  public:
    Timeline(engine::Agent &agent, std::string_view path) : writer(agent), wanted_(path) {}

    // The context has become this member; a path that was set before is opened now.
    Status joined(engine::Agent &agent, engine::Helper &helper, int32_t rank,
                  const std::string &host);
    Status start(engine::Agent &agent, engine::Helper &helper, const char *path);
    Status stop(engine::Agent &agent, engine::Helper &helper);

    engine::TimelineWriter writer; // outlives the helper

  private:
    Status open(engine::Agent &agent, engine::Helper &helper, const std::string &path);

    std::mutex mutex_;
    std::string wanted_; // to be opened by joined(); "": none
    int32_t rank_ = -1;  // not a member yet
    std::string host_;
};

} // namespace dtrain::api
