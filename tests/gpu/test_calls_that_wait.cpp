// Calls of the driver that wait for streams, and hold up all others meanwhile, beside streams that
// wait for operations: those go on, or fail in time.
// SPDX-License-Identifier: Apache-2.0
#include "gpu/placed_case.h"

#include <atomic>
#include <thread>

namespace {

using gpu::large;
using gpu::run_processes;
using gpu::Shared;
using gpu::Stream;

constexpr int64_t late_us = 300'000; // rank 1: long enough for rank 0 to be in such a call

void come_late(int rank) {
    if (rank == 1) usleep(late_us);
}

// Rank 0 frees memory while its stream waits: an operation by copies needs no call from then on.
void copies_go_on(void **) {
    for (size_t count : {size_t{10}, size_t{200'000}})
        run_processes(2, [count](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
            gpu::Buffer unused(1 << 20);
            gpu::Buffer sum = gpu::copy_of(std::vector<float>(count, float(rank + 1)));
            Stream stream;
            const dtrain_op_params_t params = stream.params();
            come_late(rank);
            for (int round = 0; round < 3; round++) { // each waits for the one before
                dtrain_request_t *request = nullptr;
                OK(dtrain_allreduce(comm, sum.address(), sum.address(), count, DTRAIN_F32,
                                    DTRAIN_SUM, &params, &request));
                dtrain_request_free(request);
            }
            unused.free(); // returns when the stream has gone on
            stream.synchronize();
            REQUIRE(sum.values<float>() == std::vector<float>(count, 12));
        });
}

// So does a message, and the library pins and unpins memory for it.
void messages_go_on(void **) {
    run_processes(2, [](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
        constexpr size_t bytes = 900'000;
        gpu::Buffer unused(1 << 20);
        gpu::Buffer data = gpu::copy_of(std::vector<uint8_t>(bytes, uint8_t(rank)));
        Stream stream;
        const dtrain_op_params_t params = stream.params();
        come_late(rank);
        dtrain_request_t *request = nullptr;
        OK(rank == 0
               ? dtrain_recv(comm, data.address(), bytes, DTRAIN_U8, 1, 0, &params, &request)
               : dtrain_send(comm, data.address(), bytes, DTRAIN_U8, 0, 0, &params, &request));
        unused.free();
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        stream.synchronize();
        REQUIRE(data.values<uint8_t>() == std::vector<uint8_t>(bytes, 1));
    });
}

// Kernels of a dtype are not loaded while a stream waits: such operations copy.
void no_kernels_are_loaded(void **) {
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        const Shared floats(context, std::vector<float>(large, float(rank + 1))),
            longs(context, std::vector<int64_t>(large, rank + 5));
        Stream stream, second;
        const dtrain_op_params_t params = stream.params(), others = second.params();
        come_late(rank);
        dtrain_request_t *one = nullptr, *two = nullptr;
        OK(dtrain_allreduce(comm, floats.address(), floats.address(), large, DTRAIN_F32, DTRAIN_SUM,
                            &params, &one));
        OK(dtrain_allreduce(comm, longs.address(), longs.address(), large, DTRAIN_I64, DTRAIN_SUM,
                            &others, &two));
        OK(dtrain_request_wait(one, -1));
        OK(dtrain_request_wait(two, -1));
        dtrain_request_free(one);
        dtrain_request_free(two);
        REQUIRE(floats.values<float>() == std::vector<float>(large, 3));
        REQUIRE(longs.values<int64_t>() == std::vector<int64_t>(large, 11));
        const uint64_t copied = gpu::Counts::of(context).copied;
        if (rank == 0) REQUIRE(copied > 0);
        // With none that waits they are loaded.
        OK(dtrain_allreduce(comm, longs.address(), longs.address(), large, DTRAIN_I64, DTRAIN_SUM,
                            nullptr, nullptr));
        REQUIRE(longs.values<int64_t>() == std::vector<int64_t>(large, 22));
        REQUIRE(gpu::Counts::of(context).copied == copied);
    });
}

// Rank 0 has to submit the kernel for all, which it cannot while the program waits for its stream.
void a_kernel_fails_in_time(void **) {
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        gpu::Buffer unused(1 << 20), after(1000);
        {
            const Shared sum(context, std::vector<float>(large, 1));
            Stream stream;
            const dtrain_op_params_t params = stream.params();
            come_late(rank);
            dtrain_request_t *request = nullptr;
            OK(dtrain_allreduce(comm, sum.address(), sum.address(), large, DTRAIN_F32, DTRAIN_SUM,
                                &params, &request));
            stream.fill(after, 7);
            if (rank == 0) unused.free();
            FAILS(DTRAIN_ERR_DEVICE, dtrain_request_wait(request, -1));
            const std::string text = ranks::last_error();
            if (text.find("has taken no work for 10 s") == std::string::npos)
                std::fprintf(stderr, "rank %d: \"%s\"\n", rank, text.c_str());
            REQUIRE(text.find("has taken no work for 10 s") != std::string::npos);
            REQUIRE(text.find("free and load before it") != std::string::npos);
            dtrain_request_free(request);
            stream.synchronize(); // it was let go
        }
        REQUIRE(after.values<uint8_t>() == std::vector<uint8_t>(1000, 7));
    });
}

