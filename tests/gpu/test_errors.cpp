// What is wrong with a buffer or an accelerator is an error that says so, and hangs nobody.
// SPDX-License-Identifier: Apache-2.0
#include "contract/gpu.h"
#include "contract/processes.h"
#include "gpu/in_child.h"

namespace {

using gpu::in_child;

const ranks::Options with_gpus = {{"accelerators", "cuda"}};

void expect_text(const char *part) {
    const std::string text = ranks::last_error();
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text.c_str(), part);
    REQUIRE(text.find(part) != std::string::npos);
}

dtrain_status_t sum(dtrain_comm_t *comm, void *buffer, uint64_t count,
                    const dtrain_op_params_t *params = nullptr) {
    return dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, params, nullptr);
}

void fail_at(const char *wish) { gpu::call_void<const char *>("fakecuda_fail", wish); }
void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }

void alone(const std::function<void(dtrain_comm_t *)> &body) {
    in_child([&] { ranks::run(1, with_gpus, [&](int, dtrain_comm_t *comm) { body(comm); }); });
}

void memory_that_is_not_there(void **) {
    alone([](dtrain_comm_t *comm) {
        gpu::Buffer buffer(400);
        OK(sum(comm, buffer.address(), 100));
        FAILS(DTRAIN_ERR_INVALID, sum(comm, buffer.address(), 101));
        expect_text("allreduce: the send buffer");
        expect_text("outside of the allocation of 400 bytes");
        FAILS(DTRAIN_ERR_INVALID, sum(comm, buffer.address() + 4, 100));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_send(comm, buffer.address() + 396, 2, DTRAIN_F32, 0, 0, nullptr, nullptr));
        expect_text("send: ");
        uint8_t *freed = buffer.address();
        buffer.free();
        FAILS(DTRAIN_ERR_INVALID, sum(comm, freed, 100));
        expect_text("freed");
        float host = 4;
        OK(sum(comm, &host, 1)); // and all goes on
        REQUIRE(host == 4);
    });
}

void copies_fail(void **) {
    gpu::needs_fake();
    alone([](dtrain_comm_t *comm) {
        gpu::Buffer buffer = gpu::copy_of(std::vector<float>(1000, 3));
        OK(sum(comm, buffer.address(), 1000));
        fail_at("cuMemcpyAsync:1"); // of the input
        FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address(), 1000));
        expect_text("cuda0: copying the input to the host");
        expect_text("CUDA_ERROR_UNKNOWN");
        fail_at("cuMemcpyAsync:2"); // of the result
        FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address(), 1000));
        expect_text("cuda0: copying the result from the host");
        fail_at("cuMemcpyAsync:2");
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), 1000, DTRAIN_F32, DTRAIN_SUM,
                            nullptr, &request));
        FAILS(DTRAIN_ERR_DEVICE, dtrain_request_wait(request, -1));
        expect_text("copying the result");
        dtrain_request_free(request);
        fail_at("cuStreamWriteValue32_v2:1"); // nobody learns when the copy is done
        FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address(), 1000));
        OK(sum(comm, buffer.address(), 1000));
        REQUIRE(buffer.values<float>() == std::vector<float>(1000, 3));
    });
}

void no_memory(void **) {
    gpu::needs_fake();
    alone([](dtrain_comm_t *comm) {
        gpu::Buffer buffer(1 << 20);
        fail_at("cuMemHostRegister_v2:1:2"); // while the GPU is opened
        FAILS(DTRAIN_ERR_NO_MEMORY, sum(comm, buffer.address(), 1000));
        expect_text("CUDA_ERROR_OUT_OF_MEMORY");
        fail_at("cuStreamCreateWithPriority:2:2");
        FAILS(DTRAIN_ERR_NO_MEMORY, sum(comm, buffer.address(), 1000));
        fail_at("");
        OK(sum(comm, buffer.address(), 1000));
        fail_at("cuMemHostRegister_v2:1:2"); // of a larger block
        FAILS(DTRAIN_ERR_NO_MEMORY, sum(comm, buffer.address(), 1 << 18));
        expect_text("pinning 1048576 bytes");
        OK(sum(comm, buffer.address(), 1 << 18));
    });
}

// A kernel of the program's has faulted: until the process ends the driver refuses everything.
void sticky_fault(void **) {
    gpu::needs_fake();
    alone([](dtrain_comm_t *comm) {
        gpu::Buffer buffer(400);
        OK(sum(comm, buffer.address(), 100));
        gpu::call_void<int>("fakecuda_fault", 700);
        FAILS(DTRAIN_ERR_DEVICE, sum(comm, buffer.address(), 100));
        expect_text("CUDA_ERROR_ILLEGAL_ADDRESS");
        float host = 4;
        OK(sum(comm, &host, 1)); // host memory does not need it
    });
    alone([](dtrain_comm_t *comm) { // while results are on their way
        gpu::Buffer buffer(400);
        OK(sum(comm, buffer.address(), 100));
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(comm, buffer.address(), 100, DTRAIN_F32, 0, 0, nullptr, &request));
        stall(1);
        const std::vector<float> values(100, 1);
        OK(dtrain_send(comm, values.data(), 100, DTRAIN_F32, 0, 0, nullptr, nullptr));
        REQUIRE(dtrain_request_wait(request, 50'000'000) == DTRAIN_IN_PROGRESS);
        gpu::call_void<int>("fakecuda_fault", 700);
        FAILS(DTRAIN_ERR_DEVICE, dtrain_request_wait(request, -1));
        expect_text("CUDA_ERROR_ILLEGAL_ADDRESS");
        dtrain_request_free(request);
        stall(0);
    });
}

