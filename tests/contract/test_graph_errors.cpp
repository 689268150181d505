// Graphs that are refused, on all ranks and in words; neighbors that differ or die.
// SPDX-License-Identifier: Apache-2.0
#include "contract/graph_case.h"
#include "contract/processes.h"

namespace {

using graphs::Handle;
using processes::Job;
using ranks::last_error;

constexpr int size = 4;

// One rank's part of a directed ring in which each keeps half of its own, to be spoilt.
struct Part {
    dtrain_graph_params_t params;
    std::vector<int32_t> in, out;
    std::vector<double> weights = {0.5};

    explicit Part(int rank) : in{(rank + size - 1) % size}, out{(rank + 1) % size} {
        DTRAIN_INIT(&params);
        params.kind = DTRAIN_GRAPH_CUSTOM;
        params.self_weight = 0.5;
    }
    dtrain_status_t create(dtrain_comm_t *comm, dtrain_graph_t **graph) {
        if (params.kind == DTRAIN_GRAPH_CUSTOM) {
            params.in_count = int32_t(in.size());
            params.in_neighbors = in.data();
            params.in_weights = weights.empty() ? nullptr : weights.data();
            params.out_count = int32_t(out.size());
            params.out_neighbors = out.data();
        }
        return dtrain_graph_create(comm, &params, graph);
    }
};

struct Bad {
    dtrain_status_t status;
    const char *text;                 // on all ranks
    std::function<void(Part &)> odd;  // rank 2's part
    std::function<void(Part &)> most; // everybody else's
};

const auto as_it_is = [](Part &) {};
const Bad refused[] = {
    {DTRAIN_ERR_INVALID, "from rank 9 to rank 2", [](auto &p) { p.in[0] = 9; }, as_it_is},
    {DTRAIN_ERR_INVALID, "from rank -1 to rank 2", [](auto &p) { p.in[0] = -1; }, as_it_is},
    {DTRAIN_ERR_INVALID, "rank 2 names itself", [](auto &p) { p.in[0] = 2; }, as_it_is},
    {DTRAIN_ERR_INVALID, "from rank 1 to rank 2 is given twice",
     [](auto &p) {
         p.in.push_back(1), p.weights = {0.25, 0.25};
     },
     as_it_is},
    {DTRAIN_ERR_INVALID, "from rank 1 to rank 2 is nan", [](auto &p) { p.weights[0] = NAN; },
     as_it_is},
    {DTRAIN_ERR_INVALID, "from rank 1 to rank 2 is -0.5", [](auto &p) { p.weights[0] = -0.5; },
     as_it_is},
    {DTRAIN_ERR_INVALID, "from rank 2 to rank 2 is inf",
     [](auto &p) { p.params.self_weight = INFINITY; }, as_it_is},
    {DTRAIN_ERR_INVALID, "rank 2 averages with sum to 0.75", [](auto &p) { p.weights[0] = 0.25; },
     as_it_is},
    {DTRAIN_ERR_INVALID, "given to rank 1's value sum to 0.75",
     [](auto &p) { p.weights[0] = 0.25, p.params.self_weight = 0.75; }, as_it_is},
    {DTRAIN_ERR_INVALID, "not connected: no path leads from rank 0 to rank 2",
     [](auto &p) { p.weights[0] = 0, p.params.self_weight = 1; },
     [](auto &p) { p.params.flags = DTRAIN_GRAPH_ROWS_ONLY; }},
    {DTRAIN_ERR_MISMATCH, "rank 2 lists rank 0 in out_neighbors",
     [](auto &p) {
         p.out = {0, 3};
     },
     as_it_is},
    {DTRAIN_ERR_MISMATCH, "rank 2 does not list rank 3 in out_neighbors",
     [](auto &p) { p.out.pop_back(), p.out.reserve(1); }, as_it_is},
    {DTRAIN_ERR_MISMATCH, "rank 2 lists rank 3 in out_neighbors", // twice
     [](auto &p) { p.out.push_back(3); }, as_it_is},
    {DTRAIN_ERR_MISMATCH, "rank 0 gives kind 5, rank 2 kind 1",
     [](auto &p) { p = Part(2), p.params.kind = DTRAIN_GRAPH_RING, p.params.self_weight = 0; },
     as_it_is},
    {DTRAIN_ERR_MISMATCH, "rank 0 gives in_weights: given, rank 2 in_weights: not given",
     [](auto &p) { p.weights.clear(), p.params.self_weight = 0; }, as_it_is},
    {DTRAIN_ERR_INVALID, "but not the other way around",
     [](auto &p) { p.weights.clear(), p.params.self_weight = 0; },
     [](auto &p) { p.weights.clear(), p.params.self_weight = 0; }},
};

// What one rank sees at once is an error of its own, and of the others by its name.
const Bad not_valid[] = {
    {DTRAIN_ERR_INVALID, "unknown kind 6", [](auto &p) { p.params.kind = 6; }, as_it_is},
    {DTRAIN_ERR_UNSUPPORTED, "unknown flags", [](auto &p) { p.params.flags = 8; }, as_it_is},
    {DTRAIN_ERR_INVALID, "are only for DTRAIN_GRAPH_CUSTOM",
     [](auto &p) { p.params.kind = DTRAIN_GRAPH_RING; }, as_it_is},
    {DTRAIN_ERR_INVALID, "4 neighbors among 4 ranks",
     [](auto &p) {
         p.in = {0, 1, 3, 1}, p.weights.resize(4);
     },
     as_it_is},
};

void give_up_unless(bool so, const Bad &bad, dtrain_status_t status) {
    if (so) return;
    std::fprintf(stderr, "expected \"%s\", got %s: %s\n", bad.text, dtrain_status_name(status),
                 last_error().c_str());
    std::abort();
}

void create(const Bad &bad, bool own, int rank, dtrain_comm_t *comm) {
    Part part(rank);
    bad.most(part);
    if (rank == 2) bad.odd(part);
    dtrain_graph_t *graph = nullptr;
    dtrain_status_t s = part.create(comm, &graph);
    const std::string text = last_error();
    const bool named = !own || rank == 2 || text.find("rank 2 cannot") != std::string::npos;
    const bool expected = s == bad.status && named && text.find(bad.text) != std::string::npos;
    give_up_unless(expected, bad, s);
    REQUIRE(graph == nullptr);
}

void refused_everywhere(void **) {
    ranks::run(size, {}, [](int rank, dtrain_comm_t *comm) {
        for (const Bad &bad : refused) create(bad, false, rank, comm);
        for (const Bad &bad : not_valid) create(bad, true, rank, comm);
        Handle handle; // the communicator is as good as before
        Part part(rank);
        OK(part.create(comm, &handle.graph));
        double x = rank;
        OK(dtrain_neighbor_average(handle.graph, &x, &x, 1, DTRAIN_F64, nullptr, nullptr));
        REQUIRE(x == (rank + (rank + size - 1) % size) / 2.0);
        FAILS(DTRAIN_ERR_INVALID, dtrain_graph_create(comm, nullptr, &handle.graph));
    });
}

void arguments(void **) {
    ranks::run(2, {}, [](int, dtrain_comm_t *comm) {
        Handle handle;
        OK(graphs::create(comm, DTRAIN_GRAPH_RING, &handle.graph));
        float x[8] = {}, y[8];
        auto average = [&](dtrain_graph_t *graph, const void *from, void *to, uint32_t dtype) {
            return dtrain_neighbor_average(graph, from, to, 4, dtype, nullptr, nullptr);
        };
        FAILS(DTRAIN_ERR_INVALID, average(nullptr, x, y, DTRAIN_F32));
        FAILS(DTRAIN_ERR_INVALID, average(handle.graph, x, y, DTRAIN_I32));
        REQUIRE(last_error().find("not for i32") != std::string::npos);
        FAILS(DTRAIN_ERR_INVALID, average(handle.graph, x, y, 99));
        FAILS(DTRAIN_ERR_INVALID, average(handle.graph, nullptr, y, DTRAIN_F32));
        FAILS(DTRAIN_ERR_INVALID, average(handle.graph, x, nullptr, DTRAIN_F32));
        FAILS(DTRAIN_ERR_INVALID, average(handle.graph, x, x + 1, DTRAIN_F32));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_neighbor_allgather(handle.graph, x, x, 4, DTRAIN_F32, nullptr, nullptr));
        FAILS(DTRAIN_ERR_LIMIT, dtrain_neighbor_average(handle.graph, x, y, uint64_t{1} << 62,
                                                        DTRAIN_F32, nullptr, nullptr));
        FAILS(DTRAIN_ERR_LIMIT, dtrain_neighbor_alltoall(handle.graph, x, y, uint64_t{1} << 62,
                                                         DTRAIN_F32, nullptr, nullptr));
        OK(average(handle.graph, x, y, DTRAIN_F32));
    });
}

