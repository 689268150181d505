// What is large goes from memory to memory without a copy by the transport, where that counts.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

constexpr uint64_t count = 1 << 20; // f32: 4 MiB
constexpr uint64_t bytes = count * sizeof(float);

class Registered {
  public:
    Registered(dtrain_context_t *context, float value) : values(count, value) {
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.mem_type = DTRAIN_MEM_HOST;
        params.address = values.data();
        params.length = bytes;
        OK(dtrain_mem_register(context, &params, &mem_));
    }
    ~Registered() { OK(dtrain_mem_deregister(mem_)); }
    Registered(const Registered &) = delete;
    float *data() { return values.data(); }
    std::vector<float> values;

  private:
    dtrain_mem_t *mem_ = nullptr;
};

dtrain_device_stats_t stats_of(dtrain_context_t *context) {
    dtrain_device_stats_t stats;
    DTRAIN_INIT(&stats);
    OK(dtrain_stats_device(context, 0, &stats));
    return stats;
}

const ranks::Options network = {{"transports", "tcp"}}; // or another, but not shared memory

void need_counters() {
    dtrain_context_t *context = ranks::make_context(network);
    dtrain_device_stats_t stats;
    DTRAIN_INIT(&stats);
    FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_stats_device(context, 99, &stats));
    const dtrain_status_t status = dtrain_stats_device(context, 0, &stats);
    OK(dtrain_context_destroy(context));
    if (status == DTRAIN_OK) return;
    REQUIRE(status == DTRAIN_ERR_UNSUPPORTED);
    print_message("this network's transport does not count\n");
    skip();
}

// f() moves so much that nearly all of it must have gone without a copy: what goes with it are
// barriers and headers. least: bytes that this rank sends and receives.
template <class F>
void moves_in_place(dtrain_context_t *context, const char *what, uint64_t least, F &&f) {
    const dtrain_device_stats_t before = stats_of(context);
    f();
    const dtrain_device_stats_t after = stats_of(context);
    const uint64_t copied = after.copied - before.copied,
                   in_place = after.in_place - before.in_place;
    std::printf("%s: %llu bytes copied, %llu in place\n", what, (unsigned long long)copied,
                (unsigned long long)in_place);
    REQUIRE(in_place >= least);
    REQUIRE(copied < 16 << 10);
}

