// What ranks make together and ask for differently, or one of them wrongly: an error on all of
// them, which names both sides, and soon; the communicator goes on.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

using ranks::last_error;

dtrain_status_t table(dtrain_comm_t *comm, const dtrain_table_params_t *params,
                      const char *name = "t") {
    dtrain_table_t *made = nullptr;
    const dtrain_status_t s = dtrain_table_create(comm, name, params, &made);
    if (made != nullptr) OK(dtrain_table_destroy(made));
    return s;
}
dtrain_status_t table_of(dtrain_comm_t *comm, uint64_t length, double rate) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.rule = DTRAIN_RULE_SGD;
    params.learning_rate = rate;
    return table(comm, &params);
}
dtrain_status_t table_named(dtrain_comm_t *comm, const char *name) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 10;
    return table(comm, &params, name);
}
dtrain_status_t split_table(dtrain_comm_t *comm, double rate) {
    dtrain_segment_t segments[2];
    for (auto &segment : segments) {
        DTRAIN_INIT(&segment);
        segment.count = 4;
        segment.rule = DTRAIN_RULE_SGD;
        segment.learning_rate = 0.5;
    }
    segments[1].first = 4;
    segments[1].learning_rate = rate;
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = 8;
    params.segments = segments;
    params.segment_count = 2;
    return table(comm, &params);
}

dtrain_status_t compressor(dtrain_comm_t *comm, uint32_t kind, uint64_t count) {
    dtrain_compressor_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    params.count = count;
    dtrain_compressor_t *made = nullptr;
    const dtrain_status_t s = dtrain_compressor_create(comm, &params, &made);
    if (made != nullptr) OK(dtrain_compressor_destroy(made));
    return s;
}

dtrain_status_t queue(dtrain_comm_t *comm, uint64_t bucket, int64_t cycle_ns = 0) {
    dtrain_gradients_params_t params;
    DTRAIN_INIT(&params);
    params.bucket_bytes = bucket;
    params.cycle_ns = cycle_ns;
    dtrain_gradients_t *made = nullptr;
    const dtrain_status_t s = dtrain_gradients_create(comm, &params, &made);
    if (made != nullptr) OK(dtrain_gradients_destroy(made));
    return s;
}

dtrain_status_t graph(dtrain_comm_t *comm, uint32_t kind, uint64_t flags = 0) {
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    params.flags = flags;
    dtrain_graph_t *made = nullptr;
    const dtrain_status_t s = dtrain_graph_create(comm, &params, &made);
    dtrain_graph_destroy(made);
    return s;
}

dtrain_status_t subset(dtrain_comm_t *comm, std::vector<int32_t> members) {
    dtrain_comm_t *made = nullptr;
    const dtrain_status_t s =
        dtrain_comm_subset(comm, members.data(), int32_t(members.size()), &made);
    if (made != nullptr) OK(dtrain_comm_destroy(made));
    return s;
}

struct Creation {
    const char *what;
    std::function<dtrain_status_t(dtrain_comm_t *)> most, odd; // odd: rank 1's
    dtrain_status_t status;                                    // of all
    std::vector<const char *> texts;                           // that all name
};