struct Difference {
    const char *most, *odd;
    std::function<dtrain_status_t(dtrain_comm_t *, dtrain_graph_t *, dtrain_graph_t *, bool)> call;
};

// Neighbors or not: whoever made another call is named on all ranks.
void mismatches(void **) {
    static const float x[100] = {};
    thread_local static float y[400];
    const Difference all[] = {
        {"neighbor_average f32[4] graph 1", "neighbor_average f32[5] graph 1",
         [](auto *, auto *ring, auto *, bool odd) {
             return dtrain_neighbor_average(ring, x, y, odd ? 5 : 4, DTRAIN_F32, nullptr, nullptr);
         }},
        {"graph 1", "graph 2",
         [](auto *, auto *ring, auto *full, bool odd) {
             return dtrain_neighbor_average(odd ? full : ring, x, y, 4, DTRAIN_F32, nullptr,
                                            nullptr);
         }},
        {"neighbor_allgather", "neighbor_alltoall",
         [](auto *, auto *ring, auto *, bool odd) {
             auto *call = odd ? dtrain_neighbor_alltoall : dtrain_neighbor_allgather;
             return call(ring, x, y, 50, DTRAIN_F32, nullptr, nullptr);
         }},
        {"neighbor_average", "barrier",
         [](auto *comm, auto *ring, auto *, bool odd) {
             return odd ? dtrain_barrier(comm, nullptr, nullptr)
                        : dtrain_neighbor_average(ring, x, y, 4, DTRAIN_F32, nullptr, nullptr);
         }},
    };
    for (const Difference &difference : all)
        ranks::run(5, {}, [&](int rank, dtrain_comm_t *comm) {
            Handle ring, full;
            OK(graphs::create(comm, DTRAIN_GRAPH_RING, &ring.graph));
            OK(graphs::create(comm, DTRAIN_GRAPH_FULL, &full.graph));
            dtrain_status_t s = difference.call(comm, ring.graph, full.graph, rank == 1);
            // A rank far from rank 1 learns it at the next call.
            if (s == DTRAIN_OK) s = dtrain_barrier(comm, nullptr, nullptr);
            ranks::expect(s, DTRAIN_ERR_MISMATCH, difference.odd, rank);
            REQUIRE(last_error().find(difference.most) != std::string::npos);
            REQUIRE(last_error().find(difference.odd) != std::string::npos);
            REQUIRE(last_error().find("rank 1") != std::string::npos);
        });
}

