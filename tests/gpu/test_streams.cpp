// Operations in the order of streams: the host never waits, and no stream stays held.
// SPDX-License-Identifier: Apache-2.0
#include "contract/collective_case.h"
#include "contract/gpu.h"
#include "contract/processes.h"
#include "gpu/stream.h"

namespace {

using gpu::Stream;

const ranks::Options over_shm = {{"accelerators", "cuda"}};
const ranks::Options over_tcp = {{"accelerators", "cuda"}, {"transports", "tcp"}};

dtrain_op_params_t on(const Stream &stream) { return stream.params(); }

void expect_text(const char *part) {
    const std::string text = ranks::last_error();
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text.c_str(), part);
    REQUIRE(text.find(part) != std::string::npos);
}
void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }

// Fills, sums and copies follow each other in a stream; the host looks only at the end.
void in_order(const ranks::Options &options, size_t bytes) {
    constexpr int rounds = 10;
    ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
        const int device = rank % 2;
        Stream stream(device);
        const dtrain_op_params_t params = on(stream);
        gpu::Buffer sum(bytes, device);
        std::vector<std::unique_ptr<gpu::Buffer>> results;
        for (int round = 0; round < rounds; round++) {
            results.push_back(std::make_unique<gpu::Buffer>(bytes, device));
            stream.fill(sum, static_cast<unsigned char>(rank + round));
            dtrain_request_t *request = nullptr;
            OK(dtrain_allreduce(comm, sum.address(), sum.address(), bytes, DTRAIN_U8, DTRAIN_SUM,
                                &params, &request));
            dtrain_request_free(request);
            stream.copy(*results.back(), sum);
            stream.fill(sum, 99);
        }
        stream.synchronize();
        for (int round = 0; round < rounds; round++)
            for (uint8_t byte : results[size_t(round)]->values<uint8_t>())
                REQUIRE(byte == 3 + 3 * round);
    });
}
void collectives_in_order(void **) {
    for (size_t bytes : {size_t{40}, size_t{5000}, size_t{700'000}})
        for (const ranks::Options &options : {over_shm, over_tcp}) in_order(options, bytes);
}

// Which of the buffers lie in host memory.
struct Hosts {
    bool sends, receives;
};
constexpr Hosts some_hosts[] = {{false, false}, {false, true}, {true, false}};

// Averages whose sums travel in another format, and scaled ones, against the host's.
void averages_in_order(void **) {
    for (const ranks::Options &options : {over_shm, over_tcp})
        ranks::run(3, options, [&](int rank, dtrain_comm_t *comm) {
            for (size_t count : {size_t{9}, size_t{300'000}})
                for (uint32_t dtype :
                     {DTRAIN_F16, DTRAIN_BF16, DTRAIN_I8, DTRAIN_I32, DTRAIN_U64, DTRAIN_F32})
                    for (bool scatters : {false, true}) {
                        const size_t bytes = count * dtrain_dtype_size(dtype);
                        std::vector<uint8_t> input(bytes * 3), wanted(bytes * 3, 1);
                        for (size_t i = 0; i < 3 * count; i++)
                            cases::write(input.data(), i, dtype,
                                         int64_t((i * 5 + size_t(rank)) % 101));
                        Stream stream;
                        dtrain_op_params_t params;
                        DTRAIN_INIT(&params);
                        dtrain_request_t *request = nullptr;
                        const auto average = [&](const void *from, void *to) {
                            if (dtype <= DTRAIN_BF16) params.postscale = 0.7;
                            if (dtype == DTRAIN_F32) params.prescale = 0.3;
                            OK(scatters ? dtrain_reduce_scatter(comm, from, to, count, dtype,
                                                                DTRAIN_AVG, &params, &request)
                                        : dtrain_allreduce(comm, from, to, count, dtype, DTRAIN_AVG,
                                                           &params, &request));
                        };
                        average(input.data(), wanted.data());
                        OK(dtrain_request_wait(request, -1));
                        dtrain_request_free(request);
                        params = on(stream);
                        const gpu::Buffer late = gpu::copy_of(input), from(bytes * 3),
                                          result(bytes * 3);
                        const std::vector<uint8_t> ones(bytes * 3, 1);
                        gpu::Buffer to(bytes * 3);
                        for (const Hosts &hosts : some_hosts) {
                            if (hosts.sends && dtype == DTRAIN_F32) continue; // a prescale
                            std::vector<uint8_t> got = ones;
                            to.write(ones.data());
                            gpu::finish_copies();
                            stream.fill(from, 88);
                            stream.copy(from, late);
                            average(hosts.sends ? input.data() : from.address(),
                                    hosts.receives ? got.data() : to.address());
                            stream.copy(result, to);
                            stream.synchronize();
                            OK(dtrain_request_wait(request, -1));
                            dtrain_request_free(request);
                            REQUIRE((hosts.receives ? got : result.values<uint8_t>()) == wanted);
                        }
                    }
        });
}

// Rank 1 has no GPU; messages keep the order of their calls, whatever they wait for.
void messages_in_order(void **) {
    for (const ranks::Options &options : {over_shm, over_tcp})
        ranks::run(2, options, [&](int rank, dtrain_comm_t *comm) {
            constexpr size_t bytes = 3000;
            if (rank == 1) {
                std::vector<uint8_t> got(bytes);
                for (int i = 0; i < 6; i++) {
                    OK(dtrain_recv(comm, got.data(), bytes, DTRAIN_U8, 0, 7, nullptr, nullptr));
                    for (uint8_t byte : got) REQUIRE(byte == i);
                }
                for (size_t size : {size_t{10}, bytes}) {
                    std::fill(got.begin(), got.end(), 77);
                    OK(dtrain_send(comm, got.data(), size, DTRAIN_U8, 0, 8, nullptr, nullptr));
                }
                return;
            }
            Stream stream;
            const dtrain_op_params_t params = on(stream);
            std::vector<std::unique_ptr<gpu::Buffer>> buffers;
            std::vector<uint8_t> host(bytes);
            std::vector<dtrain_request_t *> requests(6);
            for (int i = 0; i < 6; i += 2) { // a slow one, and one whose data are there
                buffers.push_back(std::make_unique<gpu::Buffer>(bytes));
                stream.fill(*buffers.back(), static_cast<unsigned char>(i));
                OK(dtrain_send(comm, buffers.back()->address(), bytes, DTRAIN_U8, 1, 7, &params,
                               &requests[size_t(i)]));
                std::fill(host.begin(), host.end(), static_cast<uint8_t>(i + 1));
                OK(dtrain_send(comm, host.data(), bytes, DTRAIN_U8, 1, 7, nullptr, nullptr));
            }
            for (dtrain_request_t *request : requests) {
                if (request != nullptr) OK(dtrain_request_wait(request, -1));
                dtrain_request_free(request);
            }
            // A message that is shorter than its buffer.
            gpu::Buffer received(bytes);
            stream.fill(received, 5);
            for (size_t size : {size_t{10}, bytes}) {
                dtrain_request_t *request = nullptr;
                OK(dtrain_recv(comm, received.address(), bytes, DTRAIN_U8, 1, 8, &params,
                               &request));
                OK(dtrain_request_wait(request, -1));
                dtrain_request_free(request);
                const std::vector<uint8_t> got = received.values<uint8_t>();
                for (size_t i = 0; i < bytes; i++) REQUIRE(got[i] == (i < size ? 77 : 5));
            }
        });
}

// Calls return while the GPU does nothing at all, and their time does not count yet.
void host_is_not_blocked(void **) {
    gpu::needs_fake();
    ranks::run(2, over_shm, [&](int rank, dtrain_comm_t *comm) {
        Stream stream;
        dtrain_op_params_t params = on(stream);
        params.timeout_ns = 5'000'000'000;
        gpu::Buffer buffer(1000);
        dtrain_comm_t *other = nullptr;
        OK(dtrain_comm_duplicate(comm, &other));
        if (rank == 0) stall(1);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        stream.fill(buffer, 1);
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), 1000, DTRAIN_U8, DTRAIN_SUM,
                            &params, &request));
        REQUIRE(dtrain_request_wait(request, 5'500'000'000) == DTRAIN_IN_PROGRESS);
        OK(dtrain_barrier(other, nullptr, nullptr));
        if (rank == 0) stall(0);
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        for (uint8_t byte : buffer.values<uint8_t>()) REQUIRE(byte == 2);
        OK(dtrain_comm_destroy(other));
    });
}

void a_late_rank_is_named(void **) {
    ranks::run(2, over_shm, [&](int rank, dtrain_comm_t *comm) {
        if (rank == 1) { // it never makes the call
            while (dtrain_comm_status(comm) == DTRAIN_OK) processes::nap();
            return;
        }
        Stream stream;
        dtrain_op_params_t params = on(stream);
        params.timeout_ns = 100'000'000;
        gpu::Buffer buffer(1000), after(1000);
        stream.fill(buffer, 1);
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), 1000, DTRAIN_U8, DTRAIN_SUM,
                            &params, &request));
        stream.fill(after, 9);
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_request_wait(request, -1));
        expect_text("rank 1");
        dtrain_request_free(request);
        stream.synchronize(); // it was let go
        for (uint8_t byte : after.values<uint8_t>()) REQUIRE(byte == 9);
    });
}

void dead_rank_releases_streams(void **) {
    processes::Job job;
    job.start(3, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(over_shm);
        dtrain_comm_t *comm = processes::join(job, context, rank, 3);
        constexpr size_t bytes = 300'000;
        {
            Stream stream;
            const dtrain_op_params_t params = on(stream);
            gpu::Buffer buffer(bytes), after(bytes);
            dtrain_status_t status = DTRAIN_OK;
            while (status == DTRAIN_OK) {
                stream.fill(buffer, 1);
                dtrain_request_t *request = nullptr;
                status = dtrain_allreduce(comm, buffer.address(), buffer.address(), bytes,
                                          DTRAIN_U8, DTRAIN_SUM, &params, &request);
                stream.fill(after, 7);
                stream.synchronize();
                if (request != nullptr) status = dtrain_request_wait(request, -1);
                dtrain_request_free(request);
                job.seen(rank).rounds++;
            }
            processes::note_failure(job.seen(rank), status);
            for (uint8_t byte : after.values<uint8_t>()) REQUIRE(byte == 7);
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(3, 5);
    job.kill_now(1);
    job.expect_good_ends();
    for (int rank : {0, 2}) {
        REQUIRE(job.seen(rank).status == DTRAIN_ERR_PEER);
        REQUIRE(std::strstr(job.seen(rank).text, "rank 1") != nullptr);
    }
}

void what_is_refused(void **) {
    gpu::needs_two();
    ranks::run_with_contexts(1, over_shm, [&](int, dtrain_context_t *, dtrain_comm_t *comm) {
        Stream stream, other(1);
        gpu::Buffer buffer(100), elsewhere(100, 1);
        std::vector<uint8_t> host(100);
        dtrain_op_params_t params = on(stream);
        dtrain_request_t *request = nullptr;
        const auto sum = [&](void *from, void *to, dtrain_request_t **request_p) {
            return dtrain_allreduce(comm, from, to, 100, DTRAIN_U8, DTRAIN_SUM, &params, request_p);
        };
        FAILS(DTRAIN_ERR_INVALID, sum(buffer.address(), buffer.address(), nullptr));
        expect_text("needs a request");
        FAILS(DTRAIN_ERR_UNSUPPORTED, sum(host.data(), host.data(), &request));
        expect_text("with a buffer on an accelerator");
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_barrier(comm, &params, &request));
        expect_text("with a buffer on an accelerator");
        FAILS(DTRAIN_ERR_UNSUPPORTED, sum(buffer.address(), elsewhere.address(), &request));
        expect_text("cuda0 and cuda1");
        params.stream = other.get();
        FAILS(DTRAIN_ERR_INVALID, sum(buffer.address(), buffer.address(), &request));
        expect_text("does not belong to the primary context of cuda0");
        params.stream = stream.get();
        params.prescale = 2;
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_allreduce(comm, host.data(), buffer.address(), 25,
                                                       DTRAIN_F32, DTRAIN_SUM, &params, &request));
        expect_text("a prescale needs a send buffer of the host at once");
        FAILS(DTRAIN_ERR_UNSUPPORTED, sum(buffer.address(), buffer.address(), &request));
        expect_text("only for floating-point dtypes");
        params.prescale = 0;
        params.stream_type = 9;
        FAILS(DTRAIN_ERR_UNSUPPORTED, sum(buffer.address(), buffer.address(), &request));
        expect_text("unknown stream_type 9");
        params.stream_type = DTRAIN_STREAM_CUDA;
        dtrain_gradients_t *queue = nullptr;
        OK(dtrain_gradients_create(comm, nullptr, &queue));
        FAILS(DTRAIN_ERR_UNSUPPORTED,
              dtrain_gradients_submit(queue, "x", buffer.address(), buffer.address(), 100,
                                      DTRAIN_U8, DTRAIN_SUM, &params, &request));
        expect_text("only collectives and messages");
        OK(dtrain_gradients_destroy(queue));
        {
            const gpu::Current current(0);
            gpu::call<dtrain::cuda::Stream, int>("cuStreamBeginCapture_v2", stream.get(), 0);
        }
        FAILS(DTRAIN_ERR_STATE, sum(buffer.address(), buffer.address(), &request));
        expect_text("captured");
        {
            const gpu::Current current(0);
            void *graph = nullptr;
            gpu::call<dtrain::cuda::Stream, void **>("cuStreamEndCapture", stream.get(), &graph);
        }
        OK(sum(buffer.address(), buffer.address(), &request));
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        // The device's default streams.
        for (const uintptr_t special : {0, 1, 2}) {
            params.stream = reinterpret_cast<void *>(special);
            OK(sum(buffer.address(), buffer.address(), &request));
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        }
    });
}

// Each of the driver's calls fails once: the call says so, and the stream goes on.
void driver_calls_fail(void **) {
    gpu::needs_fake();
    ranks::run(1, over_shm, [&](int, dtrain_comm_t *comm) {
        Stream stream;
        const dtrain_op_params_t params = on(stream);
        gpu::Buffer buffer(100), after(100);
        dtrain_request_t *request = nullptr;
        const auto sum = [&] {
            return dtrain_allreduce(comm, buffer.address(), buffer.address(), 100, DTRAIN_U8,
                                    DTRAIN_SUM, &params, &request);
        };
        OK(sum());
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        for (const char *wish : {"cuStreamGetCtx", "cuStreamIsCapturing", "cuMemcpyAsync:1",
                                 "cuStreamWriteValue32_v2:1", "cuStreamWaitValue32_v2:1",
                                 "cuMemcpyAsync:2", "cuStreamWriteValue32_v2:2"}) {
            gpu::call_void<const char *>("fakecuda_fail", wish);
            FAILS(DTRAIN_ERR_DEVICE, sum());
            expect_text("cuda0: stream");
            stream.fill(after, 3);
            stream.synchronize();
        }
        gpu::call_void<const char *>("fakecuda_fail", "");
        OK(sum());
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(dead_rank_releases_streams), // before this process starts the driver
        cmocka_unit_test(collectives_in_order),       cmocka_unit_test(averages_in_order),
        cmocka_unit_test(messages_in_order),          cmocka_unit_test(host_is_not_blocked),
        cmocka_unit_test(a_late_rank_is_named),       cmocka_unit_test(what_is_refused),
        cmocka_unit_test(driver_calls_fail),
    };
    return cmocka_run_group_tests_name("streams", tests, nullptr, nullptr);
}
