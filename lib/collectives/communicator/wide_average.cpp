// Computes averages as sums in another format, followed by a division.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/wide_average.h"

#include "collectives/call/layout.h"
#include "collectives/communicator/local_step.h"
#include "collectives/communicator/sequence.h"
#include "device/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace dtrain::collectives {
namespace {

struct Freed {
    bool is_huge = false;
    void operator()(uint8_t *memory) const {
        if (is_huge)
            std::free(memory);
        else
            delete[] memory;
    }
};
using Memory = std::unique_ptr<uint8_t[], Freed>;

// Allocates memory for one call. Huge pages, because the kernel clears them in a fraction of the
// time; clearing small pages takes half of the call's time.
Memory take_memory(uint64_t bytes) {
    constexpr uint64_t huge = 2 << 20;
    if (bytes < huge) return Memory(new (std::nothrow) uint8_t[bytes]);
    if (bytes > UINT64_MAX - huge) return nullptr;
    const uint64_t rounded = (bytes + huge - 1) / huge * huge;
    Memory out(static_cast<uint8_t *>(std::aligned_alloc(huge, rounded)), Freed{true});
    if (out != nullptr) madvise(out.get(), rounded, MADV_HUGEPAGE);
    return out;
}

// The sums of one call: its input converted to another format and added up in place, and where the
// result goes.
struct Sums {
    Memory memory;
    uint8_t *own = nullptr; // first sum that belongs to this rank's result
    const void *input = nullptr;
    void *result = nullptr;
    uint64_t inputs = 0, count = 0; // elements of the input and of the result
    uint32_t dtype = 0, size = 0;
    device::SumFormat format = {};

    uint64_t bytes(uint64_t elements) const {
        return elements * format.parts * device::dtype_size(format.dtype);
    }
    // Converts `elements` elements of the input from `first` on.
    void take(uint64_t first, uint64_t elements) const {
        device::to_sums(memory.get() + bytes(first),
                        static_cast<const uint8_t *>(input) + first * device::dtype_size(dtype),
                        elements, dtype, size);
    }
    // Computes `elements` elements of the result from `first` on.
    void divide(uint64_t first, uint64_t elements) const {
        device::from_sums(static_cast<uint8_t *>(result) + first * device::dtype_size(dtype),
                          own + bytes(first), elements, dtype, size);
    }
};

// Takes memory for the sums; the input may not be there yet.
Status prepare(const Prepared &average, Sums &out) {
    const CollectiveSpec &spec = average.spec;
    const Call &call = average.call;
    const uint64_t count = input_bytes(spec) / spec.element_bytes;
    const bool scatters = spec.kind == Kind::reduce_scatter;
    out.format = device::sum_format(call.dtype);
    out.dtype = call.dtype;
    out.size = uint32_t(spec.size);
    out.input = call.send;
    out.inputs = count;
    out.result = call.recv;
    out.count = average.result_bytes / spec.element_bytes;
    if (count > UINT64_MAX / out.bytes(1) ||
        (out.memory = take_memory(out.bytes(count))) == nullptr)
        return fail(DTRAIN_ERR_NO_MEMORY,
                    "%s: no memory for the sums of %llu elements of %s, %llu bytes each",
                    kind_name(call.kind), static_cast<unsigned long long>(count),
                    device::dtype_name(call.dtype), static_cast<unsigned long long>(out.bytes(1)));
    const uint64_t first = scatters ? Layout(spec).offset(spec.rank) / spec.element_bytes : 0;
    out.own = out.memory.get() + out.bytes(first);
    return DTRAIN_OK;
}

// `counts` must live until the call is posted.
Call sum_call(const Call &average, const Sums &sums, std::vector<uint64_t> &counts) {
    Call call = average;
    call.dtype = sums.format.dtype;
    call.op = DTRAIN_SUM;
    call.send = sums.memory.get();
    call.recv = sums.own;
    call.count *= sums.format.parts;
    if (!call.ragged) return call;
    counts.assign(call.counts, call.counts + sums.size);
    for (uint64_t &count : counts) count *= sums.format.parts;
    call.counts = counts.data();
    return call;
}

// Is the gate of its call for the sums, too: this begins when the input is converted.
class WideAverage final : public Sequence, public engine::Gate {
  public:
    // input: the gate of the input, or nullptr: it is there.
    WideAverage(Communicator &comm, Sums &&sums, uint64_t result_bytes, const CallOptions &options,
                engine::Gate *input)
        : Sequence(options.request, comm, options.timeout_ns), sums_(std::move(sums)),
          input_(input) {
        set_result_bytes(result_bytes);
    }
    Status post_sum(const Call &call, CallOptions options) {
        options.request = first_call();
        if (input_ == nullptr)
            sums_.take(0, sums_.inputs);
        else
            options.request->gate = this;
        return comm_.post(call, options);
    }

