// Tables, gradient queues and compressors with buffers on GPUs: the same as from host memory.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gpu.h"
#include "contract/ranks.h"

#include <numeric>

namespace {

const ranks::Options with_gpus = {{"accelerators", "cuda"}};

std::vector<float> ramp(size_t count, float from) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
}

dtrain_table_t *make_table(dtrain_comm_t *comm, const char *name, uint64_t length, uint64_t dim) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.length = length;
    params.dim = dim;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADD;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

// Blocking, with a request, and with a completion queue.
template <class F> void every_way(dtrain_context_t *context, F &&call) {
    OK(call(nullptr, nullptr));
    dtrain_request_t *request = nullptr;
    OK(call(nullptr, &request));
    OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    dtrain_cq_t *queue = nullptr;
    OK(dtrain_cq_create(context, 0, &queue));
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.cq = queue;
    OK(call(&params, nullptr));
    dtrain_event_t event;
    REQUIRE(dtrain_cq_poll(queue, &event, 1, -1) == 1);
    OK(event.status);
    OK(dtrain_cq_destroy(queue));
}

void dense_tables(void **) {
    for (const char *transports : {"shm,tcp", "tcp"})
        ranks::run(
            1, 2, {{"accelerators", "cuda"}, {"transports", transports}},
            ranks::Body([](int, dtrain_context_t *context, dtrain_comm_t *comm) {
                constexpr size_t count = 70'000;
                dtrain_table_t *table = make_table(comm, "dense", count, 0);
                const std::vector<float> values = ramp(count, 1);
                gpu::Buffer from = gpu::copy_of(values), to(count * sizeof(float), 1);
                OK(dtrain_table_set(table, 0, count, from.address(), nullptr, nullptr));
                every_way(
                    context, [&](const dtrain_op_params_t *params, dtrain_request_t **request) {
                        return dtrain_table_push(table, 0, count, from.address(), params, request);
                    }); // three times
                every_way(
                    context, [&](const dtrain_op_params_t *params, dtrain_request_t **request) {
                        return dtrain_table_pull(table, 0, count, to.address(), params, request);
                    });
                std::vector<float> got = to.values<float>();
                for (size_t i = 0; i < count; i++) REQUIRE(got[i] == 4 * values[i]);
                // From and to the same memory.
                OK(dtrain_table_push_pull(table, 5, 100, from.address(), from.address(), nullptr,
                                          nullptr));
                got = from.values<float>();
                for (size_t i = 0; i < count; i++)
                    REQUIRE(got[i] == (i < 100 ? 4 * values[i + 5] + values[i] : values[i]));
                FAILS(DTRAIN_ERR_INVALID,
                      dtrain_table_push(table, 0, count, from.address() + 4, nullptr, nullptr));
                REQUIRE(ranks::last_error().find("push of table \"dense\"") != std::string::npos);
                OK(dtrain_table_destroy(table));
            }));
}

void rows(void **) {
    ranks::run(
        1, 2, with_gpus, ranks::Body([](int, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr size_t count = 3000, dim = 9;
            dtrain_table_t *table = make_table(comm, "sparse", 0, dim);
            std::vector<uint64_t> keys(count);
            for (size_t i = 0; i < count; i++) keys[i] = i * 7919 + 3;
            const std::vector<float> values = ramp(count * dim, 1);
            gpu::Buffer from = gpu::copy_of(values), to(values.size() * sizeof(float), 1),
                        on_gpu = gpu::copy_of(keys, 1);
            OK(dtrain_table_set_rows(table, on_gpu.as<uint64_t>(), count, from.address(), nullptr,
                                     nullptr));
            every_way(context, [&](const dtrain_op_params_t *params, dtrain_request_t **request) {
                return dtrain_table_push_rows(table, keys.data(), count, from.address(), params,
                                              request);
            });
            every_way(context, [&](const dtrain_op_params_t *params, dtrain_request_t **request) {
                return dtrain_table_pull_rows(table, on_gpu.as<uint64_t>(), count, to.address(),
                                              params, request);
            });
            const std::vector<float> got = to.values<float>();
            for (size_t i = 0; i < got.size(); i++) REQUIRE(got[i] == 4 * values[i]);
            OK(dtrain_table_destroy(table));
        }));
}

void gradients(void **) {
    ranks::run_with_contexts(
        3, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            dtrain_gradients_t *queue = nullptr;
            OK(dtrain_gradients_create(comm, nullptr, &queue));
            for (size_t count : {size_t{1}, size_t{1000}, size_t{3'000'000}}) {
                const std::vector<float> values = ramp(count, float(rank));
                gpu::Buffer from = gpu::copy_of(values, rank % 2), to(count * sizeof(float), 1);
                every_way(context, [&](const dtrain_op_params_t *params,
                                       dtrain_request_t **request) {
                    return dtrain_gradients_submit(queue, "tensor", from.address(), to.address(),
                                                   count, DTRAIN_F32, DTRAIN_SUM, params, request);
                });
                OK(dtrain_gradients_submit(queue, "in place", from.address(), from.address(), count,
                                           DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
                const std::vector<float> got = to.values<float>();
                REQUIRE(from.values<float>() == got);
                for (size_t i = 0; i < count; i++) REQUIRE(got[i] == 3 * float(i) + 3);
            }
            OK(dtrain_gradients_destroy(queue));
        });
}

void compressors(void **) {
    ranks::run_with_contexts(
        2, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr size_t count = 5000;
            for (uint32_t kind : {DTRAIN_COMPRESS_BF16, DTRAIN_COMPRESS_INT8, DTRAIN_COMPRESS_TOPK,
                                  DTRAIN_COMPRESS_POWERSGD}) {
                dtrain_compressor_params_t params;
                DTRAIN_INIT(&params);
                params.kind = kind;
                params.count = count;
                dtrain_compressor_t *on_host = nullptr, *on_gpu = nullptr;
                OK(dtrain_compressor_create(comm, &params, &on_host));
                OK(dtrain_compressor_create(comm, &params, &on_gpu));
                const std::vector<float> values = ramp(count, float(rank));
                std::vector<float> expected(count);
                gpu::Buffer from = gpu::copy_of(values), to(count * sizeof(float), 1);
                for (int step = 0; step < 3; step++)
                    OK(dtrain_compressor_allreduce(on_host, values.data(), expected.data(),
                                                   DTRAIN_AVG, nullptr, nullptr));
                every_way(
                    context, [&](const dtrain_op_params_t *op_params, dtrain_request_t **request) {
                        return dtrain_compressor_allreduce(on_gpu, from.as<float>(), to.as<float>(),
                                                           DTRAIN_AVG, op_params, request);
                    });
                REQUIRE(to.values<float>() == expected);
                OK(dtrain_compressor_destroy(on_host));
                OK(dtrain_compressor_destroy(on_gpu));
            }
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(dense_tables),
        cmocka_unit_test(rows),
        cmocka_unit_test(gradients),
        cmocka_unit_test(compressors),
    };
    return cmocka_run_group_tests_name("tables on GPUs", tests, nullptr, nullptr);
}
