// Checks a call's arguments, and derives its spec and record.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/call.h"

#include "base/hash.h"

#include "device/kernels.h"

#include <cstdint>

namespace dtrain::collectives {
namespace {

bool has_op(Kind kind) {
    return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

bool has_root(Kind kind) {
    return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather ||
           kind == Kind::scatter;
}

Status check_numbers(const Call &call, int32_t size) {
    if (device::dtype_size(call.dtype) == 0)
        return fail(DTRAIN_ERR_INVALID,
                    "%s: unknown dtype %u; known are 1 (DTRAIN_F32) to 12 "
                    "(DTRAIN_U64)",
                    kind_name(call.kind), call.dtype);
    if (has_op(call.kind) && device::op_name(call.op) == nullptr)
        return fail(DTRAIN_ERR_INVALID,
                    "%s: unknown op %u; known are 1 (DTRAIN_SUM) to 9 "
                    "(DTRAIN_ADASUM)",
                    kind_name(call.kind), call.op);
    if (has_op(call.kind) && call.op == DTRAIN_ADASUM &&
        (call.kind != Kind::allreduce || !device::is_floating(call.dtype)))
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "%s of %s: adasum is only for allreduce of floating-point dtypes",
                    kind_name(call.kind), device::dtype_name(call.dtype));
    if (has_op(call.kind) && !device::op_valid(call.op, call.dtype))
        return fail(DTRAIN_ERR_INVALID, "%s: op %s is only for integers, not for %s",
                    kind_name(call.kind), device::op_name(call.op), device::dtype_name(call.dtype));
    if (has_root(call.kind) && (call.root < 0 || call.root >= size))
        return fail(DTRAIN_ERR_INVALID, "%s: root %d is not a rank of this communicator (0 to %d)",
                    kind_name(call.kind), call.root, size - 1);
    if (call.kind == Kind::neighbor_average && !device::is_floating(call.dtype))
        return fail(DTRAIN_ERR_INVALID,
                    "%s: weighted averages are for f32, f64, f16 and bf16, not for %s",
                    kind_name(call.kind), device::dtype_name(call.dtype));
    if (call.ragged && call.counts == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s: counts is NULL", kind_name(call.kind));
    if (call.ragged && call.kind == Kind::alltoall && call.recv_counts == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s: recv_counts is NULL", kind_name(call.kind));
    return DTRAIN_OK;
}

CollectiveSpec spec_of(const Call &call, int32_t rank, int32_t size) {
    CollectiveSpec spec;
    auto ranks = size_t(size);
    spec.kind = call.kind;
    spec.size = size;
    spec.rank = rank;
    if (has_root(call.kind) || over_graph(call.kind)) spec.root = call.root;
    spec.element_bytes = uint32_t(device::dtype_size(call.dtype));
    spec.count = call.count;
    if (call.counts != nullptr) spec.counts = {call.counts, ranks};
    if (call.displs != nullptr) spec.displs = {call.displs, ranks};
    if (call.recv_counts != nullptr) spec.recv_counts = {call.recv_counts, ranks};
    if (call.recv_displs != nullptr) spec.recv_displs = {call.recv_displs, ranks};
    spec.graph = call.graph;
    spec.average = has_op(call.kind) && call.op == DTRAIN_AVG;
    spec.adasum = call.kind == Kind::allreduce && call.op == DTRAIN_ADASUM;
    return spec;
}

// Checks that no needed buffer is NULL, and that send and receive buffer either do not overlap or
// are exactly in place.
Status check_buffers(const Call &call, CollectiveSpec &spec) {
    uint64_t in = input_bytes(spec), out = output_bytes(spec);
    const char *name = kind_name(call.kind);
    if (call.kind == Kind::broadcast) {
        if (out > 0 && call.recv == nullptr)
            return fail(DTRAIN_ERR_INVALID, "%s: the buffer is NULL", name);
        return DTRAIN_OK;
    }
    if (in > 0 && call.send == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s: the send buffer is NULL", name);
    if (out > 0 && call.recv == nullptr)
        return fail(DTRAIN_ERR_INVALID, "%s: the receive buffer is NULL", name);
    if (in == 0 || out == 0) return DTRAIN_OK;
    auto send = reinterpret_cast<uintptr_t>(call.send),
         recv = reinterpret_cast<uintptr_t>(call.recv);
    if (send >= recv + out || recv >= send + in) return DTRAIN_OK;
    spec.in_place = true;
    SharedBase base = in_place_base(spec);
    bool allowed = !(call.kind == Kind::alltoall && call.ragged);
    if (!allowed || send - base.input != recv - base.output)
        return fail(DTRAIN_ERR_INVALID,
                    "%s: send and receive buffer overlap, but not in the way of an "
                    "operation in place",
                    name);
    return DTRAIN_OK;
}

} // namespace

Status check_call(const Call &call, int32_t rank, int32_t size, CollectiveSpec &spec) {
    if (Status s = check_numbers(call, size); s != DTRAIN_OK) return s;
    spec = spec_of(call, rank, size);
    if (Status s = validate(spec); s != DTRAIN_OK) return s;
    return check_buffers(call, spec);
}

cluster::CallRecord record_of(const Call &call, int32_t size) {
    using cluster::CallKind;
    struct Names {
        CallKind plain, ragged;
    };
    static constexpr Names names[all_kinds] = {
        {CallKind::all_reduce, CallKind::all_reduce},
        {CallKind::reduce, CallKind::reduce},
        {CallKind::reduce_scatter, CallKind::reduce_scatterv},
        {CallKind::all_gather, CallKind::all_gatherv},
        {CallKind::broadcast, CallKind::broadcast},
        {CallKind::gather, CallKind::gatherv},
        {CallKind::scatter, CallKind::scatterv},
        {CallKind::all_to_all, CallKind::all_to_allv},
        {CallKind::barrier, CallKind::barrier},
        {CallKind::neighbor_average, CallKind::neighbor_average},
        {CallKind::neighbor_allgather, CallKind::neighbor_allgather},
        {CallKind::neighbor_alltoall, CallKind::neighbor_alltoall},
    };
    cluster::CallRecord record;
    const Names &name = names[size_t(call.kind)];
    record.kind = call.ragged ? name.ragged : name.plain;
    if (call.kind == Kind::barrier) return record;
    record.dtype = uint8_t(call.dtype);
    record.op = has_op(call.kind) ? uint8_t(call.op) : uint8_t(0);
    record.root = has_root(call.kind) || over_graph(call.kind) ? call.root : -1;
    record.count = call.count;
    // Counts and displacements of ragged calls must agree on all ranks, because schedules of
    // several messages cut the blocks where the buffer does. The exception is all_to_allv, where
    // each rank has its own.
    if (call.ragged && call.kind != Kind::alltoall) {
        record.count = call.displs != nullptr;
        for (int32_t r = 0; r < size; r++) {
            record.count = mix(record.count, call.counts[r]);
            if (call.displs != nullptr) record.count = mix(record.count, call.displs[r]);
        }
    } else if (call.ragged) {
        record.count = 0;
    }
    return record;
}

} // namespace dtrain::collectives
