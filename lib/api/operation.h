// Runs every operation of the C API: blocking, with a request, or with a completion queue.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/guard.h"
#include "api/handles.h"
#include "dtrain.h"

#include <cstdint>

namespace dtrain::api {

// Which parameters an operation takes that others do not.
struct Allowed {
    bool table_terms = false; // weight and min_version; the table's own checks cover them
    bool stream = false;
};

// The checked parameters of an operation.
struct Operation {
    dtrain_op_params_t params;
    bool blocking = true;

    // Reads and checks them. request_p: the caller's, or NULL.
    static Status read(const dtrain_context *context, const dtrain_op_params_t *params,
                       dtrain_request_t **request_p, Allowed allowed, Operation &out);
};

// Counts the operation as a user of its registered memory until the request is complete.
class Holds {
  public:
    Holds(const Operation &operation, engine::Request &request);
    void undo(); // when the operation was not posted after all

  private:
    engine::Request &request_;
};

// Creates a request on the heap, and reserves its place in the completion queue.
Status make_request(dtrain_context *context, const Operation &operation, bool with_handle,
                    engine::Request *&out);
void drop_request(engine::Request *request); // when it was not posted after all
// Returns the status of a finished blocking operation and stores its text for dtrain_last_error().
Status blocking_result(const engine::Request &request);

inline bool awaited(const dtrain_op_params_t &params) {
    return (params.flags & DTRAIN_OP_AWAITED) != 0;
}

// Reads prescale and postscale for post(); nullptr when neither is set.
const collectives::Scaling *read_scaling(const dtrain_op_params_t &params,
                                         collectives::Scaling &out);

Status refuse_scaling(const char *what); // what: the operation that takes no scaling

// Calls post(options), which posts the operation or fails. The caller sets all options that the
// parameters do not.
template <class F>
Status run_operation(dtrain_context *context, const dtrain_op_params_t *params,
                     dtrain_request_t **request_p, F &&post, Allowed allowed = {}) {
    return catching([&]() -> Status {
        context->agent->serve_others();
        if (params == nullptr && request_p == nullptr) { // fast path
            engine::Request request;
            Status s = post(collectives::CallOptions{.request = &request, .blocking = true});
            return s == DTRAIN_OK ? blocking_result(request) : s;
        }
        Operation operation;
        if (Status s = Operation::read(context, params, request_p, allowed, operation);
            s != DTRAIN_OK)
            return s;
        collectives::Scaling factors;
        collectives::CallOptions options = {.timeout_ns = operation.params.timeout_ns,
                                            .blocking = operation.blocking,
                                            .awaited = awaited(operation.params),
                                            .priority = operation.params.priority,
                                            .scaling = read_scaling(operation.params, factors)};
        if (operation.blocking) {
            engine::Request request;
            options.request = &request;
            Holds holds(operation, request);
            Status s = post(options);
            if (s == DTRAIN_OK) return blocking_result(request);
            holds.undo();
            return s;
        }
        engine::Request *request = nullptr;
        if (Status s = make_request(context, operation, request_p != nullptr, request);
            s != DTRAIN_OK)
            return s;
        options.request = request;
        Holds holds(operation, *request);
        if (Status s = post(options); s != DTRAIN_OK) {
            holds.undo();
            drop_request(request);
            return s;
        }
        if (request_p != nullptr) *request_p = reinterpret_cast<dtrain_request_t *>(request);
        return DTRAIN_OK;
    });
}

} // namespace dtrain::api
