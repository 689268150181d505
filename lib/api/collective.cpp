// The collectives and the point-to-point calls of the C API: each packs its arguments into a Call
// and runs it.
// SPDX-License-Identifier: Apache-2.0
#include "api/persistent.h"

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::Begin;
using dtrain::api::check_handle;
using dtrain::api::How;
using dtrain::api::Staged;
using dtrain::api::Staging;
using dtrain::api::stream_of;
using dtrain::collectives::Call;
using dtrain::collectives::CallOptions;
using dtrain::collectives::Kind;
using Results = dtrain::engine::Landing::Results;

namespace {

Status run(dtrain_comm_t *comm, const Call &call, const dtrain_op_params_t *params,
           dtrain_request_t **request_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return dtrain::api::run_call(
        comm, call, [] { return nullptr; }, params, request_p);
}

// Computes the bytes of a message. An unknown dtype is an error even for 0 elements.
Status message_bytes(const char *what, uint64_t count, uint32_t dtype, uint64_t &bytes) {
    uint64_t size = dtrain_dtype_size(dtype);
    if (size == 0)
        return fail(DTRAIN_ERR_INVALID,
                    "%s: unknown dtype %u; known are 1 (DTRAIN_F32) to 12 "
                    "(DTRAIN_U64)",
                    what, dtype);
    if (__builtin_mul_overflow(count, size, &bytes))
        return fail(DTRAIN_ERR_INVALID,
                    "%s: %llu elements: their size in bytes does not fit in 64 bits", what,
                    static_cast<unsigned long long>(count));
    return DTRAIN_OK;
}

// post(buffer, options) posts the message.
template <class Post>
Status run_message(dtrain_comm_t *comm, void *buffer, const dtrain_op_params_t *params,
                   dtrain_request_t **request_p, const Post &post) {
    const auto go = [=](const CallOptions &options) { return post(buffer, options); };
    if (dtrain::api::wants_persistent(params))
        return dtrain::api::make_persistent(comm, params, request_p, go);
    return dtrain::api::run_operation(comm->context, params, request_p, go);
}

// The same on the copy that stands for the buffer.
template <class Post>
Status run_staged_message(dtrain_comm_t *comm, void *copy, const Staged &staged,
                          const dtrain_op_params_t *params, dtrain_request_t **request_p,
                          const Post &post) {
    const How how = {
        .when = Begin::gated, .results = Results::received, .stream = stream_of(params)};
    const auto go = [=](const CallOptions &options) {
        return dtrain::api::post_staged(
            comm->context, staged, options, how,
            [&](const CallOptions &on_host) { return post(copy, on_host); });
    };
    const dtrain::api::Allowed allowed{.stream = true};
    if (dtrain::api::wants_persistent(params))
        return dtrain::api::make_persistent(comm, params, request_p, go, allowed);
    return dtrain::api::run_operation(comm->context, params, request_p, go, allowed);
}

// If the buffer may lie on an accelerator. found: whether it does; otherwise nothing was done.
template <class Post>
[[gnu::noinline]] Status find_and_run(dtrain_comm_t *comm, const char *what, bool sends,
                                      void *buffer, uint64_t bytes,
                                      const dtrain_op_params_t *params,
                                      dtrain_request_t **request_p, const Post &post, bool &found) {
    return dtrain::api::catching([&]() -> Status {
        Staging staging(comm->context);
        void *at = buffer;
        const void *from = buffer;
        // On a stream all of the buffer is copied back, so it is copied first: the message may be
        // shorter.
        const bool whole = stream_of(params).given;
        Status s = sends   ? staging.reads(from, bytes)
                   : whole ? staging.updates(at, bytes)
                           : staging.writes(at, bytes);
        if (s != DTRAIN_OK) return fail_within(s, "%s", what);
        found = staging.staged() != nullptr;
        if (!found) return DTRAIN_OK;
        if (sends) at = const_cast<void *>(from);
        return run_staged_message(comm, at, staging.staged(), params, request_p, post);
    });
}

} // namespace

dtrain_status_t dtrain_allreduce(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                                 uint32_t dtype, uint32_t op, const dtrain_op_params_t *params,
                                 dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::allreduce,
                .send = send,
                .recv = recv,
                .count = count,
                .dtype = dtype,
                .op = op},
               params, request_p);
}

dtrain_status_t dtrain_reduce(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                              uint32_t dtype, uint32_t op, int32_t root,
                              const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::reduce,
                .send = send,
                .recv = recv,
                .count = count,
                .dtype = dtype,
                .op = op,
                .root = root},
               params, request_p);
}

dtrain_status_t dtrain_reduce_scatter(dtrain_comm_t *comm, const void *send, void *recv,
                                      uint64_t count, uint32_t dtype, uint32_t op,
                                      const dtrain_op_params_t *params,
                                      dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::reduce_scatter,
                .send = send,
                .recv = recv,
                .count = count,
                .dtype = dtype,
                .op = op},
               params, request_p);
}

dtrain_status_t dtrain_reduce_scatterv(dtrain_comm_t *comm, const void *send, void *recv,
                                       const uint64_t *counts, uint32_t dtype, uint32_t op,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::reduce_scatter,
                .ragged = true,
                .send = send,
                .recv = recv,
                .counts = counts,
                .dtype = dtype,
                .op = op},
               params, request_p);
}

