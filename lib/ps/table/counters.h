// Counters for the requests of one worker for one table, kept by the worker and by the server.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dtrain::ps {

// Counts numbers in buckets 0, 1, 2..3, 4..7, ...; the last bucket has no upper bound.
struct Histogram {
    static constexpr size_t buckets = 40;
    std::array<uint64_t, buckets> count{};
    uint64_t sum = 0;

    void add(uint64_t number) {
        ++count[std::min<size_t>(size_t(std::bit_width(number)), buckets - 1)];
        sum += number;
    }
    // The largest number of a bucket. Not for the last bucket.
    static constexpr uint64_t bound(size_t bucket) { return (uint64_t{1} << bucket) - 1; }
    Histogram &operator+=(const Histogram &other) {
        for (size_t i = 0; i < buckets; ++i) count[i] += other.count[i];
        sum += other.sum;
        return *this;
    }
};

struct Counters {
    uint64_t requests = 0;   // without repeats
    uint64_t repeats = 0;    // repeated requests, sent or received
    uint64_t refused = 0;    // requests that ended in an error
    uint64_t dropped = 0;    // requests that came too early; the server asked for them again
    uint64_t elements = 0;   // elements or rows of the requests
    uint64_t sent = 0;       // bytes of payload that the worker sent
    uint64_t received = 0;   // bytes of payload that the worker received
    uint64_t stale = 0;      // requests dropped because their step had ended
    uint64_t not_finite = 0; // pushes dropped because of a NaN or an infinity
    Histogram staleness;     // pushes: updates applied since the worker's last pull there
    Histogram latency;       // of the worker only: ns from the first send to the answer

    Counters &operator+=(const Counters &o) {
        requests += o.requests;
        repeats += o.repeats;
        refused += o.refused;
        dropped += o.dropped;
        elements += o.elements;
        sent += o.sent;
        received += o.received;
        stale += o.stale;
        not_finite += o.not_finite;
        staleness += o.staleness;
        latency += o.latency;
        return *this;
    }
};

} // namespace dtrain::ps