// A device that does not come to the copies: the call's time limit holds.
void slow_device(void **) {
    gpu::needs_fake();
    alone([](dtrain_comm_t *comm) {
        gpu::Buffer buffer(400);
        OK(sum(comm, buffer.address(), 100));
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = 50'000'000;
        stall(1);
        FAILS(DTRAIN_ERR_TIMEOUT, sum(comm, buffer.address(), 100, &params));
        expect_text("copying the input to the host: timed out");
        stall(0);
        OK(sum(comm, buffer.address(), 100));
        // The result of a receive, which has arrived but does not land.
        dtrain_request_t *request = nullptr;
        OK(dtrain_recv(comm, buffer.address(), 100, DTRAIN_F32, 0, 0, &params, &request));
        stall(1);
        const std::vector<float> values(100, 1);
        OK(dtrain_send(comm, values.data(), 100, DTRAIN_F32, 0, 0, nullptr, nullptr));
        FAILS(DTRAIN_ERR_TIMEOUT, dtrain_request_wait(request, -1));
        expect_text("has not finished copying");
        dtrain_request_free(request);
        stall(0);
        OK(sum(comm, buffer.address(), 100));
    });
}

void fork_child_only_destroys(void **) {
    in_child([] {
        ranks::run_with_contexts(1, with_gpus,
                                 [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
                                     gpu::Buffer buffer(400);
                                     OK(sum(comm, buffer.address(), 100));
                                     in_child([&] {
                                         FAILS(DTRAIN_ERR_STATE, sum(comm, buffer.address(), 100));
                                         OK(dtrain_comm_destroy(comm));
                                         OK(dtrain_context_destroy(context));
                                     });
                                     OK(sum(comm, buffer.address(), 100));
                                 });
    });
}

// A rank's GPU fails after it has made the call, before its input is copied: the others, who have
// no GPU, do not wait for it.
void input_that_never_comes(void **) {
    gpu::needs_fake();
    for (size_t count : {size_t{10}, size_t{300'000}}) {
        processes::Job job;
        job.start(2, [&](int rank) {
            dtrain_context_t *context =
                ranks::make_context(rank == 0 ? with_gpus : ranks::Options{});
            dtrain_comm_t *comm = processes::join(job, context, rank, 2);
            std::vector<float> host(count, 1);
            dtrain_status_t status = DTRAIN_OK;
            if (rank == 0) {
                gpu::Buffer buffer = gpu::copy_of(host);
                OK(sum(comm, buffer.address(), count)); // it is open
                stall(1);
                dtrain_request_t *request = nullptr;
                OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), count, DTRAIN_F32,
                                    DTRAIN_SUM, nullptr, &request));
                gpu::call_void<int>("fakecuda_fault", 700);
                status = dtrain_request_wait(request, -1);
                dtrain_request_free(request);
                stall(0);
            } else {
                OK(sum(comm, host.data(), count));
                status = sum(comm, host.data(), count);
            }
            processes::note_failure(job.seen(rank), status);
            // Both stay until both have seen it.
            while (job.seen(1 - rank).status == 0) processes::nap();
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        });
        job.expect_good_ends();
        REQUIRE(job.seen(0).status == DTRAIN_ERR_DEVICE);
        REQUIRE(std::strstr(job.seen(0).text, "CUDA_ERROR_ILLEGAL_ADDRESS") != nullptr);
        REQUIRE(job.seen(1).status < 0);
        REQUIRE(std::strstr(job.seen(1).text, "rank 0") != nullptr);
    }
}

// The others learn who is gone, and their GPUs go on.
void killed_rank(void **) {
    processes::Job job;
    constexpr int ranks_count = 3;
    job.start(ranks_count, [&](int rank) {
        dtrain_context_t *context = ranks::make_context(with_gpus);
        dtrain_comm_t *comm = processes::join(job, context, rank, ranks_count);
        constexpr size_t count = 300'000;
        gpu::Buffer buffer(count * sizeof(float), rank % 2);
        dtrain_status_t status = DTRAIN_OK;
        while (status == DTRAIN_OK) {
            buffer.write(std::vector<float>(count, 1).data());
            dtrain_request_t *request = nullptr;
            status = dtrain_allreduce(comm, buffer.address(), buffer.address(), count, DTRAIN_F32,
                                      DTRAIN_SUM, nullptr, &request);
            if (status == DTRAIN_OK) status = dtrain_request_wait(request, -1);
            if (request != nullptr) dtrain_request_free(request);
            job.seen(rank).rounds++;
        }
        processes::note_failure(job.seen(rank), status);
        dtrain_comm_t *rest = nullptr;
        OK(dtrain_comm_shrink(comm, &rest));
        buffer.write(std::vector<float>(count, 1).data());
        OK(sum(rest, buffer.address(), count));
        REQUIRE(buffer.values<float>() == std::vector<float>(count, 2));
        OK(dtrain_comm_destroy(rest));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.wait_for_rounds(ranks_count, 5);
    job.kill_now(1);
    job.expect_good_ends();
    for (int rank : {0, 2}) {
        REQUIRE(job.seen(rank).status == DTRAIN_ERR_PEER);
        REQUIRE(std::strstr(job.seen(rank).text, "rank 1") != nullptr);
    }
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(copies_fail),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(sticky_fault),
        cmocka_unit_test(slow_device),
        cmocka_unit_test(fork_child_only_destroys),
        cmocka_unit_test(input_that_never_comes),
        cmocka_unit_test(killed_rank),
    };
    return cmocka_run_group_tests_name("errors of GPUs", tests, nullptr, nullptr);
}
