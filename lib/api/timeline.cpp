// Implements dtrain_timeline_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/timeline.h"

#include "api/guard.h"
#include "api/handles.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;

namespace dtrain::api {

Status Timeline::begin_writing() {
    end_writing(); // a writer that stopped because the disk was full is still there
    if (waiting_ != nullptr) {
        waiting_->add(&writer_);
        return DTRAIN_OK;
    }
    auto thread = std::make_unique<engine::Backgrounds>(agent_.clock());
    if (Status s = thread->start("dtrain-timeline"); s != DTRAIN_OK) return s;
    thread->add(&writer_);
    own_ = std::move(thread);
    return DTRAIN_OK;
}

void Timeline::end_writing() {
    if (waiting_ != nullptr) waiting_->remove(&writer_);
    own_.reset();
}

Status Timeline::open(const std::string &path) {
    Status s = agent_.timeline().start({.path = path, .rank = rank_, .host = host_});
    if (s != DTRAIN_OK) return s;
    s = begin_writing();
    if (s != DTRAIN_OK) (void)agent_.timeline().stop();
    return s;
}

Status Timeline::joined(int32_t rank, const std::string &host) {
    std::lock_guard lock(mutex_);
    rank_ = rank;
    host_ = host;
    if (wanted_.empty()) return DTRAIN_OK;
    Status s = open(wanted_);
    if (s == DTRAIN_OK) wanted_.clear();
    return s;
}

Status Timeline::start(const char *path) {
    std::lock_guard lock(mutex_);
    if (rank_ >= 0) return open(path);
    wanted_ = path;
    return DTRAIN_OK;
}

Status Timeline::stop() {
    std::lock_guard lock(mutex_);
    end_writing();
    bool waited = !wanted_.empty();
    wanted_.clear();
    Status s = agent_.timeline().stop();
    return waited ? DTRAIN_OK : s;
}

} // namespace dtrain::api

dtrain_status_t dtrain_timeline_start(dtrain_context_t *context, const char *path) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (path == nullptr || *path == 0)
        return fail(DTRAIN_ERR_INVALID, "timeline_start: path is NULL or empty");
    return guard([&] { return context->timeline->start(path); });
}

dtrain_status_t dtrain_timeline_stop(dtrain_context_t *context) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    return guard([&] { return context->timeline->stop(); });
}

dtrain_status_t dtrain_timeline_mark(dtrain_context_t *context, const char *name) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    if (name == nullptr) return fail(DTRAIN_ERR_INVALID, "timeline_mark: name is NULL");
    dtrain::trace::Timeline &timeline = context->agent->timeline();
    if (!timeline.on()) return DTRAIN_OK;
    return guard([&] {
        int64_t now = context->agent->clock().now_ns();
        timeline.record({.begin_ns = now,
                         .end_ns = now,
                         .name = timeline.intern(name),
                         .track = dtrain::trace::Track::marks});
        return DTRAIN_OK;
    });
}
