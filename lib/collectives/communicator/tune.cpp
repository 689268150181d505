// Finds the best limits by trying some.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/tune.h"

#include "collectives/communicator/setup.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace dtrain::collectives {
namespace {

constexpr uint64_t exchange_sizes[] = {4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10};
constexpr uint64_t chunk_sizes[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr uint64_t chunked_bytes = 4 << 20;
constexpr uint64_t eager_sizes[] = {2 << 10,  4 << 10,  8 << 10,   16 << 10,
                                    32 << 10, 64 << 10, 128 << 10, 256 << 10};
constexpr uint64_t least_eager = 1 << 10;
constexpr double clearly = 0.95; // smaller differences are noise

} // namespace

uint64_t limit_eager(Communicator &comm, uint64_t bytes) {
    const auto other = uint32_t((comm.rank() + comm.size() / 2) % comm.size());
    engine::Agent &agent = comm.session().agent();
    const transport::Device &measured = *comm.session().mesh().device(comm.member(other));
    uint64_t before = 0;
    agent.locked([&] {
        before = measured.eager_limit();
        for (auto &device : agent.devices())
            if (device->name() == measured.name()) device->limit_eager(bytes);
    });
    return before;
}

// Finds the largest size at which reading everything from all ranks is not slower than the
// pipeline.
Status Tuner::find_exchange_limit(uint64_t &best) {
    const uint64_t chunk_bytes = comm_.limits().chunk_bytes;
    for (uint64_t bytes : exchange_sizes) {
        double exchange, pipeline;
        comm_.set_limits({bytes, chunk_bytes, false});
        if (Status s = measurement_.allreduce(bytes, exchange); s != DTRAIN_OK) return s;
        comm_.set_limits({0, chunk_bytes, false});
        if (Status s = measurement_.allreduce(bytes, pipeline); s != DTRAIN_OK) return s;
        if (pipeline < exchange * clearly) break;
        best = bytes;
    }
    return DTRAIN_OK;
}

// Finds the largest size at which an eager message is as fast as one that waits for its receiver.
// Compares the least of several medians, taken in turn, because a single one is easily disturbed.
Status Tuner::find_eager_limit(uint64_t &best) {
    for (uint64_t bytes : eager_sizes) {
        double least[2] = {HUGE_VAL, HUGE_VAL}; // rendezvous, eager
        for (int turn = 0; turn < 6; turn++) {
            double ns;
            limit_eager(comm_, turn % 2 ? UINT64_MAX : least_eager);
            if (Status s = measurement_.messages(bytes, ns); s != DTRAIN_OK) return s;
            least[turn % 2] = std::min(least[turn % 2], ns);
        }
        if (least[0] < least[1] * clearly) break;
        best = bytes;
    }
    return DTRAIN_OK;
}

Status Tuner::find_chunk(uint64_t &best) {
    const uint64_t exchange_bytes = comm_.limits().exchange_bytes;
    double least = 0;
    for (uint64_t bytes : chunk_sizes) {
        double ns;
        comm_.set_limits({exchange_bytes, bytes, true});
        if (Status s = measurement_.allreduce(chunked_bytes, ns); s != DTRAIN_OK) return s;
        if (least > 0 && ns > least * clearly) continue;
        least = ns;
        best = bytes;
    }
    return DTRAIN_OK;
}

Status Tuner::measure(Tuning &out) {
    const Limits own = comm_.limits();
    out.machine = machine_of(comm_.session(), comm_.ranks());
    out.exchange_bytes = own.exchange_bytes;
    out.chunk_bytes = own.chunk_bytes;
    out.eager_bytes = least_eager;
    Status s = measurement_.network(out.model);
    // Chunks are measured with the algorithms that the new model leads to.
    if (s == DTRAIN_OK) comm_.set_choice(out.model, std::nullopt);
    if (s == DTRAIN_OK && comm_.has_window()) s = find_exchange_limit(out.exchange_bytes);
    const uint64_t eager_bytes = limit_eager(comm_, UINT64_MAX);
    if (s == DTRAIN_OK) s = find_eager_limit(out.eager_bytes);
    limit_eager(comm_, out.eager_bytes); // chunk sizes depend on it
    if (s == DTRAIN_OK) s = find_chunk(out.chunk_bytes);
    limit_eager(comm_, eager_bytes);
    comm_.set_limits(own);
    return s;
}

Status Communicator::tune(const char *path) {
    if (size() == 1) return fail(DTRAIN_ERR_INVALID, "tune: tuning needs at least two ranks");
    Tuning tuning;
    if (Status s = Tuner(*this).measure(tuning); s != DTRAIN_OK) return fail_within(s, "tuning");
    int32_t written = DTRAIN_OK;
    if (rank() == 0) written = write_tuning(path, tuning);
    const int32_t mine = written;
    Call call;
    call.kind = Kind::broadcast;
    call.recv = &written;
    call.count = sizeof written;
    call.root = 0;
    std::string text = error_text();
    if (Status s = run(call); s != DTRAIN_OK) return s;
    if (mine != DTRAIN_OK) return fail(mine, "%s", text.c_str());
    return written == DTRAIN_OK ? written : fail(written, "tune: rank 0 could not write %s", path);
}

} // namespace dtrain::collectives
