// Runs operations whose buffers lie on accelerators, on copies of the buffers in host memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/staged_buffers.h"
#include "api/guard.h"
#include "api/handles.h"
#include "base/clock.h"
#include "engine/landing.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace dtrain::api {

using Staged = std::shared_ptr<accel::StagedBuffers>; // nullptr: no buffer is on an accelerator

// Finds out which buffers of an operation lie on accelerators, and puts host memory in their place.
// Without accelerators in the process a call costs a load and a branch.
class Staging {
  public:
    explicit Staging(dtrain_context *context) : context_(context) {}

    // Each replaces the pointer if need be. bytes: what the operation may read or write.
    Status reads(const void *&address, uint64_t bytes) {
        return may_stage() ? stage(address, bytes, true, false) : Status{DTRAIN_OK};
    }
    Status writes(void *&address, uint64_t bytes) {
        return may_stage() ? stage_result(address, bytes, false) : Status{DTRAIN_OK};
    }
    Status updates(void *&address, uint64_t bytes) {
        return may_stage() ? stage_result(address, bytes, true) : Status{DTRAIN_OK};
    }
    // A send and a receive buffer, which may be the same.
    Status both(const void *&send, void *&recv, uint64_t bytes);
    // The buffers of a collective.
    Status call(const collectives::Communicator &comm, collectives::Call &call);

    const Staged &staged() const { return staged_; }
    // Of a collective that perhaps needs no copies, because all its buffers are in shared memory of
    // one device; domain: nullptr if it does.
    const accel::DirectBuffers &direct() const { return direct_; }
    // No buffer of the collective is the host's, though there may be none: no order of a stream
    // matters to this rank then. Not of a barrier, which has no data anywhere.
    bool all_staged() const { return all_staged_; }
    bool reads_host() const { return reads_host_; }                 // the send buffer is the host's
    std::span<uint8_t> host_result() const { return host_result_; } // {}: it is staged

  private:
    bool may_stage() const { return context_->domains.any(); }
    Status stage(const void *&address, uint64_t bytes, bool reads, bool writes);
    Status stage_result(void *&address, uint64_t bytes, bool reads);
    Status add(const accel::Where &where, uint64_t bytes, std::vector<accel::Extent> inputs,
               std::vector<accel::Extent> outputs, uint8_t *&host);
    Status one_memory(const collectives::CollectiveSpec &spec, const accel::Where &send,
                      const accel::Where &recv, collectives::Call &call);

    void find_direct(const collectives::Communicator &comm, const collectives::CollectiveSpec &spec,
                     const collectives::Call &call, const accel::Where &send,
                     const accel::Where &recv);

    dtrain_context *const context_;
    Staged staged_;
    accel::DirectBuffers direct_;
    bool all_staged_ = false, reads_host_ = false;
    std::span<uint8_t> host_result_;
};

// When an operation is posted: once its input is copied (the call waits for that), or at once, with
// a gate before its work, by operations that heed gates.
enum class Begin { copied, gated };

// The stream of op_params.
struct Stream {
    bool given = false;
    void *handle = nullptr;
};
Stream stream_of(const dtrain_op_params_t *params); // which may be NULL

struct How {
    Begin when = Begin::copied;
    engine::Landing::Results results = engine::Landing::Results::all;
    Stream stream = {};               // given only with `gated`
    accel::DirectBuffers direct = {}; // of a domain: the operation may work on them themselves
    bool all_staged = false, reads_host = false;
    std::span<uint8_t> host_result = {}; // of a collective
    engine::Landing::Scale scale = {};   // of the landing's
};

// How long an operation with this timeout may take; negative: no limit.
int64_t time_limit_of(const dtrain_context &context, int64_t timeout_ns);
int64_t deadline_of(const dtrain_context &context, int64_t timeout_ns); // on monotonic_clock()

// Ends a blocking operation, which has run with the request `inner`: its results go to the
// accelerators.
void end_blocking(accel::StagedBuffers &staged, engine::Landing::Results results,
                  const engine::Request &inner, engine::Request &outer, int64_t deadline_ns);

