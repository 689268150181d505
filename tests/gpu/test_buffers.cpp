// Buffers on GPUs in calls: every kind of call, buffers of several kinds in one call.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gpu.h"
#include "contract/ranks.h"

#include <numeric>

namespace {

const ranks::Options over_shm = {{"accelerators", "cuda"}};
const ranks::Options over_tcp = {{"accelerators", "cuda"}, {"transports", "tcp"}};

std::vector<float> ramp(size_t count, float from) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), from);
    return values;
}

// The network, and the accelerator's program in between, leave other bytes alone.
void messages(const ranks::Options &options) {
    ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
        for (size_t count : {size_t{0}, size_t{1}, size_t{5000}, size_t{300'000}}) {
            const std::vector<float> values = ramp(count, 7);
            if (rank == 0) {
                const gpu::Buffer sent = gpu::copy_of(values);
                OK(dtrain_send(comm, sent.address(), count, DTRAIN_F32, 1, 3, nullptr, nullptr));
            } else {
                std::vector<float> before(count + 100, -1);
                gpu::Buffer received = gpu::copy_of(before, 1);
                dtrain_request_t *request = nullptr;
                OK(dtrain_recv(comm, received.address(), count + 100, DTRAIN_F32, 0, 3, nullptr,
                               &request));
                OK(dtrain_request_wait(request, -1));
                dtrain_event_t event;
                OK(dtrain_request_result(request, &event));
                REQUIRE(event.bytes == count * sizeof(float) && event.peer == 0);
                dtrain_request_free(request);
                std::copy(values.begin(), values.end(), before.begin());
                REQUIRE(received.values<float>() == before);
            }
        }
    });
}
void messages_in_shared_memory(void **) { messages(over_shm); }
void messages_over_tcp(void **) { messages(over_tcp); }

void truncated_message_changes_nothing(void **) {
    ranks::run(2, over_shm, [&](int rank, dtrain_comm_t *comm) {
        const std::vector<float> values = ramp(100, 0);
        if (rank == 0) {
            OK(dtrain_send(comm, values.data(), 100, DTRAIN_F32, 1, 0, nullptr, nullptr));
        } else {
            const std::vector<float> before(50, -1);
            gpu::Buffer received = gpu::copy_of(before);
            FAILS(DTRAIN_ERR_TRUNCATED,
                  dtrain_recv(comm, received.address(), 50, DTRAIN_F32, 0, 0, nullptr, nullptr));
            REQUIRE(received.values<float>() == before);
        }
    });
}

void canceled_receive(void **) {
    ranks::run(1, over_shm, [&](int, dtrain_comm_t *comm) {
        const gpu::Buffer received = gpu::copy_of(std::vector<uint8_t>(64, 0xA5));
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(comm, received.address(), 64, DTRAIN_U8, 0, 0, nullptr, &request));
        OK(dtrain_request_cancel(request));
        FAILS(DTRAIN_ERR_CANCELED, dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        for (uint8_t byte : received.values<uint8_t>()) REQUIRE(byte == 0xA5);
    });
}

// Started again and again with other values in the same buffers.
void persistent_requests(void **) {
    for (const ranks::Options &options : {over_shm, over_tcp})
        ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
            constexpr size_t count = 40'000;
            gpu::Buffer buffer(count * sizeof(float), rank % 2);
            dtrain_op_params_t params;
            DTRAIN_INIT(&params);
            params.flags = DTRAIN_OP_PERSISTENT;
            dtrain_request_t *sum = nullptr, *message = nullptr;
            OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), count, DTRAIN_F32,
                                DTRAIN_SUM, &params, &sum));
            if (rank == 0)
                OK(dtrain_send(comm, buffer.address(), count, DTRAIN_F32, 1, 0, &params, &message));
            if (rank == 1)
                OK(dtrain_recv(comm, buffer.address(), count, DTRAIN_F32, 0, 0, &params, &message));
            for (int round = 0; round < 5; round++) {
                const std::vector<float> values = ramp(count, float(rank + round));
                buffer.write(values.data());
                OK(dtrain_request_start(&sum, 1));
                OK(dtrain_request_wait(sum, -1));
                const std::vector<float> got = buffer.values<float>();
                for (size_t i = 0; i < count; i++)
                    REQUIRE(got[i] == 3 * float(i) + 3 + 3 * float(round));
                if (message == nullptr) continue;
                if (rank == 0) buffer.write(values.data());
                OK(dtrain_request_start(&message, 1));
                OK(dtrain_request_wait(message, -1));
                if (rank == 1) REQUIRE(buffer.values<float>() == ramp(count, float(round)));
            }
            dtrain_request_free(sum);
            dtrain_request_free(message);
        });
}

// The same bits as from host memory: products and averages whose sums are rounded.
void scaled_and_averaged(void **) {
    for (const ranks::Options &options : {over_shm, over_tcp})
        for (uint32_t dtype : {uint32_t(DTRAIN_F32), uint32_t(DTRAIN_F16), uint32_t(DTRAIN_I32)})
            ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
                constexpr size_t count = 20'011;
                const size_t bytes = count * dtrain_dtype_size(dtype);
                std::vector<uint8_t> input(bytes), host(bytes), device(bytes);
                for (size_t i = 0; i < bytes; i++)
                    input[i] = uint8_t((i * 31 + size_t(rank) * 7) % 59); // small numbers only
                dtrain_op_params_t params;
                DTRAIN_INIT(&params);
                if (dtype != DTRAIN_I32) params.prescale = 0.3, params.postscale = 1.7;
                OK(dtrain_allreduce(comm, input.data(), host.data(), count, dtype, DTRAIN_AVG,
                                    &params, nullptr));
                gpu::Buffer from = gpu::copy_of(input, 0), to(bytes, 1);
                for (bool blocking : {true, false}) {
                    dtrain_request_t *request = nullptr;
                    OK(dtrain_allreduce(comm, from.address(), to.address(), count, dtype,
                                        DTRAIN_AVG, &params, blocking ? nullptr : &request));
                    if (request != nullptr) OK(dtrain_request_wait(request, -1));
                    dtrain_request_free(request);
                    to.read(device.data());
                    REQUIRE(device == host);
                    REQUIRE(from.values<uint8_t>() == input);
                }
            });
}

