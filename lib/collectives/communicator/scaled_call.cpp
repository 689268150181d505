// Checks the factors of scaled reductions, and scales their input and result.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/scaled_call.h"

#include "collectives/communicator/local_step.h"
#include "collectives/communicator/sequence.h"
#include "device/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <new>

namespace dtrain::collectives {
namespace {

Status check(const Call &call, const Scaling &scaling, int32_t rank, int32_t size,
             CollectiveSpec &spec) {
    bool reduces = call.kind == Kind::allreduce || call.kind == Kind::reduce ||
                   call.kind == Kind::reduce_scatter;
    if (!reduces)
        return fail(DTRAIN_ERR_UNSUPPORTED, "%s: only reductions have a prescale or postscale",
                    kind_name(call.kind));
    if (!std::isfinite(scaling.before) || !std::isfinite(scaling.after))
        return fail(DTRAIN_ERR_INVALID,
                    "%s: prescale %g, postscale %g: both must be finite numbers",
                    kind_name(call.kind), scaling.before, scaling.after);
    if (Status s = check_call(call, rank, size, spec); s != DTRAIN_OK) return s;
    if (!device::is_floating(call.dtype))
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "%s: prescale and postscale are only for floating-point dtypes, not for %s",
                    kind_name(call.kind), device::dtype_name(call.dtype));
    return DTRAIN_OK;
}

// Waits for the unscaled call, then scales the result.
class ScaledCall final : public Sequence {
  public:
    ScaledCall(Communicator &comm, const Call &plain, uint64_t result_bytes, double factor,
               std::unique_ptr<uint8_t[]> input, const CallOptions &options)
        : Sequence(options.request, comm, options.timeout_ns), plain_(plain),
          count_(result_bytes / device::dtype_size(plain.dtype)), factor_(factor),
          input_(std::move(input)) {
        set_result_bytes(result_bytes);
    }
    Status post_call(CallOptions options) {
        options.request = first_call();
        return comm_.post(plain_, options);
    }

  private:
    Step step() override {
        if (factor_ == 1) return Step::done;
        uint64_t count = std::min(elements_per_step, count_ - done_);
        auto *at = static_cast<uint8_t *>(plain_.recv) + done_ * device::dtype_size(plain_.dtype);
        device::multiply(at, at, count, plain_.dtype, factor_);
        done_ += count;
        return done_ == count_ ? Step::done : Step::again;
    }

    const Call plain_;
    const uint64_t count_;
    const double factor_;
    const std::unique_ptr<uint8_t[]> input_; // the scaled copy that the call reads, or NULL
    uint64_t done_ = 0;
};

// Scales the input: into the receive buffer if it is large enough, in place if the input may be
// overwritten, else into newly allocated memory.
Status scale_input(const CollectiveSpec &spec, double factor, Call &call,
                   std::unique_ptr<uint8_t[]> &own) {
    const uint64_t bytes = input_bytes(spec);
    const void *from = call.send;
    if (spec.kind != Kind::reduce_scatter && output_bytes(spec) > 0) {
        call.send = call.recv;
    } else if (!spec.in_place && bytes > 0) {
        own.reset(new (std::nothrow) uint8_t[bytes]);
        if (own == nullptr)
            return fail(DTRAIN_ERR_NO_MEMORY, "%s: no memory for %llu bytes of scaled input",
                        kind_name(call.kind), static_cast<unsigned long long>(bytes));
        call.send = own.get();
    }
    device::multiply(const_cast<void *>(call.send), from, bytes / spec.element_bytes, call.dtype,
                     factor);
    return DTRAIN_OK;
}

} // namespace

Status check_scaling(const Communicator &comm, const Call &call, const Scaling &scaling) {
    CollectiveSpec ignored;
    return check(call, scaling, comm.rank(), comm.size(), ignored);
}

// Compares the factors, because ranks with different ones would continue with different results.
Status agree_on_scaling(Communicator &comm, const Call &call, const Scaling &scaling) {
    if (call.kind != Kind::allreduce || scaling.after == 1) return DTRAIN_OK;
    return comm.note_call(
        {.count = std::bit_cast<uint64_t>(scaling.after), .kind = cluster::CallKind::postscale});
}

Status post_scaled(Communicator &comm, const Call &call, const CallOptions &options) {
    const Scaling scaling = *options.scaling;
    CollectiveSpec spec;
    if (Status s = check(call, scaling, comm.rank(), comm.size(), spec); s != DTRAIN_OK) return s;
    Call plain = call;
    std::unique_ptr<uint8_t[]> own;
    if (scaling.before != 1)
        if (Status s = scale_input(spec, scaling.before, plain, own); s != DTRAIN_OK) return s;
    CallOptions plain_options = options;
    plain_options.scaling = nullptr;
    const uint64_t result = output_bytes(spec);
    const double after = result > 0 ? scaling.after : 1;
    std::unique_ptr<ScaledCall> sequence;
    if (!options.blocking && (after != 1 || own != nullptr))
        sequence.reset(new (*options.request)
                           ScaledCall(comm, plain, result, after, std::move(own), options));
    if (Status s = agree_on_scaling(comm, call, scaling); s != DTRAIN_OK) return s;
    if (sequence != nullptr) {
        if (Status s = sequence->post_call(plain_options); s != DTRAIN_OK) return s;
        comm.hand_over(sequence.release(), options);
        return DTRAIN_OK;
    }
    Status s = comm.post(plain, plain_options);
    // The call was blocking.
    if (s == DTRAIN_OK && after != 1 && options.request->outcome().status == DTRAIN_OK)
        device::multiply(plain.recv, plain.recv, result / spec.element_bytes, plain.dtype, after);
    return s;
}

} // namespace dtrain::collectives