// Posts the operation on the copies, as post_staged().
template <class Post>
Status post_on_copies(dtrain_context *context, const Staged &staged,
                      collectives::CallOptions options, const How &how, Post &&post) {
    const int64_t deadline_ns = deadline_of(*context, options.timeout_ns);
    const bool on_stream = how.stream.given;
    if (Status s = on_stream ? staged->begin_on(how.stream.handle) : staged->begin_fetch();
        s != DTRAIN_OK)
        return s;
    engine::Request *const request = options.request;
    if (options.blocking || how.when == Begin::copied) {
        if (Status s = staged->await_fetched(deadline_ns); s != DTRAIN_OK) return s;
        const int64_t now_ns = context->agent->clock().now_ns();
        if (options.timeout_ns > 0) options.timeout_ns = std::max<int64_t>(deadline_ns - now_ns, 1);
    }
    if (options.blocking) {
        engine::Request inner;
        options.request = &inner;
        const Status s = post(options);
        if (s == DTRAIN_OK) end_blocking(*staged, how.results, inner, *request, deadline_ns);
        return s;
    }
    // A stream gets there when the program's work before it is done.
    request->landing = new engine::Landing(request, *context->agent, staged, how.results,
                                           on_stream ? INT64_MAX : deadline_ns,
                                           time_limit_of(*context, options.timeout_ns));
    request->landing->scale_by(how.scale);
    if (how.when == Begin::gated) request->gate = request->landing;
    const Status s = post(options);
    if (s != DTRAIN_OK) {
        request->gate = nullptr;
        staged->release();
        request->landing->dispose();
    }
    return s;
}

// Posts an operation that decides whether it needs the copies (Communicator::post_undecided()).
template <class Post>
Status post_deciding(dtrain_context *context, const Staged &staged,
                     const collectives::CallOptions &options, const How &how, Post &&post) {
    engine::Request *const request = options.request;
    if (how.stream.given)
        if (Status s = staged->open_on(how.stream.handle); s != DTRAIN_OK) return s;
    request->landing = new engine::Landing(
        request, *context->agent, staged, how.direct, how.stream.given,
        deadline_of(*context, options.timeout_ns), time_limit_of(*context, options.timeout_ns));
    request->landing->scale_by(how.scale);
    const Status s = post(options);
    if (s != DTRAIN_OK) {
        request->gate = nullptr;
        staged->release();
        request->landing->dispose();
    }
    return s;
}

// The same, also blocking: only a request on the heap has a landing.
template <class Post>
Status post_on_either(dtrain_context *context, const Staged &staged,
                      const collectives::CallOptions &options, const How &how, Post &&post) {
    if (!options.blocking) return post_deciding(context, staged, options, how, post);
    const auto release = [](engine::Request *request) { request->release(); };
    const std::unique_ptr<engine::Request, decltype(release)> handle(
        engine::Request::create(0, nullptr, true), release);
    if (handle == nullptr) return out_of_memory();
    std::unique_ptr<engine::Request, decltype(release)> of_operation(handle.get(), release);
    collectives::CallOptions inner = options;
    inner.request = handle.get();
    inner.blocking = false;
    inner.awaited = true;
    if (Status s = post_deciding(context, staged, inner, how, post); s != DTRAIN_OK) return s;
    (void)of_operation.release(); // which completes it
    context->agent->wait(*handle, INT64_MAX);
    if (handle->outcome().status != DTRAIN_OK) options.request->set_error(handle->error());
    options.request->complete(handle->outcome());
    return DTRAIN_OK;
}

// Calls post(options), as run_operation() does, for an operation that uses the copies, if there are
// any.
template <class Post>
Status post_staged(dtrain_context *context, const Staged &staged,
                   const collectives::CallOptions &options, const How &how, Post &&post) {
    if (staged == nullptr) [[likely]]
        return post(options);
    return post_on_copies(context, staged, options, how, post);
}

} // namespace dtrain::api
