// Neighbor collectives against a naive product with the mixing matrix.
// SPDX-License-Identifier: Apache-2.0
#include "contract/collective_case.h"
#include "contract/graph_case.h"

namespace {

using graphs::Handle;
using graphs::Matrix;
using ranks::last_error;

constexpr uint64_t seed = 20262;
const ranks::Options over_shm = {}, over_tcp = {{"transports", "tcp"}},
                     small_chunks = {{"chunk.bytes", "4K"}}, manual = {{"progress", "manual"}};

double read(const uint8_t *buffer, uint64_t i, uint32_t dtype) {
    float f = 0;
    double d = 0;
    uint16_t half = 0;
    switch (dtype) {
    case DTRAIN_F32: std::memcpy(&f, buffer + i * 4, 4); return double(f);
    case DTRAIN_F64: std::memcpy(&d, buffer + i * 8, 8); return d;
    case DTRAIN_BF16: std::memcpy(reinterpret_cast<char *>(&f) + 2, buffer + i * 2, 2); return f;
    default: break;
    }
    std::memcpy(&half, buffer + i * 2, 2); // f16, normal or 0
    int exponent = half >> 10 & 31;
    double size = exponent == 0 ? std::ldexp(half & 1023, -24)
                                : std::ldexp(1024 + (half & 1023), exponent - 25);
    return half & 0x8000 ? -size : size;
}

double precision(uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F64: return 1e-12;
    case DTRAIN_F32: return 1e-5;
    case DTRAIN_F16: return 1.0 / 1024;
    default: return 1.0 / 128;
    }
}

int64_t value(uint64_t call, size_t rank, uint64_t i) {
    return int64_t(cases::hash(cases::hash(call << 32 | rank) + i) >> 5 & 31) - 16;
}

// One average in each dtype, with or without a request, in place or not.
void average(dtrain_graph_t *graph, const Matrix &w, int rank, uint64_t call, uint64_t count) {
    for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16}) {
        size_t size = dtrain_dtype_size(dtype);
        bool in_place = (call + dtype) % 2, with_request = (call + dtype) % 3 == 0;
        std::vector<uint8_t> from(count * size + 1), apart(count * size + 1);
        for (uint64_t i = 0; i < count; i++)
            cases::write(from.data(), i, dtype, value(call, size_t(rank), i));
        const std::vector<uint8_t> before = from;
        std::vector<uint8_t> &to = in_place ? from : apart;
        dtrain_request_t *request = nullptr;
        OK(dtrain_neighbor_average(graph, from.data(), to.data(), count, dtype, nullptr,
                                   with_request ? &request : nullptr));
        if (with_request) OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        if (!in_place) REQUIRE(from == before);
        for (uint64_t i = 0; i < count; i++) {
            double want = 0;
            for (size_t j = 0; j < w.size(); j++)
                want += w[size_t(rank)][j] * double(value(call, j, i));
            double got = read(to.data(), i, dtype);
            if (!(std::fabs(got - want) <= 16 * precision(dtype))) {
                std::fprintf(stderr, "rank %d, call %lu, dtype %u, element %lu: %g not %g\n", rank,
                             call, dtype, i, got, want);
                std::abort();
            }
        }
        REQUIRE(to[count * size] == 0); // beyond the end
    }
}

void gather(dtrain_graph_t *graph, const Matrix &w, int rank, uint64_t count) {
    auto me = size_t(rank);
    std::vector<int32_t> send, received, wanted;
    for (uint64_t i = 0; i < count; i++) send.push_back(rank * 1000 + int32_t(i % 1000));
    for (size_t j = 0; j < w.size(); j++)
        for (uint64_t i = 0; i < count && j != me && w[me][j] != 0; i++)
            wanted.push_back(int32_t(j) * 1000 + int32_t(i % 1000));
    received.resize(wanted.size() + 1);
    OK(dtrain_neighbor_allgather(graph, send.data(), received.data(), count, DTRAIN_I32, nullptr,
                                 nullptr));
    received.pop_back();
    REQUIRE(received == wanted);
}

void exchange(dtrain_graph_t *graph, const Matrix &w, int rank, uint64_t count) {
    auto me = size_t(rank);
    auto mark = [](size_t from, size_t to, uint64_t i) { return from << 40 | to << 20 | i; };
    std::vector<uint64_t> send(1), received(1), wanted(1); // of 0 blocks there is an address, too
    for (size_t j = 0; j < w.size(); j++)
        for (uint64_t i = 0; i < count && j != me; i++) {
            if (w[j][me] != 0) send.insert(send.end() - 1, mark(me, j, i));
            if (w[me][j] != 0) wanted.insert(wanted.end() - 1, mark(j, me, i));
        }
    received.resize(wanted.size());
    OK(dtrain_neighbor_alltoall(graph, send.data(), received.data(), count, DTRAIN_U64, nullptr,
                                nullptr));
    REQUIRE(received == wanted);
}

void every_kind(dtrain_graph_t *graph, dtrain_comm_t *comm, int rank, uint64_t number) {
    Matrix w = graphs::matrix_of(comm, graph);
    std::mt19937_64 random(seed + number);
    for (uint64_t call = 0; call < 3; call++) {
        uint64_t count = random() % (call == 2 ? 9000 : 40);
        average(graph, w, rank, number * 10 + call, count);
        gather(graph, w, rank, count / 8);
        exchange(graph, w, rank, count / 8);
    }
}