// Memory of the library's is freed later, so rank 0 can submit the kernel.
void the_library_frees_later(void **) {
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        const Shared sum(context, std::vector<float>(large, 1));
        auto unused = std::make_unique<Shared>(context, size_t{1} << 20);
        Stream stream;
        const dtrain_op_params_t params = stream.params();
        come_late(rank);
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, sum.address(), sum.address(), large, DTRAIN_F32, DTRAIN_SUM,
                            &params, &request));
        if (rank == 0) unused.reset();
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        stream.synchronize();
        REQUIRE(sum.values<float>() == std::vector<float>(large, 2));
    });
}

// How much memory the driver has allocated, imported and pinned.
int count_memory() { return gpu::function<int()>("fakecuda_count_memory")(); }

dtrain_table_t *make_table(dtrain_comm_t *comm, const char *name) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = 1000;
    params.rule = DTRAIN_RULE_MOMENTUM;
    params.memory = DTRAIN_MEM_CUDA;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

// Rank 0 serves a table from the GPU, whose driver takes no calls meanwhile: the operation for
// which the stream waits goes on, and then the table does.
void tables_go_on(void **) {
    run_processes(2, [](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
        dtrain_table_t *table = make_table(comm, "t");
        gpu::Buffer unused(1 << 20);
        gpu::Buffer sum = gpu::copy_of(std::vector<float>(10, float(rank + 1)));
        Stream stream;
        const dtrain_op_params_t params = stream.params();
        std::vector<float> g(1000, 1), got(1000);
        dtrain_request_t *requests[3] = {};
        come_late(rank);
        if (rank == 1) {
            OK(dtrain_table_push(table, 0, 1000, g.data(), nullptr, &requests[0]));
            OK(dtrain_table_pull(table, 0, 1000, got.data(), nullptr, &requests[1]));
            usleep(late_us / 3); // they have arrived
        }
        OK(dtrain_allreduce(comm, sum.address(), sum.address(), 10, DTRAIN_F32, DTRAIN_SUM, &params,
                            &requests[2]));
        if (rank == 0) unused.free();
        for (dtrain_request_t *request : requests) {
            if (request != nullptr) OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        }
        stream.synchronize();
        REQUIRE(sum.values<float>() == std::vector<float>(10, 3));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_pull(table, 0, 1000, got.data(), nullptr, nullptr));
        for (const float x : got) REQUIRE(x == got[0] && x != 0);
        OK(dtrain_table_destroy(table));
    });
}

// A job of its own with a table on the GPU, which its only rank serves. It ends once it may.
class OtherContext {
  public:
    OtherContext() : thread_([this] { run(); }) {
        while (!made_) processes::nap();
    }
    void end() {
        may_end_ = true;
        thread_.join();
    }

  private:
    void run() {
        ranks::run(1, gpu::with_gpus, [this](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = make_table(comm, "other");
            OK(dtrain_allreduce(comm, values_.address(), values_.address(), 1000, DTRAIN_F32,
                                DTRAIN_SUM, nullptr, nullptr));
            made_ = true;
            while (!may_end_) processes::nap();
            OK(dtrain_table_destroy(table));
        });
    }
    gpu::Buffer values_{4000}; // freed later than the context, by the program
    std::atomic<bool> made_{false}, may_end_{false};
    std::thread thread_;
};

// So are tables, and contexts: they wait for no stream, and nothing is kept.
void others_end_meanwhile(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        const Shared sum(context, std::vector<float>(large, 1));
        Stream stream;
        const dtrain_op_params_t params = stream.params();
        const auto start = [&] {
            dtrain_request_t *request = nullptr;
            OK(dtrain_allreduce(comm, sum.address(), sum.address(), large, DTRAIN_F32, DTRAIN_SUM,
                                &params, &request));
            return request;
        };
        const auto end = [](dtrain_request_t *request) {
            OK(dtrain_request_wait(request, -1));
            dtrain_request_free(request);
        };
        for (int i = 0; i < 2; i++) end(start()); // what this needs stays
        const int before = count_memory();
        OtherContext other;
        REQUIRE(count_memory() > before + 1);
        if (rank == 1) usleep(2 * late_us);
        dtrain_request_t *request = start();
        other.end();
        end(request);
        stream.synchronize();
        REQUIRE(sum.values<float>() == std::vector<float>(large, 8));
        while (count_memory() > before + 1) processes::nap(); // 1: of the program
    });
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_on),
        cmocka_unit_test(messages_go_on),
        cmocka_unit_test(no_kernels_are_loaded),
        cmocka_unit_test(a_kernel_fails_in_time),
        cmocka_unit_test(the_library_frees_later),
        cmocka_unit_test(tables_go_on),
        cmocka_unit_test(others_end_meanwhile),
    };
    return cmocka_run_group_tests_name("calls that wait for streams", tests, nullptr, nullptr);
}