void neighbors(void **) {
    ranks::run(4, over_shm, [&](int rank, dtrain_comm_t *comm) {
        constexpr size_t count = 3000;
        dtrain_graph_params_t params;
        DTRAIN_INIT(&params);
        params.kind = DTRAIN_GRAPH_RING;
        dtrain_graph_t *graph = nullptr;
        OK(dtrain_graph_create(comm, &params, &graph));
        const std::vector<float> values = ramp(count, float(rank));
        std::vector<float> host(count), all(2 * count);
        OK(dtrain_neighbor_average(graph, values.data(), host.data(), count, DTRAIN_F32, nullptr,
                                   nullptr));
        gpu::Buffer from = gpu::copy_of(values), to(count * sizeof(float));
        OK(dtrain_neighbor_average(graph, from.address(), to.address(), count, DTRAIN_F32, nullptr,
                                   nullptr));
        REQUIRE(to.values<float>() == host);
        OK(dtrain_neighbor_average(graph, from.address(), from.address(), count, DTRAIN_F32,
                                   nullptr, nullptr)); // in place
        REQUIRE(from.values<float>() == host);
        from.write(values.data());
        OK(dtrain_neighbor_allgather(graph, values.data(), all.data(), count, DTRAIN_F32, nullptr,
                                     nullptr));
        gpu::Buffer gathered(all.size() * sizeof(float), 1);
        OK(dtrain_neighbor_allgather(graph, from.address(), gathered.address(), count, DTRAIN_F32,
                                     nullptr, nullptr));
        REQUIRE(gathered.values<float>() == all);
        dtrain_graph_destroy(graph);
    });
}

// Requests that are not waited for: the context is destroyed only after the results have landed.
void abandoned_requests(void **) {
    std::vector<std::unique_ptr<gpu::Buffer>> buffers;
    for (int i = 0; i < 20; i++) buffers.push_back(std::make_unique<gpu::Buffer>(100'000, i % 2));
    ranks::run(1, over_shm, [&](int, dtrain_comm_t *comm) {
        for (auto &buffer : buffers) {
            dtrain_request_t *request = nullptr;
            OK(dtrain_allreduce(comm, buffer->address(), buffer->address(), 25'000, DTRAIN_F32,
                                DTRAIN_SUM, nullptr, &request));
            dtrain_request_free(request);
        }
    });
}

// Managed and pinned memory are the host's, too, and copied to nowhere.
void other_kinds_of_memory(void **) {
    ranks::run_with_contexts(
        2, over_shm, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            gpu::Address managed = 0;
            {
                const gpu::Current current(0);
                gpu::call<gpu::Address *, size_t, unsigned>("cuMemAllocManaged", &managed, 4096, 1);
            }
            auto *values = reinterpret_cast<uint32_t *>(managed);
            for (uint32_t i = 0; i < 1024; i++) values[i] = i + uint32_t(rank);
            OK(dtrain_allreduce(comm, values, values, 1024, DTRAIN_U32, DTRAIN_SUM, nullptr,
                                nullptr));
            for (uint32_t i = 0; i < 1024; i++) REQUIRE(values[i] == 2 * i + 1);
            char text[8192];
            dtrain_context_describe(context, text, sizeof text);
            REQUIRE(std::strstr(text, "\"to_host_bytes\": 0") != nullptr);
            REQUIRE(std::strstr(text, "\"open\": true") == nullptr);
            gpu::Buffer device(400);
            OK(dtrain_allreduce(comm, device.address(), device.address(), 100, DTRAIN_U32,
                                DTRAIN_MAX, nullptr, nullptr));
            dtrain_context_describe(context, text, sizeof text);
            REQUIRE(std::strstr(text, "\"to_host_bytes\": 400") != nullptr);
            REQUIRE(std::strstr(text, "\"open\": true") != nullptr);
            const gpu::Current current(0);
            gpu::call<gpu::Address>("cuMemFree_v2", managed);
        });
}

// The process has the driver when the context is made, or only when the communicator is.
void found_by_itself(void **) {
    gpu::library();
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        gpu::Buffer buffer = gpu::copy_of(ramp(10, float(rank)));
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), 10, DTRAIN_F32, DTRAIN_SUM,
                            nullptr, nullptr));
        for (size_t i = 0; i < 10; i++) REQUIRE(buffer.values<float>()[i] == 2 * float(i) + 1);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(messages_in_shared_memory),
        cmocka_unit_test(messages_over_tcp),
        cmocka_unit_test(truncated_message_changes_nothing),
        cmocka_unit_test(canceled_receive),
        cmocka_unit_test(persistent_requests),
        cmocka_unit_test(scaled_and_averaged),
        cmocka_unit_test(neighbors),
        cmocka_unit_test(abandoned_requests),
        cmocka_unit_test(other_kinds_of_memory),
        cmocka_unit_test(found_by_itself),
    };
    return cmocka_run_group_tests_name("buffers on GPUs", tests, nullptr, nullptr);
}
