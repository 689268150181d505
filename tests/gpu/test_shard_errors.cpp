// What a GPU cannot hold is refused by name, and one that fails is an error of its tables: nobody
// waits for it.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"
#include "contract/elastic.h"
#include "gpu/in_child.h"
#include "gpu/twins.h"

namespace {

using gpu::in_child;
using gpu::table_params;
using gpu::Twins;
using gpu::with_device;

void expect_text(const char *part) {
    const std::string text = ranks::last_error();
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text.c_str(), part);
    REQUIRE(text.find(part) != std::string::npos);
}

void fail_at(const char *wish) { gpu::call_void<const char *>("fakecuda_fail", wish); }
void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }

dtrain_table_params_t on_device(uint32_t rule = DTRAIN_RULE_ADD, uint64_t length = 1000) {
    dtrain_table_params_t params = table_params(rule, DTRAIN_F32, length);
    params.memory = DTRAIN_MEM_CUDA;
    return params;
}

void refused(dtrain_comm_t *comm, const dtrain_table_params_t &params, dtrain_status_t status,
             const char *text) {
    dtrain_table_t *table = nullptr;
    FAILS(status, dtrain_table_create(comm, "t", &params, &table));
    expect_text(text);
}

void what_gpus_cannot_hold(void **) {
    ranks::run(2, 1, with_device, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params = on_device();
        params.length = 0;
        params.dim = 4;
        refused(comm, params, DTRAIN_ERR_UNSUPPORTED, "sparse tables are in host memory");
        params = on_device(DTRAIN_RULE_FUNCTION);
        params.function = "f";
        refused(comm, params, DTRAIN_ERR_UNSUPPORTED, "functions of users");
        refused(comm, on_device(DTRAIN_RULE_DC_SGD), DTRAIN_ERR_UNSUPPORTED, "DC_SGD");
        params = on_device();
        params.storage_dtype = DTRAIN_I8;
        refused(comm, params, DTRAIN_ERR_UNSUPPORTED, "I8 is stored in host memory");
        for (const uint32_t memory : {uint32_t(DTRAIN_MEM_DMABUF), 77u}) {
            params = on_device();
            params.memory = memory;
            refused(comm, params, DTRAIN_ERR_INVALID, "memory is not valid");
        }
        params = on_device();
        params.reserved2 = 1;
        refused(comm, params, DTRAIN_ERR_INVALID, "reserved2");
        const dtrain_segment_t segment = [] {
            dtrain_segment_t all;
            DTRAIN_INIT(&all);
            all.count = 10;
            all.rule = DTRAIN_RULE_ADD;
            return all;
        }();
        params = on_device();
        params.dtype = DTRAIN_I32;
        params.rule = 0;
        params.row_length = 10;
        params.segments = &segment;
        params.segment_count = 1;
        refused(comm, params, DTRAIN_ERR_UNSUPPORTED, "cuda0 cannot hold the table");
        dtrain_table_t *table = nullptr; // and all goes on
        params = on_device();
        OK(dtrain_table_create(comm, "t", &params, &table));
        OK(dtrain_table_destroy(table));
    });
}

// One of two servers has none: all workers hear of it, and from whom.
void a_server_without_gpu(void **) {
    const auto options_of = [](int process) -> ranks::Options {
        if (process == 3) return {{"accelerators", "none"}};
        return with_device;
    };
    ranks::run_each(2, 2, options_of, ranks::Body([](int, dtrain_context_t *, dtrain_comm_t *comm) {
                        refused(comm, on_device(), DTRAIN_ERR_UNSUPPORTED, "server 1");
                        expect_text("accelerators is \"none\"");
                        dtrain_table_params_t params =
                            table_params(DTRAIN_RULE_ADD, DTRAIN_F32, 10);
                        dtrain_table_t *table = nullptr;
                        OK(dtrain_table_create(comm, "t", &params, &table));
                        OK(dtrain_table_destroy(table));
                    }));
    ranks::Options seventh = with_device;
    seventh.emplace_back("ps.device", "7");
    ranks::run(1, 1, seventh, [](int, dtrain_comm_t *comm) {
        refused(comm, on_device(), DTRAIN_ERR_INVALID, "ps.device is 7");
        expect_text("there is no device 7");
    });
    gpu::needs_two();
    ranks::Options second = with_device;
    second.emplace_back("ps.device", "1");
    ranks::run(1, 1, second, [](int, dtrain_comm_t *comm) {
        dtrain_table_params_t params = on_device();
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        OK(dtrain_table_destroy(table));
    });
}