void all_graphs(int size, const ranks::Options &options) {
    std::printf("%d ranks, seed %lu\n", size, seed);
    ranks::run(size, options, [&](int rank, dtrain_comm_t *comm) {
        for (uint32_t kind : graphs::named) {
            Handle handle;
            OK(graphs::create(comm, kind, &handle.graph));
            every_kind(handle.graph, comm, rank, kind);
        }
        std::mt19937_64 random(seed * 100 + uint64_t(size));
        for (uint64_t i = 0; i < 2; i++) {
            Handle handle;
            Matrix w = graphs::random_matrix(random, size);
            OK(graphs::create(comm, w, &handle.graph));
            REQUIRE(graphs::matrix_of(comm, handle.graph) == w);
            every_kind(handle.graph, comm, rank, 10 + i);
        }
    });
}

void over_shared_memory(void **) {
    for (int size = 1; size <= 17; size++) all_graphs(size, over_shm);
}
void over_sockets(void **) {
    for (int size : {2, 5, 8}) all_graphs(size, over_tcp);
}
void in_chunks(void **) {
    all_graphs(6, small_chunks);
    all_graphs(3, manual);
}

// The rows of a full graph are alike, so all ranks have the same bits, as after an all-reduce.
void full_is_the_mean(void **) {
    ranks::run(7, over_shm, [](int rank, dtrain_comm_t *comm) {
        Handle handle;
        OK(graphs::create(comm, DTRAIN_GRAPH_FULL, &handle.graph));
        std::vector<float> mine(1000), all(7000);
        for (size_t i = 0; i < 1000; i++) mine[i] = float(rank) / 3 + float(i) / 7;
        double sum = 0;
        for (int r = 0; r < 7; r++) sum += r / 3.0 / 7;
        OK(dtrain_neighbor_average(handle.graph, mine.data(), mine.data(), 1000, DTRAIN_F32,
                                   nullptr, nullptr));
        OK(dtrain_allgather(comm, mine.data(), all.data(), 1000, DTRAIN_F32, nullptr, nullptr));
        for (size_t r = 0; r < 7; r++) REQUIRE(std::memcmp(&all[r * 1000], mine.data(), 4000) == 0);
        REQUIRE(std::fabs(double(mine[700]) - sum - 100) < 1e-4);
    });
}

// Many calls in flight at once, of several graphs, among other collectives.
void asynchronous(void **) {
    ranks::run(6, over_shm, [](int rank, dtrain_comm_t *comm) {
        Handle ring, full;
        OK(graphs::create(comm, DTRAIN_GRAPH_RING, &ring.graph));
        OK(graphs::create(comm, DTRAIN_GRAPH_FULL, &full.graph));
        constexpr size_t calls = 24, count = 3000;
        std::vector<std::vector<double>> data(calls, std::vector<double>(count, rank));
        std::vector<dtrain_request_t *> requests(calls);
        for (size_t i = 0; i < calls; i++) {
            double *x = data[i].data();
            if (i % 3 == 2)
                OK(dtrain_allreduce(comm, x, x, count, DTRAIN_F64, DTRAIN_SUM, nullptr,
                                    &requests[i]));
            else
                OK(dtrain_neighbor_average(i % 3 == 0 ? ring.graph : full.graph, x, x, count,
                                           DTRAIN_F64, nullptr, &requests[i]));
        }
        dtrain_graph_destroy(std::exchange(full.graph, nullptr)); // what is in flight goes on
        double near = (rank + (rank + 1) % 6 + (rank + 5) % 6) / 3.0;
        for (size_t i = 0; i < calls; i++) {
            OK(dtrain_request_wait(requests[i], -1));
            dtrain_request_free(requests[i]);
            double want = i % 3 == 0 ? near : i % 3 == 1 ? 2.5 : 15;
            for (double x : data[i]) REQUIRE(std::fabs(x - want) < 1e-9);
        }
    });
}

void queries(void **) {
    ranks::run(5, over_shm, [](int rank, dtrain_comm_t *comm) {
        Handle handle;
        OK(graphs::create(comm, DTRAIN_GRAPH_EXPONENTIAL, &handle.graph));
        int32_t found[5] = {-1, -1, -1, -1, -1};
        REQUIRE(dtrain_graph_neighbors(handle.graph, DTRAIN_GRAPH_OUT, nullptr, nullptr, 0) == 3);
        REQUIRE(dtrain_graph_neighbors(handle.graph, DTRAIN_GRAPH_OUT, found, nullptr, 2) == 3);
        REQUIRE(found[2] == -1 && found[0] < found[1]);
        double weights[5];
        REQUIRE(dtrain_graph_neighbors(handle.graph, DTRAIN_GRAPH_OUT, found, weights, 5) == 3);
        for (int i = 0; i < 3; i++) {
            int distance = (found[i] - rank + 5) % 5;
            REQUIRE((distance == 1 || distance == 2 || distance == 4) && weights[i] == 0.25);
        }
        double gap = 0;
        OK(dtrain_graph_spectral_gap(handle.graph, &gap));
        REQUIRE(gap > 0.5 && gap < 1);
        FAILS(DTRAIN_ERR_INVALID, dtrain_graph_neighbors(handle.graph, 3, found, weights, 5));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_graph_neighbors(handle.graph, DTRAIN_GRAPH_IN, found, weights, -1));
        FAILS(DTRAIN_ERR_BUSY, dtrain_comm_destroy(comm));
        REQUIRE(last_error().find("graphs") != std::string::npos);
        dtrain_graph_destroy(nullptr);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(over_shared_memory), cmocka_unit_test(over_sockets),
        cmocka_unit_test(in_chunks),          cmocka_unit_test(full_is_the_mean),
        cmocka_unit_test(asynchronous),       cmocka_unit_test(queries),
    };
    return cmocka_run_group_tests_name("graphs", tests, nullptr, nullptr);
}
