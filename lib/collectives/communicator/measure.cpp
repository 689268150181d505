// Measures messages, sums and copies for the cost model.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/measure.h"

#include "device/kernels.h"

#include <algorithm>
#include <vector>

namespace dtrain::collectives {
namespace {

constexpr uint64_t small = 8, medium = 64 << 10, large = 1 << 20; // bytes
constexpr int streamed = 64;                                      // messages
constexpr uint32_t tag = 0x7475;                                  // of the messages

} // namespace

// The matching rank in the other half of the ranks: with several hosts it is most likely on another
// host.
int32_t Measurement::partner() const {
    int32_t half = comm_.size() / 2, rank = comm_.rank();
    return rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
}

Status Measurement::send(void *buffer, uint64_t bytes) {
    engine::Request request;
    Status s =
        comm_.post_send(buffer, bytes, partner(), tag, {.request = &request, .blocking = true});
    return s == DTRAIN_OK ? request.outcome().status : s;
}

Status Measurement::receive(void *buffer, uint64_t bytes) {
    engine::Request request;
    Status s =
        comm_.post_recv(buffer, bytes, partner(), tag, {.request = &request, .blocking = true});
    return s == DTRAIN_OK ? request.outcome().status : s;
}

Status Measurement::exchange(void *buffer, uint64_t bytes) {
    if (partner() < 0) return DTRAIN_OK;
    bool first = comm_.rank() < partner();
    Status s = first ? send(buffer, bytes) : receive(buffer, bytes);
    if (s != DTRAIN_OK) return s;
    return first ? receive(buffer, bytes) : send(buffer, bytes);
}

Status Measurement::stream(void *buffer, int messages) {
    if (partner() < 0) return DTRAIN_OK;
    bool first = comm_.rank() < partner();
    Status s = DTRAIN_OK;
    for (int i = 0; i < messages && s == DTRAIN_OK; i++)
        s = first ? send(buffer, small) : receive(buffer, small);
    if (s != DTRAIN_OK) return s;
    return first ? receive(buffer, small) : send(buffer, small);
}

Status Measurement::median(int samples, const Work &work, double &ns) {
    std::vector<double> times;
    for (int i = -samples / 8 - 1; i < samples; i++) {
        Call barrier;
        if (Status s = comm_.run(barrier); s != DTRAIN_OK) return s;
        int64_t start = comm_.session().agent().clock().now_ns();
        if (Status s = work(); s != DTRAIN_OK) return s;
        if (i >= 0) times.push_back(double(comm_.session().agent().clock().now_ns() - start));
    }
    std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
    double mine = times[size_t(samples / 2)];
    Call slowest;
    slowest.kind = Kind::allreduce;
    slowest.send = &mine;
    slowest.recv = &ns;
    slowest.count = 1;
    slowest.dtype = DTRAIN_F64;
    slowest.op = DTRAIN_MAX;
    return comm_.run(slowest);
}

Status Measurement::network(NetworkModel &out) {
    std::vector<uint8_t> a(large), b(large);
    double there_and_back, in_stream, medium_ns, large_ns, reduce_ns, copy_ns;
    auto messages = [&](uint64_t bytes) {
        return [&, bytes] { return exchange(a.data(), bytes); };
    };
    if (Status s = median(200, messages(small), there_and_back); s != DTRAIN_OK) return s;
    if (Status s = median(
            50, [&] { return stream(a.data(), streamed); }, in_stream);
        s != DTRAIN_OK)
        return s;
    if (Status s = median(50, messages(medium), medium_ns); s != DTRAIN_OK) return s;
    if (Status s = median(30, messages(large), large_ns); s != DTRAIN_OK) return s;
    auto reduce = [&] {
        device::reduce(a.data(), b.data(), large / 4, DTRAIN_F32, DTRAIN_SUM);
        return DTRAIN_OK;
    };
    auto copy = [&] {
        device::copy(a.data(), b.data(), large);
        return DTRAIN_OK;
    };
    if (Status s = median(30, reduce, reduce_ns); s != DTRAIN_OK) return s;
    if (Status s = median(30, copy, copy_ns); s != DTRAIN_OK) return s;
    // A message takes 2 overheads and a latency; in a stream each message occupies a processor for
    // one overhead.
    double one_way = there_and_back / 2;
    double each = std::max(0.0, in_stream - there_and_back) / (streamed - 1);
    out.overhead_ns = std::min(each, one_way / 2);
    out.latency_ns = one_way - 2 * out.overhead_ns;
    out.ns_per_byte = std::max(0.0, large_ns - medium_ns) / 2 / double(large - medium);
    out.reduce_ns_per_byte = reduce_ns / double(large);
    out.copy_ns_per_byte = copy_ns / double(large);
    return DTRAIN_OK;
}

Status Measurement::messages(uint64_t bytes, double &ns) {
    std::vector<uint8_t> buffer(bytes);
    return median(
        50, [&] { return exchange(buffer.data(), bytes); }, ns);
}

Status Measurement::allreduce(uint64_t bytes, double &ns) {
    std::vector<float> buffer(bytes / 4);
    Call call;
    call.kind = Kind::allreduce;
    call.send = call.recv = buffer.data();
    call.count = buffer.size();
    call.dtype = DTRAIN_F32;
    call.op = DTRAIN_MAX;
    return median(
        bytes < large ? 100 : 12, [&] { return comm_.run(call); }, ns);
}

} // namespace dtrain::collectives