void no_memory(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(1, 1, with_device, [](int, dtrain_comm_t *comm) {
            for (const char *call : {"cuMemAlloc_v2:1:2", "cuMemAlloc_v2:2:2"}) {
                fail_at(call);
                refused(comm, on_device(DTRAIN_RULE_ADD, 1 << 20), DTRAIN_ERR_NO_MEMORY,
                        "CUDA_ERROR_OUT_OF_MEMORY");
            }
            fail_at("");
            refused(comm, on_device(DTRAIN_RULE_ADD, uint64_t{3} << 30), DTRAIN_ERR_NO_MEMORY,
                    "ask for less");
            dtrain_table_params_t params = on_device();
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "t", &params, &table));
            OK(dtrain_table_destroy(table));
        });
    });
}

void all_fail(dtrain_table_t *table) {
    std::vector<float> values(1000, 1);
    FAILS(DTRAIN_ERR_DEVICE, dtrain_table_push(table, 0, 1000, values.data(), nullptr, nullptr));
    expect_text("server 0: the accelerator that holds the table's values there has failed");
    expect_text("so they are lost");
    REQUIRE(ranks::last_error().find("applied") == std::string::npos);
    FAILS(DTRAIN_ERR_DEVICE, dtrain_table_pull(table, 0, 1000, values.data(), nullptr, nullptr));
    FAILS(DTRAIN_ERR_DEVICE, dtrain_table_set(table, 0, 1000, values.data(), nullptr, nullptr));
    FAILS(DTRAIN_ERR_DEVICE,
          dtrain_table_push_pull(table, 0, 1000, values.data(), values.data(), nullptr, nullptr));
    FAILS(DTRAIN_ERR_DEVICE,
          dtrain_table_pull_state(table, 0, 0, 1000, values.data(), nullptr, nullptr));
    FAILS(DTRAIN_ERR_DEVICE,
          dtrain_table_set_state(table, 0, 0, 1000, values.data(), nullptr, nullptr));
    FAILS(DTRAIN_ERR_DEVICE, dtrain_checkpoint_save(&table, 1, 2, nullptr, nullptr));
    expect_text("CUDA_ERROR_UNKNOWN");
}

// What another server has done with its part of a push is told, and nothing of the one that failed.
void fails_on_one_server(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(1, 2, with_device, [](int, dtrain_comm_t *comm) {
            const dtrain_table_params_t params = on_device();
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "t", &params, &table));
            const std::vector<float> g(1000, 1);
            fail_at("cuMemcpyAsync:1");
            FAILS(DTRAIN_ERR_DEVICE, dtrain_table_push(table, 0, 1, g.data(), nullptr, nullptr));
            fail_at("");
            FAILS(DTRAIN_ERR_DEVICE, dtrain_table_push(table, 0, 1000, g.data(), nullptr, nullptr));
            expect_text("so they are lost");
            expect_text("; its part in full on server 1");
            REQUIRE(ranks::last_error().find("not all of it") == std::string::npos);
            OK(dtrain_table_destroy(table));
        });
    });
}

// Each of the kernels of an update fails once: the values are lost until they are restored.
void fails_amid_a_rule(void **) {
    gpu::needs_fake();
    in_child([] {
        checkpoints::Folder folder;
        ranks::Options options = folder.options();
        options.push_back(with_device[0]);
        ranks::run(1, 1, options, [](int, dtrain_comm_t *comm) {
            dtrain_table_params_t params = table_params(DTRAIN_RULE_LAMB, DTRAIN_F32, 1000);
            params.row_length = 100;
            params.clip_norm = 1;
            const Twins twins(comm, params);
            dtrain_table_t *table = twins.on_device();
            const std::vector<float> g(1000, 1);
            twins.push(0, 1000, g.data());
            OK(dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr));
            for (const char *call :
                 {"cuLaunchKernel:1", "cuLaunchKernel:2", "cuLaunchKernel:3", "cuLaunchKernel:4",
                  "cuLaunchKernel:5", "cuMemcpyAsync:1", "cuStreamWriteValue32_v2:1"}) {
                fail_at(call);
                FAILS(DTRAIN_ERR_DEVICE,
                      dtrain_table_push(table, 0, 1000, g.data(), nullptr, nullptr));
                fail_at("");
                all_fail(table);
                OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
                twins.same_values();
                twins.same_state();
            }
            fail_at("cuMemcpyAsync:2"); // while it is saved: of its state
            FAILS(DTRAIN_ERR_DEVICE, dtrain_checkpoint_save(&table, 1, 2, nullptr, nullptr));
            expect_text("could not be copied for the checkpoint");
            fail_at("");
            all_fail(table);
            fail_at("cuMemcpyAsync:1"); // what is restored does not get there
            FAILS(DTRAIN_ERR_DEVICE, dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
            fail_at("");
            all_fail(table);
            OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
            twins.push(0, 1000, g.data());
            twins.same_values();
        });
    });
}