    Status look() override {
        if (taken_ == 0)
            if (const Status s = input_->look(); s != DTRAIN_OK) return s;
        const uint64_t count = std::min(elements_per_step, sums_.inputs - taken_);
        sums_.take(taken_, count);
        taken_ += count;
        return taken_ == sums_.inputs ? Status{DTRAIN_OK} : Status{DTRAIN_IN_PROGRESS};
    }
    Status wait(int64_t until_ns) override {
        const Status s = input_->wait(until_ns);
        if (s == DTRAIN_OK) sums_.take(0, sums_.inputs);
        return s;
    }

  private:
    Step step() override {
        const uint64_t count = std::min(elements_per_step, sums_.count - done_);
        sums_.divide(done_, count);
        done_ += count;
        return done_ == sums_.count ? Step::done : Step::again;
    }

    const Sums sums_;
    engine::Gate *const input_;
    uint64_t taken_ = 0, done_ = 0;
};

// The caller's request reports the bytes of the result, not those of the sums.
Status run_blocking(Communicator &comm, const Call &call, const Sums &sums, uint64_t result_bytes,
                    CallOptions options) {
    engine::Request &caller = *options.request, sum;
    options.request = &sum;
    if (Status s = comm.post(call, options); s != DTRAIN_OK) return s;
    engine::Outcome outcome = sum.outcome();
    if (outcome.status == DTRAIN_OK) {
        sums.divide(0, sums.count);
        outcome.bytes = result_bytes;
    } else {
        caller.set_error(sum.error());
    }
    caller.complete(outcome);
    return DTRAIN_OK;
}

} // namespace

bool needs_wide_sums(const CollectiveSpec &spec, uint32_t dtype) {
    const device::SumFormat format = device::sum_format(dtype);
    return spec.average && spec.size > 1 && (format.dtype != dtype || format.parts > 1);
}

Status post_wide_average(Communicator &comm, const Prepared &average, const CallOptions &options) {
    Sums sums;
    if (Status s = prepare(average, sums); s != DTRAIN_OK) return s;
    std::vector<uint64_t> counts;
    const Call call = sum_call(average.call, sums, counts);
    const uint64_t result_bytes = average.result_bytes;
    // The ranks compare the average's record; the sum's own record follows from it.
    const cluster::CallRecord record = average.record;
    if (options.blocking) {
        if (Status s = comm.note_call(record); s != DTRAIN_OK) return s;
        sums.take(0, sums.inputs);
        return run_blocking(comm, call, sums, result_bytes, options);
    }
    std::unique_ptr<WideAverage> sequence(
        new (*options.request) WideAverage(comm, std::move(sums), result_bytes, options,
                                           std::exchange(options.request->gate, nullptr)));
    if (Status s = comm.note_call(record); s != DTRAIN_OK) return s;
    if (Status s = sequence->post_sum(call, options); s != DTRAIN_OK) return s;
    comm.hand_over(sequence.release(), options);
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
