// Ranks that make different calls, abort, or destroy what is in use: errors on all ranks, in words.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

using ranks::last_error;

float values[40000];

dtrain_status_t sum(dtrain_comm_t *comm, uint64_t count, uint32_t dtype, uint32_t op) {
    std::vector<double> from(count, 1), to(count);
    return dtrain_allreduce(comm, from.data(), to.data(), count, dtype, op, nullptr, nullptr);
}
dtrain_status_t share(dtrain_comm_t *comm, int32_t root) {
    std::vector<float> data(100);
    return dtrain_broadcast(comm, data.data(), 100, DTRAIN_F32, root, nullptr, nullptr);
}

// Blocks of 4, `second` and 2 elements; `gap` elements lie before the second, unless they are
// packed.
dtrain_status_t gather_blocks(dtrain_comm_t *comm, uint64_t second, uint64_t gap, bool packed) {
    const uint64_t counts[] = {4, second, 2}, displs[] = {0, 4 + gap, 4 + gap + second};
    std::vector<float> from(16), to(32);
    return dtrain_allgatherv(comm, from.data(), to.data(), counts, packed ? nullptr : displs,
                             DTRAIN_F32, nullptr, nullptr);
}

struct Difference {
    const char *what;
    std::function<dtrain_status_t(dtrain_comm_t *)> most, odd; // odd: rank 1's
    const char *texts[2];                                      // both sides as they are named
};

const Difference differences[] = {
    {"kind",
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return dtrain_barrier(c, nullptr, nullptr); },
     {"all_reduce", "barrier"}},
    {"count",
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return sum(c, 5, DTRAIN_F32, DTRAIN_SUM); },
     {"[4]", "[5]"}},
    {"large count",
     [](auto *c) { return sum(c, 300000, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return sum(c, 300001, DTRAIN_F32, DTRAIN_SUM); },
     {"[300000]", "[300001]"}},
    {"small and large",
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return sum(c, 300001, DTRAIN_F32, DTRAIN_SUM); },
     {"[4]", "[300001]"}},
    {"dtype",
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return sum(c, 4, DTRAIN_I32, DTRAIN_SUM); },
     {"f32", "i32"}},
    {"op",
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_SUM); },
     [](auto *c) { return sum(c, 4, DTRAIN_F32, DTRAIN_MAX); },
     {"sum", "max"}},
    {"root",
     [](auto *c) { return share(c, 0); },
     [](auto *c) { return share(c, 2); },
     {"root 0", "root 2"}},
    {"counts of blocks",
     [](auto *c) { return gather_blocks(c, 4, 0, true); },
     [](auto *c) { return gather_blocks(c, 3, 0, true); },
     {"all_gatherv f32 counts/displs #", "rank 1"}},
    {"displacements",
     [](auto *c) { return gather_blocks(c, 4, 0, false); },
     [](auto *c) { return gather_blocks(c, 4, 1, false); },
     {"all_gatherv f32 counts/displs #", "rank 1"}},
    {"displacements on one rank only",
     [](auto *c) { return gather_blocks(c, 4, 1, false); },
     [](auto *c) { return gather_blocks(c, 4, 1, true); },
     {"all_gatherv f32 counts/displs #", "rank 1"}},
    {"order",
     [](auto *c) {
         dtrain_status_t s = share(c, 0);
         return s != DTRAIN_OK ? s : sum(c, 4, DTRAIN_F32, DTRAIN_SUM);
     },
     [](auto *c) {
         dtrain_status_t s = sum(c, 4, DTRAIN_F32, DTRAIN_SUM);
         return s != DTRAIN_OK ? s : share(c, 0);
     },
     {"broadcast", "all_reduce"}},
    {"a call left out",
     [](auto *c) {
         dtrain_status_t s = share(c, 0);
         if (s == DTRAIN_OK) s = sum(c, 4, DTRAIN_F32, DTRAIN_SUM);
         return s != DTRAIN_OK ? s : dtrain_barrier(c, nullptr, nullptr);
     },
     [](auto *c) {
         dtrain_status_t s = share(c, 0);
         return s != DTRAIN_OK ? s : dtrain_barrier(c, nullptr, nullptr);
     },
     {"all_reduce", "barrier"}},
};