dtrain_status_t dtrain_allgather(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                                 uint32_t dtype, const dtrain_op_params_t *params,
                                 dtrain_request_t **request_p) {
    return run(
        comm, {.kind = Kind::allgather, .send = send, .recv = recv, .count = count, .dtype = dtype},
        params, request_p);
}

dtrain_status_t dtrain_allgatherv(dtrain_comm_t *comm, const void *send, void *recv,
                                  const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
                                  const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::allgather,
                .ragged = true,
                .send = send,
                .recv = recv,
                .counts = counts,
                .displs = displs,
                .dtype = dtype},
               params, request_p);
}

dtrain_status_t dtrain_broadcast(dtrain_comm_t *comm, void *buffer, uint64_t count, uint32_t dtype,
                                 int32_t root, const dtrain_op_params_t *params,
                                 dtrain_request_t **request_p) {
    return run(
        comm,
        {.kind = Kind::broadcast, .recv = buffer, .count = count, .dtype = dtype, .root = root},
        params, request_p);
}

dtrain_status_t dtrain_gather(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                              uint32_t dtype, int32_t root, const dtrain_op_params_t *params,
                              dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::gather,
                .send = send,
                .recv = recv,
                .count = count,
                .dtype = dtype,
                .root = root},
               params, request_p);
}

dtrain_status_t dtrain_gatherv(dtrain_comm_t *comm, const void *send, void *recv,
                               const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
                               int32_t root, const dtrain_op_params_t *params,
                               dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::gather,
                .ragged = true,
                .send = send,
                .recv = recv,
                .counts = counts,
                .displs = displs,
                .dtype = dtype,
                .root = root},
               params, request_p);
}

dtrain_status_t dtrain_scatter(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                               uint32_t dtype, int32_t root, const dtrain_op_params_t *params,
                               dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::scatter,
                .send = send,
                .recv = recv,
                .count = count,
                .dtype = dtype,
                .root = root},
               params, request_p);
}

dtrain_status_t dtrain_scatterv(dtrain_comm_t *comm, const void *send, void *recv,
                                const uint64_t *counts, const uint64_t *displs, uint32_t dtype,
                                int32_t root, const dtrain_op_params_t *params,
                                dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::scatter,
                .ragged = true,
                .send = send,
                .recv = recv,
                .counts = counts,
                .displs = displs,
                .dtype = dtype,
                .root = root},
               params, request_p);
}

dtrain_status_t dtrain_alltoall(dtrain_comm_t *comm, const void *send, void *recv, uint64_t count,
                                uint32_t dtype, const dtrain_op_params_t *params,
                                dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::alltoall, .send = send, .recv = recv, .count = count, .dtype = dtype},
               params, request_p);
}

dtrain_status_t dtrain_alltoallv(dtrain_comm_t *comm, const void *send, const uint64_t *send_counts,
                                 const uint64_t *send_displs, void *recv,
                                 const uint64_t *recv_counts, const uint64_t *recv_displs,
                                 uint32_t dtype, const dtrain_op_params_t *params,
                                 dtrain_request_t **request_p) {
    return run(comm,
               {.kind = Kind::alltoall,
                .ragged = true,
                .send = send,
                .recv = recv,
                .counts = send_counts,
                .displs = send_displs,
                .recv_counts = recv_counts,
                .recv_displs = recv_displs,
                .dtype = dtype},
               params, request_p);
}

dtrain_status_t dtrain_barrier(dtrain_comm_t *comm, const dtrain_op_params_t *params,
                               dtrain_request_t **request_p) {
    return run(comm, {.kind = Kind::barrier}, params, request_p);
}

dtrain_status_t dtrain_send(dtrain_comm_t *comm, const void *buffer, uint64_t count, uint32_t dtype,
                            int32_t peer, uint32_t tag, const dtrain_op_params_t *params,
                            dtrain_request_t **request_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    uint64_t bytes = 0;
    if (Status s = message_bytes("send", count, dtype, bytes); s != DTRAIN_OK) return s;
    const auto post = [=](void *at, const CallOptions &options) {
        if (options.scaling != nullptr) return dtrain::api::refuse_scaling("send");
        return comm->communicator->post_send(at, bytes, peer, tag, options);
    };
    void *const from = const_cast<void *>(buffer); // sends only read it
    if (comm->context->domains.any()) [[unlikely]] {
        bool found = false;
        const Status s =
            find_and_run(comm, "send", true, from, bytes, params, request_p, post, found);
        if (found || s != DTRAIN_OK) return s;
    }
    return run_message(comm, from, params, request_p, post);
}

dtrain_status_t dtrain_recv(dtrain_comm_t *comm, void *buffer, uint64_t count, uint32_t dtype,
                            int32_t peer, uint32_t tag, const dtrain_op_params_t *params,
                            dtrain_request_t **request_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    uint64_t bytes = 0;
    if (Status s = message_bytes("recv", count, dtype, bytes); s != DTRAIN_OK) return s;
    const auto post = [=](void *into, const CallOptions &options) {
        if (options.scaling != nullptr) return dtrain::api::refuse_scaling("recv");
        return comm->communicator->post_recv(into, bytes, peer, tag, options);
    };
    if (comm->context->domains.any()) [[unlikely]] {
        bool found = false;
        const Status s =
            find_and_run(comm, "recv", false, buffer, bytes, params, request_p, post, found);
        if (found || s != DTRAIN_OK) return s;
    }
    return run_message(comm, buffer, params, request_p, post);
}
