// A collective call chosen by a seed, with its buffers and a naive reference for its result.
// SPDX-License-Identifier: Apache-2.0
//
// Values are small integers for which every dtype is exact, so the order of additions does not
// matter; what was not to be written must keep its filling.
#pragma once
#include "dtrain.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace cases {

enum class Kind {
    allreduce,
    reduce,
    reduce_scatter,
    allgather,
    broadcast,
    gather,
    scatter,
    alltoall,
    barrier
};
inline constexpr const char *kind_names[] = {"allreduce", "reduce",    "reduce_scatter",
                                             "allgather", "broadcast", "gather",
                                             "scatter",   "alltoall",  "barrier"};
inline constexpr uint8_t filling = 0xa5;

inline bool is_float(uint32_t dtype) { return dtype <= DTRAIN_BF16; }
inline bool is_unsigned(uint32_t dtype) {
    return dtype == DTRAIN_U8 || dtype == DTRAIN_U16 || dtype == DTRAIN_U32 || dtype == DTRAIN_U64;
}

// Small integers only.
inline uint16_t to_f16(int64_t v) {
    if (v == 0) return 0;
    auto magnitude = uint64_t(v < 0 ? -v : v);
    int exponent = 63 - __builtin_clzll(magnitude);
    auto fraction = uint16_t((magnitude << 10 >> exponent) & 0x3ff);
    return uint16_t((v < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | fraction);
}

inline void write(uint8_t *buffer, uint64_t index, uint32_t dtype, int64_t v) {
    size_t size = dtrain_dtype_size(dtype);
    uint8_t *at = buffer + index * size;
    auto f = float(v);
    auto d = double(v);
    uint16_t half = to_f16(v);
    switch (dtype) {
    case DTRAIN_F32: std::memcpy(at, &f, size); break;
    case DTRAIN_F64: std::memcpy(at, &d, size); break;
    case DTRAIN_F16: std::memcpy(at, &half, size); break;
    case DTRAIN_BF16: std::memcpy(at, reinterpret_cast<char *>(&f) + 2, size); break;
    default: std::memcpy(at, &v, size); break; // little endian
    }
}

inline uint64_t hash(uint64_t x) {
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

struct Case {
    uint64_t seed = 0;
    int size = 1;
    Kind kind = Kind::barrier;
    bool ragged = false, in_place = false;
    uint32_t dtype = DTRAIN_F32, op = DTRAIN_SUM;
    int root = 0;
    uint64_t count = 0;                    // allreduce, reduce, broadcast; else per block
    std::vector<uint64_t> counts, displs;  // by rank; always filled
    std::vector<std::vector<uint64_t>> to; // alltoallv: elements from i to j
    uint64_t gap = 0;                      // between alltoallv's blocks

    std::string describe() const {
        return std::string(kind_names[int(kind)]) + (ragged ? "v" : "") + " of " +
               std::to_string(count) + " dtype " + std::to_string(dtype) + " op " +
               std::to_string(op) + " root " + std::to_string(root) +
               (in_place ? " in place" : "") + ", " + std::to_string(size) + " ranks, case " +
               std::to_string(seed);
    }

    // Values repeat after so many elements: a prime, so that no block of a size that code would use
    // looks like another one. To fold all of a large case would take most of the test.
    static constexpr uint64_t period = 65521;

    int64_t value(int rank, uint64_t i) const {
        uint64_t h = hash(seed ^ hash(uint64_t(rank + 1) << 40 ^ i % period)) >> 7;
        if (op == DTRAIN_PROD) return (h & 1 ? 1 : 2) * (h & 2 ? 1 : -1);
        if (op >= DTRAIN_BAND) return int64_t(h);
        if (size > 11 && dtrain_dtype_size(dtype) == 1) // sums below 128, for AVG
            return rank < 7 ? size * int64_t(h % 2) : 0;
        return size * (int64_t(h % 3) - (is_unsigned(dtype) ? 0 : 1));
    }

    int64_t folded(uint64_t i) const {
        int64_t sum = value(0, i);
        for (int r = 1; r < size; r++) {
            int64_t x = value(r, i);
            switch (op) {
            case DTRAIN_PROD: sum *= x; break;
            case DTRAIN_MIN: sum = std::min(sum, x); break;
            case DTRAIN_MAX: sum = std::max(sum, x); break;
            case DTRAIN_BAND: sum &= x; break;
            case DTRAIN_BOR: sum |= x; break;
            case DTRAIN_BXOR: sum ^= x; break;
            default: sum += x; break;
            }
        }
        return op == DTRAIN_AVG ? sum / size : sum;
    }

    uint64_t start(int rank) const { // packed
        uint64_t sum = 0;
        for (int r = 0; r < rank; r++) sum += counts[size_t(r)];
        return sum;
    }
    uint64_t extent() const { // of all blocks where they are displaced
        uint64_t end = 0;
        for (size_t r = 0; r < counts.size(); r++) end = std::max(end, displs[r] + counts[r]);
        return end;
    }
    uint64_t send_displ(int from, int to_rank) const {
        uint64_t sum = 0;
        for (int j = 0; j < to_rank; j++) sum += to[size_t(from)][size_t(j)] + gap;
        return sum;
    }
    uint64_t recv_displ(int at, int from) const {
        uint64_t sum = 0;
        for (int j = 0; j < from; j++) sum += to[size_t(j)][size_t(at)] + gap;
        return sum;
    }
};

inline uint64_t choose_bytes(std::mt19937_64 &random, int size) {
    switch (random() % 16) {
    case 0: return 0;
    case 1:
    case 2:
    case 3: return 40 + random() % 17; // around one cache line's 48
    case 4:
    case 5: return 65536 / (random() % 2 ? 1 : uint64_t(size)) - 16 + random() % 33;
    case 6: return 300 * 1024 + random() % 1000;
    case 7: return random() % 4 ? 5000 : (1 << 20) + random() % (1 << 20);
    case 8: return (65536 + random() % (128 << 10)) * uint64_t(size);
    default: return random() % (random() % 2 ? 64 : 20000);
    }
}

// The same on all ranks.
inline Case generate(uint64_t seed, int size) {
    std::mt19937_64 random(seed);
    Case c;
    c.seed = seed;
    c.size = size;
    c.kind = random() % 3 == 0 ? Kind::allreduce : Kind(random() % 9);
    c.dtype = uint32_t(1 + random() % 12);
    c.op = uint32_t(1 + random() % (is_float(c.dtype) ? 5 : 8));
    c.root = int(random() % uint64_t(size));
    c.in_place = random() % 2;
    bool blocks = c.kind != Kind::allreduce && c.kind != Kind::reduce && c.kind != Kind::broadcast;
    c.ragged = blocks && c.kind != Kind::barrier && random() % 2;
    uint64_t bytes = choose_bytes(random, size);
    if (blocks) bytes /= uint64_t(size);
    c.count = bytes / dtrain_dtype_size(c.dtype);
    c.gap = random() % 3;
    uint64_t next = 0;
    for (int r = 0; r < size; r++) {
        uint64_t count = c.ragged ? (random() % 4 ? random() % (2 * c.count + 1) : 0) : c.count;
        c.counts.push_back(count);
        c.displs.push_back(next);
        next += count + (c.ragged && c.kind != Kind::reduce_scatter ? c.gap : 0);
    }
    for (int i = 0; i < size && c.ragged && c.kind == Kind::alltoall; i++) {
        c.to.emplace_back();
        for (int j = 0; j < size; j++) c.to.back().push_back(random() % (2 * c.count + 1));
    }
    if (c.ragged && c.kind == Kind::alltoall) c.in_place = false;
    return c;
}

// Memory that the host's ranks share, or with no context the heap's.
template <class T> struct Memory {
    using value_type = T;
    dtrain_context_t *context = nullptr;
    std::vector<dtrain_mem_t *> *held = nullptr;

    T *allocate(size_t n) {
        dtrain_mem_t *mem = nullptr;
        if (context == nullptr) return static_cast<T *>(std::malloc(n * sizeof(T)));
        if (dtrain_mem_alloc(context, n * sizeof(T), &mem) != DTRAIN_OK) std::abort();
        held->push_back(mem);
        return static_cast<T *>(dtrain_mem_address(mem));
    }
    void deallocate(T *at, size_t) {
        if (context == nullptr) return std::free(at);
        for (dtrain_mem_t *&mem : *held)
            if (dtrain_mem_address(mem) == at) {
                if (dtrain_mem_deregister(mem) != DTRAIN_OK) std::abort();
                mem = nullptr;
            }
    }
    bool operator==(const Memory &) const = default;
};

// One rank's part: fills the buffers, posts, and compares in the end. With a context, send and
// receive buffer (1, 2 or both: `shared`) are memory that the ranks share.
class Part {
  public:
    Part(const Case &the_case, int rank, dtrain_context_t *context = nullptr, int shared = 0)
        : c_(the_case), rank_(rank), send_(Memory<uint8_t>{shared & 1 ? context : nullptr, &held_}),
          recv_(Memory<uint8_t>{shared & 2 ? context : nullptr, &held_}) {
        fill_send();
        fill_expected();
    }

    dtrain_status_t post(dtrain_comm_t *comm, const dtrain_op_params_t *params,
                         dtrain_request_t **request_p) {
        // They are the library's to read during the call only.
        std::vector<uint64_t> counts = c_.counts, displs = c_.displs;
        dtrain_status_t s =
            post(comm, counts.data(), c_.gap > 0 ? displs.data() : nullptr, params, request_p);
        std::fill(counts.begin(), counts.end(), UINT64_MAX);
        std::fill(displs.begin(), displs.end(), UINT64_MAX);
        return s;
    }

    // Puts other memory in the buffers' place: place(data, bytes) returns its address, or data.
    template <class F> void move(F &&place) {
        const auto elsewhere = [&](Buffer &buffer, uint8_t *&at, uint8_t *moved) {
            if (at != nullptr) at = moved + (at - buffer.data());
        };
        if (!send_.empty()) {
            uint8_t *moved = place(send_.data(), send_.size());
            if (in_place_) elsewhere(send_, recv_at_, moved);
            elsewhere(send_, send_at_, moved);
        }
        if (!in_place_ && !recv_.empty())
            elsewhere(recv_, recv_at_, place(recv_.data(), recv_.size()));
    }

    // The first wrong byte, or -1.
    int64_t first_difference() const {
        const Buffer &got = in_place_ ? send_ : recv_;
        if (compare_to_ == compare_from_ ||
            !memcmp(got.data() + compare_from_, expected_.data() + compare_from_,
                    compare_to_ - compare_from_))
            return -1;
        for (size_t i = compare_from_; i < compare_to_; i++)
            if (got[i] != expected_[i]) return int64_t(i);
        return -1;
    }
    const Case &the_case() const { return c_; }

  private:
    using Buffer = std::vector<uint8_t, Memory<uint8_t>>;
    bool is_root() const { return rank_ == c_.root; }
    uint64_t element() const { return dtrain_dtype_size(c_.dtype); }

    dtrain_status_t post(dtrain_comm_t *comm, const uint64_t *counts, const uint64_t *displs,
                         const dtrain_op_params_t *params, dtrain_request_t **request_p) {
        const void *send = send_at_;
        void *recv = recv_at_;
        uint64_t n = c_.count;
        uint32_t type = c_.dtype;
        switch (c_.kind) {
        case Kind::allreduce:
            return dtrain_allreduce(comm, send, recv, n, type, c_.op, params, request_p);
        case Kind::reduce:
            return dtrain_reduce(comm, send, recv, n, type, c_.op, c_.root, params, request_p);
        case Kind::reduce_scatter:
            return c_.ragged
                       ? dtrain_reduce_scatterv(comm, send, recv, counts, type, c_.op, params,
                                                request_p)
                       : dtrain_reduce_scatter(comm, send, recv, n, type, c_.op, params, request_p);
        case Kind::allgather:
            return c_.ragged ? dtrain_allgatherv(comm, send, recv, counts, displs, type, params,
                                                 request_p)
                             : dtrain_allgather(comm, send, recv, n, type, params, request_p);
        case Kind::broadcast:
            return dtrain_broadcast(comm, recv, n, type, c_.root, params, request_p);
        case Kind::gather:
            return c_.ragged ? dtrain_gatherv(comm, send, recv, counts, displs, type, c_.root,
                                              params, request_p)
                             : dtrain_gather(comm, send, recv, n, type, c_.root, params, request_p);
        case Kind::scatter:
            return c_.ragged
                       ? dtrain_scatterv(comm, send, recv, counts, displs, type, c_.root, params,
                                         request_p)
                       : dtrain_scatter(comm, send, recv, n, type, c_.root, params, request_p);
        case Kind::alltoall: return post_alltoall(comm, params, request_p);
        case Kind::barrier: return dtrain_barrier(comm, params, request_p);
        }
        return DTRAIN_ERR_INTERNAL;
    }

    dtrain_status_t post_alltoall(dtrain_comm_t *comm, const dtrain_op_params_t *params,
                                  dtrain_request_t **request_p) {
        if (!c_.ragged)
            return dtrain_alltoall(comm, send_at_, recv_at_, c_.count, c_.dtype, params, request_p);
        for (int j = 0; j < c_.size; j++) {
            send_counts_.push_back(c_.to[size_t(rank_)][size_t(j)]);
            recv_counts_.push_back(c_.to[size_t(j)][size_t(rank_)]);
            send_displs_.push_back(c_.send_displ(rank_, j));
            recv_displs_.push_back(c_.recv_displ(rank_, j));
        }
        return dtrain_alltoallv(comm, send_at_, send_counts_.data(), send_displs_.data(), recv_at_,
                                recv_counts_.data(), recv_displs_.data(), c_.dtype, params,
                                request_p);
    }

    void fill_send() {
        uint64_t n = 0;
        switch (c_.kind) {
        case Kind::allreduce:
        case Kind::reduce: n = c_.count; break;
        case Kind::reduce_scatter: n = c_.start(c_.size); break;
        case Kind::allgather:
        case Kind::gather: n = c_.counts[size_t(rank_)]; break;
        case Kind::scatter: n = is_root() ? c_.extent() : 0; break;
        case Kind::alltoall:
            n = c_.ragged ? c_.send_displ(rank_, c_.size) : c_.count * uint64_t(c_.size);
            break;
        case Kind::broadcast:
        case Kind::barrier: break;
        }
        send_.resize(n * element());
        for (uint64_t i = 0; i < n; i++) write(send_.data(), i, c_.dtype, c_.value(rank_, i));
        send_at_ = send_.empty() ? nullptr : send_.data();
    }

    void expect(uint64_t index, int64_t v) { write(expected_.data(), index, c_.dtype, v); }
    void size_result(uint64_t elements) {
        expected_.assign(elements * element(), filling);
        compare_to_ = expected_.size();
    }
    void use_own_result() {
        recv_.assign(expected_.size(), filling);
        recv_at_ = recv_.empty() ? nullptr : recv_.data();
    }
    // Send and receive share memory, which begins like the result does.
    void share(uint64_t send_first, uint64_t recv_first) {
        in_place_ = true;
        send_at_ = send_.data() + send_first * element();
        recv_at_ = send_.data() + recv_first * element();
    }

    void fill_expected() {
        switch (c_.kind) {
        case Kind::allreduce:
        case Kind::reduce: return expect_sum();
        case Kind::reduce_scatter: return expect_scattered_sum();
        case Kind::allgather:
        case Kind::gather: return expect_gathered();
        case Kind::broadcast: return expect_broadcast();
        case Kind::scatter: return expect_scattered();
        case Kind::alltoall: return expect_exchanged();
        case Kind::barrier: return;
        }
    }
    // The n elements from `first` on of all ranks, folded, are expected from `base` on.
    void expect_folded(uint64_t base, uint64_t first, uint64_t n) {
        const uint64_t fresh = std::min(n, Case::period);
        for (uint64_t i = 0; i < fresh; i++) expect(base + i, c_.folded(first + i));
        for (uint64_t i = fresh; i < n; i += Case::period) {
            uint8_t *to = expected_.data() + (base + i) * element();
            std::memcpy(to, to - Case::period * element(),
                        std::min(n - i, Case::period) * element());
        }
    }
    void expect_sum() {
        bool gets = c_.kind == Kind::allreduce || is_root();
        size_result(gets ? c_.count : 0);
        if (gets) expect_folded(0, 0, c_.count);
        if (c_.in_place && gets && c_.count > 0)
            share(0, 0);
        else
            use_own_result();
    }
    void expect_scattered_sum() {
        uint64_t n = c_.counts[size_t(rank_)], first = c_.start(rank_);
        bool shared = c_.in_place && !send_.empty();
        uint64_t base = shared ? first : 0;
        size_result(base + n);
        expect_folded(base, first, n);
        compare_from_ = base * element(); // the other blocks are undefined in place
        if (shared)
            share(0, first);
        else
            use_own_result();
    }
    void expect_gathered() {
        bool gets = c_.kind == Kind::allgather || is_root();
        size_result(gets ? extent() : 0);
        for (int r = 0; gets && r < c_.size; r++)
            for (uint64_t i = 0; i < c_.counts[size_t(r)]; i++)
                expect(displ(r) + i, c_.value(r, i));
        if (c_.in_place && gets && !expected_.empty()) {
            const std::vector<uint8_t> own(send_.begin(), send_.end());
            send_.assign(expected_.size(), filling);
            std::copy(own.begin(), own.end(), send_.begin() + int64_t(displ(rank_) * element()));
            share(displ(rank_), 0);
        } else {
            use_own_result();
        }
    }
    void expect_broadcast() {
        size_result(c_.count);
        for (uint64_t i = 0; i < c_.count; i++) expect(i, c_.value(c_.root, i));
        use_own_result();
        if (is_root()) std::copy(expected_.begin(), expected_.end(), recv_.begin());
    }
    void expect_scattered() {
        uint64_t n = c_.counts[size_t(rank_)], first = displ(rank_);
        bool shared = c_.in_place && is_root() && !send_.empty();
        if (shared) {
            expected_.assign(send_.begin(), send_.end()); // stays as it is
            compare_to_ = expected_.size();
            return share(0, first);
        }
        size_result(n);
        for (uint64_t i = 0; i < n; i++) expect(i, c_.value(c_.root, first + i));
        use_own_result();
    }
    void expect_exchanged() {
        auto me = size_t(rank_);
        size_result(c_.ragged ? c_.recv_displ(rank_, c_.size) : c_.count * uint64_t(c_.size));
        for (int j = 0; j < c_.size; j++) {
            uint64_t n = c_.ragged ? c_.to[size_t(j)][me] : c_.count;
            uint64_t from = c_.ragged ? c_.send_displ(j, rank_) : c_.count * me;
            uint64_t to = c_.ragged ? c_.recv_displ(rank_, j) : c_.count * uint64_t(j);
            for (uint64_t i = 0; i < n; i++) expect(to + i, c_.value(j, from + i));
        }
        if (c_.in_place && !send_.empty())
            share(0, 0);
        else
            use_own_result();
    }
    // displs are passed only with a gap; without one they are packed anyway.
    uint64_t displ(int rank) const { return c_.displs[size_t(rank)]; }
    uint64_t extent() const { return c_.extent(); }

    const Case c_;
    const int rank_;
    std::vector<dtrain_mem_t *> held_; // before the buffers that use it
    Buffer send_, recv_;
    std::vector<uint8_t> expected_;
    uint8_t *send_at_ = nullptr, *recv_at_ = nullptr;
    bool in_place_ = false;
    size_t compare_from_ = 0, compare_to_ = 0;
    std::vector<uint64_t> send_counts_, recv_counts_, send_displs_, recv_displs_;
};

} // namespace cases
