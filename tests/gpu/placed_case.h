// Collective cases whose buffers are placed on a GPU, and which way the ranks have taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/collective_case.h"
#include "contract/processes.h"
#include "gpu/shared_memory.h"
#include "gpu/stream.h"

#include <atomic>
#include <string>

namespace gpu {

using cases::Case;
using cases::Kind;
using cases::Part;

inline const ranks::Options with_gpus = {{"accelerators", "cuda"}};
inline constexpr uint64_t large = 70'001; // elements: more than what is exchanged in one piece

struct Shape {
    Kind kind;
    bool ragged;
};
inline constexpr Shape shapes[] = {
    {Kind::allreduce, false},     {Kind::reduce, false},    {Kind::reduce_scatter, false},
    {Kind::reduce_scatter, true}, {Kind::allgather, false}, {Kind::allgather, true},
    {Kind::broadcast, false},     {Kind::gather, false},    {Kind::gather, true},
    {Kind::scatter, false},       {Kind::scatter, true},    {Kind::alltoall, false},
    {Kind::alltoall, true}};
inline bool sums(Kind kind) {
    return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

struct Type {
    uint32_t dtype, op;
};

inline Case make_case(const Shape &shape, const Type &type, int size, bool in_place,
                      uint64_t count) {
    Case c;
    c.seed = uint64_t(shape.kind) * 31 + type.dtype;
    c.size = size;
    c.kind = shape.kind;
    c.ragged = shape.ragged;
    c.in_place = in_place && !(shape.kind == Kind::alltoall && shape.ragged);
    c.dtype = type.dtype;
    c.op = type.op;
    c.root = size > 2 ? 2 : 1;
    c.count = count;
    c.gap = 3;
    uint64_t next = 0;
    const bool has_gaps = shape.ragged && shape.kind != Kind::reduce_scatter;
    for (int r = 0; r < size; r++) {
        const uint64_t of_rank = count > 0 ? count + uint64_t(r) * 1001 : 0;
        c.counts.push_back(shape.ragged ? of_rank : count);
        c.displs.push_back(next);
        next += c.counts.back() + (has_gaps ? c.gap : 0);
        c.to.emplace_back(size_t(size), count);
    }
    return c;
}

// Puts a case's buffers on a GPU, each an element behind a boundary on odd ranks. On a stream they
// have the input only once the stream gets there, and are read in its order, too.
class Placed {
  public:
    Placed(dtrain_context_t *context, int rank, size_t element, Stream *stream, int device = 0)
        : context_(context),
          kind_(rank % 2 == 0 ? Shared::Kind::created : Shared::Kind::registered),
          shift_(rank % 2 == 0 ? 0 : element), stream_(stream), device_(device) {}
    uint8_t *place(uint8_t *data, size_t bytes) {
        all_.push_back(
            {data, bytes, std::make_unique<Shared>(context_, bytes + shift_, device_, kind_),
             copy_of(std::vector<uint8_t>(data, data + bytes), device_), Buffer(bytes, device_)});
        return all_.back().memory->address() + shift_;
    }
    void fill() { // with the input
        Stream own(device_);
        Stream &stream = stream_ != nullptr ? *stream_ : own;
        for (One &one : all_) {
            stream.fill(one.memory->address() + shift_, 0x3c, one.bytes);
            stream.copy(one.memory->address() + shift_, one.input.address(), one.bytes);
        }
        if (stream_ == nullptr) stream.synchronize();
    }
    void take_back() {
        Stream own(device_);
        Stream &stream = stream_ != nullptr ? *stream_ : own;
        for (One &one : all_) {
            stream.copy(one.output.address(), one.memory->address() + shift_, one.bytes);
            stream.fill(one.memory->address() + shift_, 0x99, one.bytes);
        }
        stream.synchronize();
        for (One &one : all_) one.output.read(one.data);
    }

  private:
    struct One {
        uint8_t *data;
        size_t bytes;
        std::unique_ptr<Shared> memory;
        Buffer input, output;
    };
    dtrain_context_t *const context_;
    const Shared::Kind kind_;
    const size_t shift_;
    Stream *const stream_;
    const int device_;
    std::vector<One> all_;
};

struct Counts {
    uint64_t copied, reduced, moved;
    static Counts of(dtrain_context_t *context) {
        return {counted(context, "to_host_bytes") + counted(context, "to_device_bytes"),
                counted(context, "reduced_bytes"), counted(context, "moved_bytes")};
    }
};

// Freeing memory waits for the streams of all ranks in the process, so no rank may have one that
// waits then: not of this case, nor of the next one.
class NobodyWaits {
  public:
    explicit NobodyWaits(dtrain_comm_t *comm) : comm_(comm) {}
    ~NobodyWaits() { OK(dtrain_barrier(comm_, nullptr, nullptr)); }
    NobodyWaits(const NobodyWaits &) = delete;

  private:
    dtrain_comm_t *const comm_;
};

enum class Way { direct, copies };

inline void check_once(const Case &c, dtrain_context_t *context, dtrain_comm_t *comm, Way way,
                       Stream *stream, bool repeats) {
    const int rank = dtrain_comm_rank(comm);
    Part part(c, rank);
    Placed placed(context, rank, dtrain_dtype_size(c.dtype), stream);
    const NobodyWaits done(comm);
    part.move([&](uint8_t *data, size_t bytes) { return placed.place(data, bytes); });
    if (repeats) {
        placed.fill();
        dtrain_request_t *first = nullptr;
        const dtrain_op_params_t on = stream != nullptr ? stream->params() : dtrain_op_params_t{};
        OK(part.post(comm, stream != nullptr ? &on : nullptr, &first));
        OK(dtrain_request_wait(first, -1));
        dtrain_request_free(first);
    }
    placed.fill();
    const Counts before = Counts::of(context);
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    if (stream != nullptr) params = stream->params();
    dtrain_request_t *request = nullptr;
    const bool has_request = stream != nullptr || rank % 2 == 0;
    OK(part.post(comm, &params, has_request ? &request : nullptr));
    // On a stream its order is enough.
    if (request != nullptr && stream == nullptr) OK(dtrain_request_wait(request, -1));
    placed.take_back();
    if (request != nullptr) OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    if (const int64_t at = part.first_difference(); at >= 0) {
        std::fprintf(stderr, "rank %d: %s: byte %lld is wrong\n", rank, c.describe().c_str(),
                     static_cast<long long>(at));
        REQUIRE(at < 0);
    }
    const Counts after = Counts::of(context);
    const bool leads = way == Way::direct && rank == 0;
    const bool good = (way == Way::copies || after.copied == before.copied) &&
                      (after.reduced > before.reduced) == (leads && sums(c.kind)) &&
                      (after.moved > before.moved) == (leads && !sums(c.kind));
    if (!good)
        std::fprintf(stderr, "rank %d: %s: copied %lld, reduced %lld, moved %lld bytes\n", rank,
                     c.describe().c_str(), static_cast<long long>(after.copied - before.copied),
                     static_cast<long long>(after.reduced - before.reduced),
                     static_cast<long long>(after.moved - before.moved));
    REQUIRE(good);
}

// repeats: the same memory is used once before, so that the leader's process may import it.
inline void check(const Case &c, dtrain_context_t *context, dtrain_comm_t *comm, Way way,
                  Stream *stream = nullptr, bool repeats = false) {
    const NobodyWaits after(comm);
    check_once(c, context, comm, way, stream, repeats);
}

// Kernels of most dtypes are loaded at their first use, but not while a stream waits: calls copy
// then.
inline void load_kernels(dtrain_context_t *context, dtrain_comm_t *comm, const Type &type) {
    check(make_case({Kind::reduce_scatter, false}, type, dtrain_comm_size(comm), false, large),
          context, comm, Way::direct);
}

// A rank that never makes a call is named by the errors of those that do, and no other is. On a
// busy machine a rank may come later than another one's call may take, and is then named, too: then
// with more time. call(context, comm, timeout_ns, text): its status and text.
template <class Call> void expect_late_rank(int late, Call &&call) {
    constexpr int64_t most_ns = 10'000'000'000;
    const std::string named = "it waits for rank " + std::to_string(late);
    for (int64_t timeout_ns = 100'000'000;; timeout_ns *= 4) {
        REQUIRE(timeout_ns < most_ns);
        std::atomic<bool> only = true;
        std::atomic<int> ended = 0;
        ranks::run_with_contexts(
            3, with_gpus, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                if (rank == late) {
                    while (ended < 2) processes::nap();
                    return;
                }
                std::string text;
                const dtrain_status_t status = call(context, comm, timeout_ns, text);
                const size_t at = text.find(named);
                if (status != DTRAIN_ERR_TIMEOUT || at == std::string::npos ||
                    text.find(',', at) != std::string::npos)
                    only = false;
                ended++;
            });
        if (only) return;
    }
}

// Each in a process of its own, in which the parent's driver has not been started.
inline void run_processes(int size, const ranks::Body &body) {
    processes::Job job;
    job.start(size, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(with_gpus);
        dtrain_comm_t *comm = processes::join(job, context, rank, size);
        body(rank, context, comm);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

} // namespace gpu