const Creation creations[] = {
    {"another length",
     [](auto *c) { return table_of(c, 100, 0.1); },
     [](auto *c) { return table_of(c, 101, 0.1); },
     DTRAIN_ERR_MISMATCH,
     {"rank 0 gives length 100", "rank 1 length 101"}},
    {"another rate",
     [](auto *c) { return table_of(c, 100, 0.5); },
     [](auto *c) { return table_of(c, 100, 0.25); },
     DTRAIN_ERR_MISMATCH,
     {"rank 0 gives learning_rate 0.5", "rank 1 learning_rate 0.25"}},
    {"another rate of a segment",
     [](auto *c) { return split_table(c, 0.5); },
     [](auto *c) { return split_table(c, 0.25); },
     DTRAIN_ERR_MISMATCH,
     {"rank 0 gives segment 1 learning_rate 0.5", "rank 1 segment 1 learning_rate 0.25"}},
    {"another table",
     [](auto *c) { return table_named(c, "emb"); },
     [](auto *c) { return table_named(c, "dense"); },
     DTRAIN_ERR_MISMATCH,
     {"rank 0 gives name emb", "rank 1 name dense"}},
    {"a wrong rate",
     [](auto *c) { return table_of(c, 100, 0.5); },
     [](auto *c) { return table_of(c, 100, -1); },
     DTRAIN_ERR_INVALID,
     {"learning_rate"}},
    {"no parameters of a table",
     [](auto *c) { return table_of(c, 100, 0.5); },
     [](auto *c) { return table(c, nullptr); },
     DTRAIN_ERR_INVALID,
     {"params is NULL"}},
    {"another kind of compressor",
     [](auto *c) { return compressor(c, DTRAIN_COMPRESS_F16, 100); },
     [](auto *c) { return compressor(c, DTRAIN_COMPRESS_INT8, 100); },
     DTRAIN_ERR_MISMATCH,
     {"compressor_create: rank 0 gives kind 1", "rank 1 kind"}},
    {"a wrong compressor",
     [](auto *c) { return compressor(c, DTRAIN_COMPRESS_F16, 100); },
     [](auto *c) { return compressor(c, 77, 100); },
     DTRAIN_ERR_INVALID,
     {"unknown kind 77"}},
    {"another bucket",
     [](auto *c) { return queue(c, 1 << 20); },
     [](auto *c) { return queue(c, 2 << 20); },
     DTRAIN_ERR_MISMATCH,
     {"rank 0 gives bucket_bytes", "1048576", "2097152"}},
    {"a wrong cycle",
     [](auto *c) { return queue(c, 1 << 20); },
     [](auto *c) { return queue(c, 1 << 20, -5); },
     DTRAIN_ERR_INVALID,
     {"cycle_ns is -5"}},
    {"another graph",
     [](auto *c) { return graph(c, DTRAIN_GRAPH_RING); },
     [](auto *c) { return graph(c, DTRAIN_GRAPH_GRID); },
     DTRAIN_ERR_MISMATCH,
     {"graph_create: rank 0 gives kind", "rank 1 kind"}},
    {"a wrong graph",
     [](auto *c) { return graph(c, DTRAIN_GRAPH_RING); },
     [](auto *c) { return graph(c, 99); },
     DTRAIN_ERR_INVALID,
     {"unknown kind 99"}},
    {"unknown flags of a graph",
     [](auto *c) { return graph(c, DTRAIN_GRAPH_RING); },
     [](auto *c) { return graph(c, DTRAIN_GRAPH_RING, uint64_t{1} << 40); },
     DTRAIN_ERR_UNSUPPORTED,
     {"unknown flags"}},
    {"other members",
     [](auto *c) {
         return subset(c, {0, 1, 2});
     },
     [](auto *c) {
         return subset(c, {0, 2, 1});
     },
     DTRAIN_ERR_MISMATCH,
     {"subset: rank 0 gives at 1 rank 1", "rank 1 at 1 rank 2"}},
    {"no members",
     [](auto *c) {
         return subset(c, {0, 1, 2});
     },
     [](auto *c) {
         dtrain_comm_t *made = nullptr;
         return dtrain_comm_subset(c, nullptr, 3, &made);
     },
     DTRAIN_ERR_INVALID,
     {"subset: ranks is NULL or count (3) is negative"}},
    {"a member twice",
     [](auto *c) {
         return subset(c, {0, 1, 2});
     },
     [](auto *c) {
         return subset(c, {0, 2, 2});
     },
     DTRAIN_ERR_INVALID,
     {"rank 2 is named twice"}},
};

void all_ranks_hear_of_it(void **) {
    ranks::run(3, {{"op.timeout", "20s"}}, [](int rank, dtrain_comm_t *comm) {
        for (const Creation &creation : creations) {
            if (rank == 0) std::printf("%s\n", creation.what);
            ranks::expect((rank == 1 ? creation.odd : creation.most)(comm), creation.status,
                          creation.what, rank);
            for (const char *text : creation.texts)
                if (last_error().find(text) == std::string::npos) {
                    std::fprintf(stderr, "rank %d: \"%s\" without \"%s\"\n", rank,
                                 last_error().c_str(), text);
                    REQUIRE(false);
                }
            if (creation.status != DTRAIN_ERR_MISMATCH && rank != 1)
                REQUIRE(last_error().find("rank 1 cannot take part") != std::string::npos);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(creation.most(comm));
        }
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_hear_of_it),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