// A neighbor's process is killed: also those who are not its neighbors hear of it.
void dead_neighbor(const ranks::Options &options, size_t count) {
    constexpr int ranks_count = 5, dead = 3;
    Job job;
    job.start(ranks_count, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, ranks_count);
        dtrain_graph_t *graph = nullptr;
        OK(graphs::create(comm, DTRAIN_GRAPH_RING, &graph));
        std::vector<float> x(count, 1);
        dtrain_status_t s = DTRAIN_OK;
        while (s == DTRAIN_OK) {
            s = dtrain_neighbor_average(graph, x.data(), x.data(), count, DTRAIN_F32, nullptr,
                                        nullptr);
            if (s == DTRAIN_OK) job.seen(rank).rounds++;
        }
        processes::note_failure(job.seen(rank), s);
        dtrain_graph_destroy(graph);
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(ranks_count, 20);
    job.kill_now(dead);
    job.expect_good_ends();
    for (int r = 0; r < ranks_count; r++) {
        if (r == dead) continue;
        assert_int_equal(job.seen(r).status, DTRAIN_ERR_PEER);
        assert_non_null(strstr(job.seen(r).text, "rank 3"));
    }
}
void killed(void **) {
    dead_neighbor({}, 10);
    dead_neighbor({}, 200000);
    dead_neighbor({{"transports", "tcp"}}, 1000);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(refused_everywhere),
        cmocka_unit_test(arguments),
        cmocka_unit_test(mismatches),
        cmocka_unit_test(killed),
    };
    return cmocka_run_group_tests_name("graph_errors", tests, nullptr, nullptr);
}