// A rank whose own calls all came to a good end learns it at its next one.
void mismatch(const Difference &difference, const ranks::Options &options) {
    std::printf("%s\n", difference.what);
    ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
        // A rank that is still in the barrier may hear there of what the others called afterwards.
        dtrain_status_t s = dtrain_barrier(comm, nullptr, nullptr);
        if (s == DTRAIN_OK) s = (rank == 1 ? difference.odd : difference.most)(comm);
        if (s == DTRAIN_OK) s = dtrain_barrier(comm, nullptr, nullptr);
        ranks::expect(s, DTRAIN_ERR_MISMATCH, difference.what, rank);
        for (const char *text : difference.texts) {
            bool named = last_error().find(text) != std::string::npos;
            if (!named) std::fprintf(stderr, "%s: no %s\n", last_error().c_str(), text);
            REQUIRE(named);
        }
        REQUIRE(last_error().find("rank 1") != std::string::npos);
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_comm_status(comm));
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_barrier(comm, nullptr, nullptr));
    });
}
void different_calls(void **) {
    for (const Difference &difference : differences) mismatch(difference, {});
}
void different_calls_over_tcp(void **) {
    for (const Difference &difference : differences) mismatch(difference, {{"transports", "tcp"}});
}

void aborted(const ranks::Options &options, size_t count) {
    ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *other = nullptr;
        OK(dtrain_comm_duplicate(comm, &other));
        OK(dtrain_barrier(comm, nullptr, nullptr)); // every rank has it
        if (rank == 1) {
            OK(dtrain_comm_abort(other, "the data are bad"));
            OK(dtrain_comm_abort(other, "again"));
            FAILS(DTRAIN_ERR_ABORTED, dtrain_barrier(other, nullptr, nullptr));
        } else {
            FAILS(DTRAIN_ERR_ABORTED, sum(other, count, DTRAIN_F32, DTRAIN_SUM));
        }
        REQUIRE(last_error().find("rank 1") != std::string::npos);
        REQUIRE(last_error().find("the data are bad") != std::string::npos);
        OK(dtrain_comm_destroy(other));
        OK(dtrain_barrier(comm, nullptr, nullptr)); // the others go on
    });
}
void aborts(void **) {
    aborted({}, 2);
    aborted({}, 200000);
    aborted({{"transports", "tcp"}}, 2000);
    aborted({{"progress", "manual"}}, 2);
}

// Destroying waits for nobody: what is pending is cancelled.
void pending_at_the_end(const ranks::Options &options) {
    ranks::run(2, options, [](int rank, dtrain_comm_t *comm) {
        dtrain_comm_t *other = nullptr;
        OK(dtrain_comm_duplicate(comm, &other));
        if (rank == 0) {
            float x = 1, y = 0;
            std::vector<float> more(300000);
            dtrain_request_t *requests[3];
            OK(dtrain_allreduce(other, &x, &y, 1, DTRAIN_F32, DTRAIN_SUM, nullptr, &requests[0]));
            OK(dtrain_recv(other, &y, 1, DTRAIN_F32, 1, 0, nullptr, &requests[1]));
            OK(dtrain_allgather(other, values, more.data(), 40000, DTRAIN_F32, nullptr,
                                &requests[2]));
            OK(dtrain_comm_destroy(other));
            for (dtrain_request_t *request : requests) {
                FAILS(DTRAIN_ERR_CANCELED, dtrain_request_test(request));
                dtrain_request_free(request);
            }
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (rank == 1) OK(dtrain_comm_destroy(other));
    });
}
void pending_operations_are_cancelled(void **) {
    pending_at_the_end({});
    pending_at_the_end({{"transports", "tcp"}});
}

void order_of_ends(void **) {
    dtrain_context_t *context = ranks::make_context({});
    dtrain_comm_t *comm = nullptr, *second = nullptr;
    OK(dtrain_comm_create(context, "env", nullptr, &comm));
    FAILS(DTRAIN_ERR_BUSY, dtrain_context_destroy(context));
    OK(dtrain_barrier(comm, nullptr, nullptr));               // nothing happened to it
    OK(dtrain_comm_create(context, "env", nullptr, &second)); // a job of its own
    OK(dtrain_comm_destroy(second));
    OK(dtrain_comm_duplicate(comm, &second));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_barrier(second, nullptr, nullptr)); // lives on without its parent
    OK(dtrain_comm_destroy(second));
    OK(dtrain_comm_create(context, "env", nullptr, &comm)); // and another job
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(different_calls), cmocka_unit_test(different_calls_over_tcp),
        cmocka_unit_test(aborts),          cmocka_unit_test(pending_operations_are_cancelled),
        cmocka_unit_test(order_of_ends),
    };
    return cmocka_run_group_tests_name("mismatch", tests, nullptr, nullptr);
}
