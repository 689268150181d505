// Implements dtrain_gradients_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/operation.h"
#include "api/staging.h"
#include "collectives/communicator/agreement.h"
#include "gradients/queue.h"

#include <algorithm>
#include <cstring>

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::cluster::CallKind;
using dtrain::collectives::CallOptions;
using dtrain::gradients::Queue;

struct dtrain_gradients : dtrain::api::Child {
    using Child::Child;
    std::shared_ptr<Queue> queue;
};

namespace {

Status create(dtrain_comm *comm, const dtrain_gradients_params_t &given,
              dtrain_gradients **gradients_p) {
    auto fresh = std::make_unique<dtrain_gradients>(comm->context);
    if (Status s = Queue::create(*comm->communicator,
                                 {.bucket_bytes = given.bucket_bytes,
                                  .cycle_ns = given.cycle_ns,
                                  .stall_warn_ns = given.stall_warn_ns,
                                  .stall_fail_ns = given.stall_fail_ns},
                                 comm->context->registry, fresh->queue);
        s != DTRAIN_OK)
        return s;
    std::lock_guard lock(comm->gradients_mutex);
    std::erase_if(comm->gradients, [](auto &entry) { return entry.expired(); });
    comm->gradients.push_back(fresh->queue);
    *gradients_p = fresh.release();
    return DTRAIN_OK;
}

// Checks one tensor. The buffers belong to the caller, so the rules for them are those of an
// allreduce.
Status check_submission(const char *name, const void *send, const void *recv, uint64_t count,
                        uint32_t dtype, uint32_t op) {
    if (name == nullptr) return fail(DTRAIN_ERR_INVALID, "gradients: the tensor's name is NULL");
    size_t length = strnlen(name, dtrain::gradients::max_name + 1);
    if (Status s = dtrain::gradients::check_tensor({name, length}, count, dtype, op);
        s != DTRAIN_OK)
        return s;
    if (send == nullptr || recv == nullptr)
        return fail(DTRAIN_ERR_INVALID, "gradients: tensor \"%s\": %s is NULL", name,
                    send == nullptr ? "send" : "recv");
    auto from = reinterpret_cast<uintptr_t>(send), to = reinterpret_cast<uintptr_t>(recv);
    uint64_t bytes = count * dtrain_dtype_size(dtype), apart = from < to ? to - from : from - to;
    if (from != to && apart < bytes)
        return fail(DTRAIN_ERR_INVALID, "gradients: tensor \"%s\": send and recv overlap", name);
    return DTRAIN_OK;
}

} // namespace

dtrain_status_t dtrain_gradients_create(dtrain_comm_t *comm,
                                        const dtrain_gradients_params_t *params,
                                        dtrain_gradients_t **gradients_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return guard_new([&]() -> Status {
        dtrain_gradients_params_t given{};
        Status taken = gradients_p == nullptr ? fail(DTRAIN_ERR_INVALID, "gradients_p is NULL")
                                              : dtrain::api::take(given, params);
        if (taken == DTRAIN_OK && given.flags != 0)
            taken = fail(DTRAIN_ERR_UNSUPPORTED, "gradients: unknown flags 0x%x", given.flags);
        if (taken != DTRAIN_OK)
            return refuse(*comm->communicator, CallKind::gradients_create, taken);
        return create(comm, given, gradients_p);
    });
}

dtrain_status_t dtrain_gradients_destroy(dtrain_gradients_t *gradients) {
    if (gradients == nullptr || !gradients->birth.here()) return DTRAIN_OK;
    return guard([&] {
        delete gradients;
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_gradients_submit(dtrain_gradients_t *gradients, const char *name,
                                        const void *send, void *recv, uint64_t count,
                                        uint32_t dtype, uint32_t op,
                                        const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    if (Status s = check_handle(gradients, "gradients"); s != DTRAIN_OK) return s;
    if (Status s = check_submission(name, send, recv, count, dtype, op); s != DTRAIN_OK) return s;
    dtrain::api::Staging staging(gradients->context);
    if (Status s = staging.both(send, recv, count * dtrain_dtype_size(dtype)); s != DTRAIN_OK)
        return fail_within(s, "gradients: tensor \"%s\"", name);
    const auto go = [&](const CallOptions &options) {
        if (options.scaling != nullptr) return dtrain::api::refuse_scaling("gradients_submit");
        dtrain::gradients::Submission submission;
        submission.name = name;
        submission.spec = {.count = count, .dtype = uint8_t(dtype), .op = uint8_t(op)};
        submission.priority = options.priority;
        return gradients->queue->submit(std::move(submission), {send, recv}, options.request,
                                        options.timeout_ns, options.blocking, options.awaited);
    };
    return dtrain::api::run_operation(
        gradients->context, params, request_p, [&](const CallOptions &options) {
            return dtrain::api::post_staged(gradients->context, staging.staged(), options, {}, go);
        });
}

dtrain_status_t dtrain_gradients_join(dtrain_gradients_t *gradients,
                                      const dtrain_op_params_t *params, int32_t *last_p,
                                      dtrain_request_t **request_p) {
    if (Status s = check_handle(gradients, "gradients"); s != DTRAIN_OK) return s;
    return dtrain::api::run_operation(
        gradients->context, params, request_p, [&](const CallOptions &options) {
            if (options.scaling != nullptr) return dtrain::api::refuse_scaling("gradients_join");
            Status s =
                gradients->queue->join(options.request, options.timeout_ns, options.blocking);
            if (s != DTRAIN_OK || !options.blocking || last_p == nullptr) return s;
            const dtrain::engine::Outcome &outcome = options.request->outcome();
            if (outcome.status == DTRAIN_OK) *last_p = outcome.peer;
            return s;
        });
}

dtrain_status_t dtrain_gradients_stats(dtrain_gradients_t *gradients,
                                       dtrain_gradients_counters_t *stats) {
    if (Status s = check_handle(gradients, "gradients"); s != DTRAIN_OK) return s;
    return guard([&] {
        dtrain::gradients::Stats now = gradients->queue->stats();
        dtrain_gradients_counters_t all = {};
        all.cycles = now.cycles;
        all.exchanges = now.exchanges;
        all.tensors = now.tensors;
        all.buckets = now.buckets;
        all.fused_tensors = now.fused_tensors;
        all.fused_bytes = now.fused_bytes;
        all.stalls = now.stalls;
        return dtrain::api::give(stats, all, "gradients");
    });
}