void large_operations_copy_nothing(void **) {
    need_counters();
    ranks::run(2, 0, network, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        const dtrain_device_stats_t before = stats_of(context);
        Registered vector(context, float(rank + 1));
        const dtrain_device_stats_t with = stats_of(context);
        REQUIRE(with.registrations == before.registrations + 1);
        REQUIRE(with.registered_bytes == before.registered_bytes + bytes);
        moves_in_place(context, "message", bytes, [&] {
            if (rank == 0)
                OK(dtrain_send(comm, vector.data(), count, DTRAIN_F32, 1, 0, nullptr, nullptr));
            else
                OK(dtrain_recv(comm, vector.data(), count, DTRAIN_F32, 0, 0, nullptr, nullptr));
        });
        REQUIRE(vector.values.back() == 1);
        REQUIRE(stats_of(context).cache_misses == before.cache_misses);
        moves_in_place(context, "all-reduce", 2 * bytes, [&] {
            OK(dtrain_allreduce(comm, vector.data(), vector.data(), count, DTRAIN_F32, DTRAIN_SUM,
                                nullptr, nullptr));
        });
        REQUIRE(vector.values.front() == 2 && vector.values.back() == 2);
        // Nor is anything registered for a single message: the library's own buffers are, once.
        REQUIRE(stats_of(context).cache_misses == before.cache_misses);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void memory_that_is_not_registered_is_each_time(void **) {
    need_counters();
    ranks::run(2, 0, network, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        std::vector<float> vector(count, float(rank + 1));
        const dtrain_device_stats_t before = stats_of(context);
        for (int i = 0; i < 3; i++)
            if (rank == 0)
                OK(dtrain_send(comm, vector.data(), count, DTRAIN_F32, 1, 0, nullptr, nullptr));
            else
                OK(dtrain_recv(comm, vector.data(), count, DTRAIN_F32, 0, 0, nullptr, nullptr));
        const dtrain_device_stats_t after = stats_of(context);
        if (rank == 1) REQUIRE(after.cache_misses >= before.cache_misses + 3);
        REQUIRE(after.registrations == before.registrations);
        REQUIRE(after.cache_entries + after.cache_bytes + after.cache_hits == 0); // there is none
        REQUIRE(after.cache_evictions == 0);
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

dtrain_table_t *dense_table(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = count;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "w", &params, &table));
    return table;
}

void pushes_and_pulls_copy_nothing(void **) {
    need_counters();
    ranks::run(1, 1, network, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_table_t *table = dense_table(comm);
        Registered vector(context, 1);
        moves_in_place(context, "push", bytes, [&] {
            OK(dtrain_table_push(table, 0, count, vector.data(), nullptr, nullptr));
        });
        moves_in_place(context, "pull", bytes, [&] {
            OK(dtrain_table_pull(table, 0, count, vector.data(), nullptr, nullptr));
        });
        REQUIRE(vector.values.front() == 1 && vector.values.back() == 1);
        OK(dtrain_table_destroy(table));
    });
}

// Both ranks serve: of what each moves, half goes to the other one, which counts, too. Whatever is
// not the program's is registered once, by the library.
template <class F> void registers_nothing(dtrain_context_t *context, dtrain_comm_t *comm, F &&f) {
    for (int i = 0; i < 3; i++) {
        const uint64_t before = stats_of(context).cache_misses;
        f();
        OK(dtrain_barrier(comm, nullptr, nullptr)); // neither does anything for the other
        const uint64_t made = stats_of(context).cache_misses - before;
        if (made > 0) std::printf("%llu registrations\n", (unsigned long long)made);
        REQUIRE(made == 0);
    }
}

void pushes_and_pulls_register_nothing(void **) {
    need_counters();
    ranks::run(2, 0, network, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_table_t *table = dense_table(comm);
        Registered vector(context, 1);
        registers_nothing(context, comm, [&] {
            OK(dtrain_table_push(table, 0, count, vector.data(), nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, count, vector.data(), nullptr, nullptr));
        });
        OK(dtrain_table_destroy(table));
    });
}

void rows_and_narrow_values_register_nothing(void **) {
    need_counters();
    ranks::run(2, 0, network, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = count;
        params.wire_dtype = DTRAIN_F16;
        dtrain_table_t *narrow = nullptr, *sparse = nullptr;
        OK(dtrain_table_create(comm, "narrow", &params, &narrow));
        params.wire_dtype = 0;
        params.length = 0;
        params.dim = 64;
        OK(dtrain_table_create(comm, "sparse", &params, &sparse));
        // What travels is put together by the library: so these need not be registered.
        std::vector<float> values(count, 1);
        std::vector<uint64_t> keys(count / params.dim);
        for (size_t i = 0; i < keys.size(); i++) keys[i] = i * i;
        registers_nothing(context, comm, [&] {
            OK(dtrain_table_push(narrow, 0, count, values.data(), nullptr, nullptr));
            OK(dtrain_table_pull(narrow, 0, count, values.data(), nullptr, nullptr));
        });
        registers_nothing(context, comm, [&] {
            OK(dtrain_table_push_rows(sparse, keys.data(), keys.size(), values.data(), nullptr,
                                      nullptr));
            OK(dtrain_table_pull_rows(sparse, keys.data(), keys.size(), values.data(), nullptr,
                                      nullptr));
        });
        OK(dtrain_table_destroy(sparse));
        OK(dtrain_table_destroy(narrow));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(large_operations_copy_nothing),
        cmocka_unit_test(memory_that_is_not_registered_is_each_time),
        cmocka_unit_test(pushes_and_pulls_copy_nothing),
        cmocka_unit_test(pushes_and_pulls_register_nothing),
        cmocka_unit_test(rows_and_narrow_values_register_nothing),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
