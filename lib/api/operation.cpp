// Reads the parameters of operations and makes their requests.
// SPDX-License-Identifier: Apache-2.0
#include "api/operation.h"

namespace dtrain::api {
namespace {

Status check_stream(const dtrain_op_params_t &params, bool blocking, Allowed allowed) {
    if (params.stream_type != DTRAIN_STREAM_CUDA)
        return fail(DTRAIN_ERR_UNSUPPORTED, "unknown stream_type %u", params.stream_type);
    if (!allowed.stream)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "stream: only collectives and messages can be put on a stream, and only those "
                    "with a buffer on an accelerator that the context knows (option accelerators); "
                    "synchronize the stream and leave stream_type 0");
    if (blocking)
        return fail(
            DTRAIN_ERR_INVALID,
            "stream: the operation needs a request (request_p) or a completion queue, which "
            "tells of its failure");
    return DTRAIN_OK;
}

} // namespace

Status Operation::read(const dtrain_context *context, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Allowed allowed, Operation &out) {
    if (Status s = take(out.params, params); s != DTRAIN_OK) return s;
    const dtrain_op_params_t &p = out.params;
    if (p.flags & DTRAIN_OP_PERSISTENT)
        return fail(DTRAIN_ERR_UNSUPPORTED, "only collectives and messages can be persistent");
    if ((p.flags & ~(DTRAIN_OP_AWAITED | DTRAIN_OP_FACTORS)) != 0)
        return fail(DTRAIN_ERR_UNSUPPORTED, "unknown operation flags 0x%x", p.flags);
    if (awaited(p) && (request_p == nullptr || p.cq != nullptr))
        return fail(DTRAIN_ERR_INVALID,
                    "DTRAIN_OP_AWAITED needs a request to wait for (request_p), "
                    "not a completion queue's event");
    out.blocking = request_p == nullptr && p.cq == nullptr;
    if (p.stream_type != DTRAIN_STREAM_NONE)
        if (Status s = check_stream(p, out.blocking, allowed); s != DTRAIN_OK) return s;
    if (!allowed.table_terms && (p.weight != 0 || p.min_version != 0))
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "weight and min_version are for pushes and pulls of tables");
    for (const dtrain_mem *mem : {p.send_mem, p.recv_mem})
        if (mem != nullptr && mem->context != context)
            return fail(DTRAIN_ERR_INVALID,
                        "send_mem or recv_mem was registered with another context");
    if (p.cq != nullptr && p.cq->context != context)
        return fail(DTRAIN_ERR_INVALID, "the completion queue (cq) belongs to another context");
    return DTRAIN_OK;
}

const collectives::Scaling *read_scaling(const dtrain_op_params_t &params,
                                         collectives::Scaling &out) {
    const bool given = (params.flags & DTRAIN_OP_FACTORS) != 0;
    if (!given && params.prescale == 0 && params.postscale == 0) return nullptr;
    if (given || params.prescale != 0) out.before = params.prescale;
    if (given || params.postscale != 0) out.after = params.postscale;
    return &out;
}

Status refuse_scaling(const char *what) {
    return fail(DTRAIN_ERR_UNSUPPORTED, "%s: only reductions have a prescale or postscale", what);
}

Holds::Holds(const Operation &operation, engine::Request &request) : request_(request) {
    const dtrain_mem *mems[] = {operation.params.send_mem, operation.params.recv_mem};
    if (mems[1] == mems[0]) mems[1] = nullptr;
    for (int i = 0; i < 2; i++)
        // Memory of accelerators is held by what stages it.
        if (mems[i] != nullptr && mems[i]->registration != nullptr) {
            request.holds[i] = &mems[i]->registration->users;
            request.holds[i]->fetch_add(1);
        }
}

void Holds::undo() {
    for (auto *&users : request_.holds)
        if (users != nullptr) {
            users->fetch_sub(1);
            users = nullptr;
        }
}

Status make_request(dtrain_context *context, const Operation &operation, bool with_handle,
                    engine::Request *&out) {
    engine::CompletionQueue *queue = nullptr;
    if (MemoryReserve::drawn_on()) return out_of_memory();
    if (operation.params.cq != nullptr) {
        queue = operation.params.cq->queue.get();
        if (!queue->reserve())
            return fail(DTRAIN_ERR_BUSY,
                        "the completion queue is full; poll it, or create it with a larger "
                        "depth");
    }
    out = engine::Request::create(operation.params.user_tag, queue, with_handle);
    if (out == nullptr) {
        if (queue != nullptr) queue->unreserve();
        return fail(DTRAIN_ERR_NO_MEMORY, "out of memory");
    }
    out->context = context;
    return DTRAIN_OK;
}

void drop_request(engine::Request *request) {
    if (request->queue != nullptr) request->queue->unreserve();
    if (request->handle_given) request->release();
    request->release();
}

Status blocking_result(const engine::Request &request) {
    Status status = request.outcome().status;
    if (status != DTRAIN_OK) set_error_text(request.error());
    return status;
}

} // namespace dtrain::api
