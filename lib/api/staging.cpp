// Classifies buffers, and stages those of collectives.
// SPDX-License-Identifier: Apache-2.0
#include "api/staging.h"

#include "accel/device_memory.h"
#include "collectives/call/extents.h"
#include "collectives/window/window_device.h"

#include <cstddef>

namespace dtrain::api {

using accel::Extent;
using accel::Where;

Stream stream_of(const dtrain_op_params_t *params) {
    constexpr size_t least = offsetof(dtrain_op_params_t, stream_type) + sizeof params->stream_type;
    if (params == nullptr || params->struct_size < least) return {};
    return {.given = params->stream_type != DTRAIN_STREAM_NONE, .handle = params->stream};
}

int64_t time_limit_of(const dtrain_context &context, int64_t timeout_ns) {
    if (timeout_ns == 0) return context.options.number("op.timeout");
    return std::max<int64_t>(timeout_ns, -1);
}

int64_t deadline_of(const dtrain_context &context, int64_t timeout_ns) {
    const int64_t limit_ns = time_limit_of(context, timeout_ns);
    const int64_t now_ns = context.agent->clock().now_ns();
    int64_t deadline_ns = INT64_MAX;
    const bool bounded = limit_ns >= 0 && !__builtin_add_overflow(now_ns, limit_ns, &deadline_ns);
    return bounded ? deadline_ns : INT64_MAX;
}

Status Staging::add(const Where &where, uint64_t bytes, std::vector<Extent> inputs,
                    std::vector<Extent> outputs, uint8_t *&host) {
    if (staged_ == nullptr) staged_ = std::make_shared<accel::StagedBuffers>(context_->domains);
    return staged_->add(where, bytes, std::move(inputs), std::move(outputs), host);
}

Status Staging::stage(const void *&address, uint64_t bytes, bool reads, bool writes) {
    Where where;
    if (Status s = context_->domains.find(address, bytes, where); s != DTRAIN_OK) return s;
    if (where.domain == nullptr) return DTRAIN_OK;
    std::vector<Extent> all = {{0, bytes}}, none;
    uint8_t *host = nullptr;
    if (Status s = add(where, bytes, reads ? all : none, writes ? all : none, host); s != DTRAIN_OK)
        return s;
    address = host;
    return DTRAIN_OK;
}

Status Staging::stage_result(void *&address, uint64_t bytes, bool reads) {
    const void *at = address;
    const Status s = stage(at, bytes, reads, true);
    address = const_cast<void *>(at);
    return s;
}

Status Staging::both(const void *&send, void *&recv, uint64_t bytes) {
    if (!may_stage()) return DTRAIN_OK;
    if (send != recv) {
        const Status s = stage(send, bytes, true, false);
        return s == DTRAIN_OK ? stage_result(recv, bytes, false) : s;
    }
    const Status s = stage(send, bytes, true, true);
    recv = const_cast<void *>(send);
    return s;
}

// In place: send and receive buffer are parts of one memory, and stay so.
Status Staging::one_memory(const collectives::CollectiveSpec &spec, const Where &send,
                           const Where &recv, collectives::Call &call) {
    const collectives::SharedBase base = in_place_base(spec);
    const auto shifted = [](std::vector<Extent> extents, uint64_t by) {
        for (Extent &extent : extents) extent.offset += by;
        return extents;
    };
    const Where all = {.domain = send.domain,
                       .address = static_cast<uint8_t *>(send.address) - base.input,
                       .memory = send.memory != nullptr ? send.memory : recv.memory};
    if (all.address != static_cast<uint8_t *>(recv.address) - base.output)
        return fail(DTRAIN_ERR_INVALID,
                    "%s in place: the accelerator says that the buffers are not one memory",
                    kind_name(spec.kind));
    uint8_t *host = nullptr;
    if (Status s =
            add(all, std::max(base.input + input_bytes(spec), base.output + output_bytes(spec)),
                shifted(read_extents(spec), base.input),
                shifted(written_extents(spec), base.output), host);
        s != DTRAIN_OK)
        return s;
    call.send = host + base.input;
    call.recv = host + base.output;
    return DTRAIN_OK;
}

// Whether the buffer, or a missing one, is in shared memory of the domain; then also where.
static bool describe_direct(const Where &where, uint64_t bytes, uint32_t alignment,
                            const accel::Domain *domain, accel::DirectBuffer &out) {
    if (bytes == 0) return true;
    if (where.memory == nullptr || where.domain != domain) return false;
    const accel::SharedAllocation *const shared = where.memory->shared();
    if (shared == nullptr || reinterpret_cast<uintptr_t>(where.address) % alignment != 0)
        return false;
    out.allocation = *shared;
    out.allocation.offset += uint64_t(static_cast<uint8_t *>(where.address) -
                                      static_cast<uint8_t *>(where.memory->device()));
    out.address = where.address;
    return true;
}

void Staging::find_direct(const collectives::Communicator &comm,
                          const collectives::CollectiveSpec &spec, const collectives::Call &call,
                          const Where &send, const Where &recv) {
    using collectives::WindowDevice;
    if (!WindowDevice::serves(spec)) return;
    accel::Domain *const domain = send.domain != nullptr ? send.domain : recv.domain;
    accel::DirectBuffers found{.domain = domain, .send = {}, .recv = {}};
    if (domain == nullptr ||
        !describe_direct(send, input_bytes(spec), spec.element_bytes, domain, found.send) ||
        !describe_direct(recv, output_bytes(spec), spec.element_bytes, domain, found.recv))
        return;
    // The first call loads kernels, on the rank that runs them.
    if (comm.rank() == int32_t(WindowDevice::leader) &&
        !domain->prepare(WindowDevice::kernels_for(spec, call.dtype)))
        return;
    direct_ = found;
}

Status Staging::call(const collectives::Communicator &comm, collectives::Call &call) {
    if (!may_stage()) return DTRAIN_OK;
    using collectives::Kind;
    collectives::CollectiveSpec spec;
    if (Status s = check_call(call, comm.rank(), comm.size(), spec); s != DTRAIN_OK) return s;
    const uint64_t in = input_bytes(spec), out = output_bytes(spec);
    Where send, recv;
    if (Status s = context_->domains.find(call.send, in, send); s != DTRAIN_OK)
        return fail_within(s, "%s: the send buffer", kind_name(call.kind));
    if (Status s = context_->domains.find(call.recv, out, recv); s != DTRAIN_OK)
        return fail_within(s, "%s: the receive buffer", kind_name(call.kind));
    find_direct(comm, spec, call, send, recv);
    all_staged_ = call.kind != Kind::barrier && (in == 0 || send.domain != nullptr) &&
                  (out == 0 || recv.domain != nullptr);
    reads_host_ = in > 0 && send.domain == nullptr;
    if (recv.domain == nullptr) host_result_ = {static_cast<uint8_t *>(call.recv), out};
    if (spec.in_place && send.domain != nullptr) return one_memory(spec, send, recv, call);
    uint8_t *host = nullptr;
    if (send.domain != nullptr) {
        if (Status s = add(send, in, read_extents(spec), {}, host); s != DTRAIN_OK) return s;
        call.send = host;
    }
    if (recv.domain != nullptr) {
        const bool only = call.kind == Kind::broadcast;
        if (Status s = add(recv, out, only ? read_extents(spec) : std::vector<Extent>{},
                           written_extents(spec), host);
            s != DTRAIN_OK)
            return s;
        call.recv = host;
    }
    return DTRAIN_OK;
}

void end_blocking(accel::StagedBuffers &staged, engine::Landing::Results results,
                  const engine::Request &inner, engine::Request &outer, int64_t deadline_ns) {
    engine::Outcome outcome = inner.outcome();
    if (outcome.status != DTRAIN_OK) {
        outer.set_error(inner.error());
    } else {
        const bool all = results == engine::Landing::Results::all;
        outcome.status = staged.begin_store(all ? UINT64_MAX : outcome.bytes);
        if (outcome.status == DTRAIN_OK) outcome.status = staged.await_stored(deadline_ns);
        if (outcome.status != DTRAIN_OK) outer.set_error(error_text());
    }
    outer.complete(outcome);
}

} // namespace dtrain::api