// A clock's update fails: those who wait for it hear of that.
void fails_at_a_clock(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(2, 1, with_device, [](int rank, dtrain_comm_t *comm) {
            dtrain_table_params_t params = on_device(DTRAIN_RULE_ADAM);
            params.consistency = DTRAIN_BSP;
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "t", &params, &table));
            std::vector<float> values(1000, 1);
            if (rank == 0) fail_at("cuLaunchKernel:1");
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_push(table, 0, 1000, values.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
            FAILS(DTRAIN_ERR_DEVICE,
                  dtrain_table_pull(table, 0, 1000, values.data(), nullptr, nullptr));
            expect_text("has failed");
            FAILS(DTRAIN_ERR_DEVICE,
                  dtrain_table_push(table, 0, 1000, values.data(), nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
    });
}

// From host memory to a GPU and back, with a rank less: whether the parts stay on their servers, or
// are handed over.
void memory_changes_with_generations(void **) {
    elastic::Job job;
    job.start(2, [&](int rank) {
        ranks::Options options = elastic::elastic_shm;
        options.push_back(with_device[0]);
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = elastic::join_as(context, job.rendezvous(), rank, 2);
        dtrain_table_params_t params = table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 1000);
        params.learning_rate = params.momentum = 0.5;
        const std::vector<float> g(1000, 1);
        std::vector<float> w(1000);
        const float expected[] = {-0.5f, -1.25f, -2.125f, -3.0625f}; // v = 1, 1.5, 1.75, 1.875
        for (int generation = 0; generation < 4; generation++) {
            params.memory = generation % 2 == 0 ? DTRAIN_MEM_HOST : DTRAIN_MEM_CUDA;
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "w", &params, &table));
            if (dtrain_comm_rank(comm) == 0)
                OK(dtrain_table_push(table, 0, 1000, g.data(), nullptr, nullptr));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, 1000, w.data(), nullptr, nullptr));
            for (const float x : w) REQUIRE(x == expected[generation]);
            OK(dtrain_barrier(comm, nullptr, nullptr));
            const bool leaves = generation == 1 && rank == 1;
            dtrain_comm_t *next = nullptr;
            const dtrain_reform_params_t sizes = elastic::sizes(1, 0, leaves);
            OK(dtrain_comm_reform(comm, &sizes, &next));
            OK(dtrain_table_destroy(table));
            OK(dtrain_comm_destroy(comm));
            comm = next;
            if (leaves) break;
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// A kernel of the program's has faulted: the driver refuses everything until the process ends.
void sticky_fault(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(1, 0, with_device, [](int, dtrain_comm_t *comm) {
            const Twins twins(comm, table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 1000));
            std::vector<float> values(1000, 1);
            twins.push(0, 1000, values.data());
            gpu::call_void<int>("fakecuda_fault", 700);
            FAILS(DTRAIN_ERR_DEVICE,
                  dtrain_table_pull(twins.on_device(), 0, 1000, values.data(), nullptr, nullptr));
            FAILS(DTRAIN_ERR_DEVICE,
                  dtrain_table_push(twins.on_device(), 0, 1000, values.data(), nullptr, nullptr));
            OK(dtrain_table_pull(twins.on_host(), 0, 1000, values.data(), nullptr, nullptr));
            refused(comm, on_device(), DTRAIN_ERR_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS");
        });
    });
}

// A GPU that does nothing for a while: calls keep their time limits, and it goes on.
void slow_device(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(1, 1, with_device, [](int, dtrain_comm_t *comm) {
            const Twins twins(comm, table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 1000));
            std::vector<float> values(1000, 1);
            stall(1);
            twins.push(0, 1000, values.data()); // is accepted
            dtrain_op_params_t params;
            DTRAIN_INIT(&params);
            params.timeout_ns = 50'000'000;
            FAILS(DTRAIN_ERR_TIMEOUT,
                  dtrain_table_pull(twins.on_device(), 0, 1000, values.data(), &params, nullptr));
            stall(0);
            twins.push(0, 1000, values.data());
            twins.same_values();
            twins.same_state();
        });
    });
}

// A GPU that does nothing any more has failed after 10 s.
void dead_device(void **) {
    gpu::needs_fake();
    in_child([] {
        ranks::run(1, 1, with_device, [](int, dtrain_comm_t *comm) {
            dtrain_table_params_t params = on_device();
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "t", &params, &table));
            std::vector<float> values(1000, 1);
            stall(1);
            FAILS(DTRAIN_ERR_DEVICE,
                  dtrain_table_pull(table, 0, 1000, values.data(), nullptr, nullptr));
            stall(0);
            OK(dtrain_table_destroy(table));
        });
    });
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        cmocka_unit_test(memory_changes_with_generations),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(fails_on_one_server),
        cmocka_unit_test(fails_amid_a_rule),
        cmocka_unit_test(fails_at_a_clock),
        cmocka_unit_test(sticky_fault),
        cmocka_unit_test(slow_device),
        cmocka_unit_test(dead_device),
        cmocka_unit_test(what_gpus_cannot_hold),
        cmocka_unit_test(a_server_without_gpu),
    };
    return cmocka_run_group_tests_name("errors of tables in a GPU's memory", tests, nullptr,
                                       nullptr);
}
