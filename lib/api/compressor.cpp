// Implements dtrain_compressor_*.
// SPDX-License-Identifier: Apache-2.0
#include "compression/compressor.h"
#include "api/operation.h"
#include "api/staging.h"
#include "collectives/communicator/agreement.h"

using dtrain::fail;
using dtrain::fail_within;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::cluster::CallKind;
using dtrain::collectives::CallOptions;
using dtrain::compression::Compressor;

struct dtrain_compressor : dtrain::api::Child {
    using Child::Child;
    std::unique_ptr<Compressor> compressor;
};

dtrain_status_t dtrain_compressor_create(dtrain_comm_t *comm,
                                         const dtrain_compressor_params_t *params,
                                         dtrain_compressor_t **compressor_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return guard_new([&]() -> Status {
        dtrain_compressor_params_t given;
        const Status taken = params == nullptr || compressor_p == nullptr
                                 ? fail(DTRAIN_ERR_INVALID, "%s is NULL",
                                        params == nullptr ? "params" : "compressor_p")
                                 : dtrain::api::take(given, params);
        if (taken != DTRAIN_OK)
            return refuse(*comm->communicator, CallKind::compressor_create, taken);
        auto fresh = std::make_unique<dtrain_compressor>(comm->context);
        if (Status s = Compressor::create(*comm->communicator, given, fresh->compressor);
            s != DTRAIN_OK)
            return s;
        *compressor_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_compressor_destroy(dtrain_compressor_t *compressor) {
    if (compressor == nullptr || !compressor->birth.here()) return DTRAIN_OK;
    return guard([&] {
        delete compressor;
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_compressor_allreduce(dtrain_compressor_t *compressor, const float *send,
                                            float *recv, uint32_t op,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p) {
    if (Status s = check_handle(compressor, "compressor"); s != DTRAIN_OK) return s;
    const void *input = send;
    void *result = recv;
    dtrain::api::Staging staging(compressor->context);
    if (Status s = staging.both(input, result, compressor->compressor->count() * sizeof *recv);
        s != DTRAIN_OK)
        return fail_within(s, "compressed allreduce");
    const auto go = [&](const CallOptions &options) {
        if (options.scaling != nullptr) return dtrain::api::refuse_scaling("compressed allreduce");
        return compressor->compressor->post(static_cast<const float *>(input),
                                            static_cast<float *>(result), op, options);
    };
    return dtrain::api::run_operation(
        compressor->context, params, request_p, [&](const CallOptions &options) {
            return dtrain::api::post_staged(compressor->context, staging.staged(), options, {}, go);
        });
}

dtrain_status_t dtrain_compressor_reset(dtrain_compressor_t *compressor) {
    if (Status s = check_handle(compressor, "compressor"); s != DTRAIN_OK) return s;
    return guard([&] { return compressor->compressor->reset(); });
}

dtrain_status_t dtrain_compressor_stats(dtrain_compressor_t *compressor,
                                        dtrain_compression_stats_t *stats_p) {
    if (Status s = check_handle(compressor, "compressor"); s != DTRAIN_OK) return s;
    if (stats_p == nullptr) return fail(DTRAIN_ERR_INVALID, "stats_p is NULL");
    return guard([&] { return compressor->compressor->stats(*stats_p); });
}
