// Ranks on one GPU: their buffers are reduced where they lie if they are shared memory, with the
// bits of the host; otherwise they are copied. No rank is left waiting.
// SPDX-License-Identifier: Apache-2.0
#include "gpu/in_child.h"
#include "gpu/placed_case.h"

#include <algorithm>

namespace {

using gpu::large;
using gpu::run_processes;
using gpu::Shared;
using gpu::with_gpus;
using Kind = gpu::Shared::Kind;

void expect_text(const char *text, const char *part) {
    if (std::strstr(text, part) == nullptr)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text, part);
    REQUIRE(std::strstr(text, part) != nullptr);
}
void expect_text(const char *part) { expect_text(ranks::last_error().c_str(), part); }
void fail_at(const char *wish) { gpu::call_void<const char *>("fakecuda_fail", wish); }
void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }

// Any bits, but of floating dtypes no NaN, so that sums of different orders would differ.
std::vector<uint8_t> input(size_t count, uint32_t dtype, int rank, int salt = 0) {
    std::vector<uint8_t> bytes(count * dtrain_dtype_size(dtype));
    uint64_t state = uint64_t(rank) * 977 + uint64_t(salt) * 131 + dtype;
    for (uint8_t &byte : bytes) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = uint8_t(state >> 56);
    }
    const size_t size = dtrain_dtype_size(dtype);
    if (dtype == DTRAIN_F32 || dtype == DTRAIN_F64 || dtype == DTRAIN_F16 || dtype == DTRAIN_BF16)
        for (size_t i = size - 1; i < bytes.size(); i += size) bytes[i] &= 0xBB; // small exponents
    return bytes;
}

struct Case {
    uint32_t dtype, op;
};
const Case cases[] = {{DTRAIN_F32, DTRAIN_SUM},  {DTRAIN_F32, DTRAIN_AVG},
                      {DTRAIN_F16, DTRAIN_AVG},  {DTRAIN_BF16, DTRAIN_SUM},
                      {DTRAIN_F64, DTRAIN_PROD}, {DTRAIN_I32, DTRAIN_AVG},
                      {DTRAIN_U8, DTRAIN_BXOR},  {DTRAIN_I64, DTRAIN_MIN}};

// All-reduce of shared memory, in place and not, against that of host memory. direct: whether
// nothing may be copied.
void compare(int rank, dtrain_context_t *context, dtrain_comm_t *comm, Kind kind, bool direct) {
    for (const Case &one : cases) {
        const std::vector<uint8_t> mine = input(large, one.dtype, rank);
        std::vector<uint8_t> host(mine.size());
        OK(dtrain_allreduce(comm, mine.data(), host.data(), large, one.dtype, one.op, nullptr,
                            nullptr));
        const uint64_t copied = gpu::counted(context, "to_host_bytes"),
                       reduced = gpu::counted(context, "reduced_bytes");
        Shared in_place(context, mine, 0, kind), from(context, mine, 0, kind),
            to(context, mine.size(), 0, kind);
        OK(dtrain_allreduce(comm, in_place.address(), in_place.address(), large, one.dtype, one.op,
                            nullptr, nullptr));
        OK(dtrain_allreduce(comm, from.address(), to.address(), large, one.dtype, one.op, nullptr,
                            nullptr));
        REQUIRE(in_place.values<uint8_t>() == host);
        REQUIRE(to.values<uint8_t>() == host);
        REQUIRE(from.values<uint8_t>() == mine);
        REQUIRE((gpu::counted(context, "to_host_bytes") == copied) == direct);
        const uint64_t all =
            direct && rank == 0 ? 2 * mine.size() * uint64_t(dtrain_comm_size(comm)) : 0;
        REQUIRE(gpu::counted(context, "reduced_bytes") - reduced == all);
    }
}

void threads(void **) {
    for (int size : {2, 5, 8})
        ranks::run_with_contexts(
            size, with_gpus, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                compare(rank, context, comm, rank % 2 == 0 ? Kind::created : Kind::registered,
                        true);
            });
}

void in_processes(void **) {
    run_processes(3, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        compare(rank, context, comm, rank % 2 == 0 ? Kind::created : Kind::registered, true);
        // More memory than rank 0 keeps imported, each twice.
        const std::vector<uint8_t> ones(20'000, 1), threes(20'000, 3);
        std::vector<std::unique_ptr<Shared>> many;
        for (int i = 0; i < 40; i++) many.push_back(std::make_unique<Shared>(context, ones));
        for (int round = 0; round < 2; round++)
            for (auto &one : many) {
                one->write(ones.data());
                OK(dtrain_allreduce(comm, one->address(), one->address(), ones.size(), DTRAIN_U8,
                                    DTRAIN_SUM, nullptr, nullptr));
                REQUIRE(one->values<uint8_t>() == threes);
            }
        REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
    });
}

// Of another rank's memory the leader keeps so much imported, what was used last.
void imports_are_bounded(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        constexpr int most = 32;
        const auto count = [] { return gpu::function<int()>("fakecuda_count_memory")(); };
        std::vector<std::unique_ptr<Shared>> all;
        for (int i = 0; i < most + 8; i++) all.push_back(std::make_unique<Shared>(context, large));
        const auto use = [&](const Shared &one) {
            OK(dtrain_allreduce(comm, one.address(), one.address(), large, DTRAIN_U8, DTRAIN_SUM,
                                nullptr, nullptr));
        };
        use(*all[0]);
        const int with_one = count();
        for (int round = 0; round < 2; round++)
            for (const auto &one : all) use(*one);
        REQUIRE(count() == with_one + (rank == 0 ? most - 1 : 0));
        REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
    });
}

// Two ranks in one process, one in another.
void threads_and_processes(void **) {
    processes::Job job;
    job.start(2, [&](int process) {
        const auto body = [&](int rank) {
            dtrain_context_t *context = ranks::make_context(with_gpus);
            dtrain_comm_t *comm = processes::join(job, context, rank, 3);
            compare(rank, context, comm, Kind::created, true);
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        };
        std::thread other;
        if (process == 1) other = std::thread([&] { body(2); });
        body(process);
        if (other.joinable()) other.join();
    });
    job.expect_good_ends();
}

void reduce_to_a_root(void **) {
    ranks::run_with_contexts(
        4, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            for (int root : {0, 3}) {
                const std::vector<uint8_t> mine = input(large, DTRAIN_F32, rank);
                std::vector<uint8_t> host(mine.size());
                OK(dtrain_reduce(comm, mine.data(), host.data(), large, DTRAIN_F32, DTRAIN_SUM,
                                 root, nullptr, nullptr));
                const Shared from(context, mine), to(context, mine);
                OK(dtrain_reduce(comm, from.address(), rank == root ? to.address() : nullptr, large,
                                 DTRAIN_F32, DTRAIN_SUM, root, nullptr, nullptr));
                REQUIRE(to.values<uint8_t>() == (rank == root ? host : mine));
                REQUIRE(from.values<uint8_t>() == mine);
                REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
            }
        });
}

// Whatever rank 2 has, the result is that of the host, and all copy.
void one_rank_has_other_memory(void **) {
    gpu::needs_fake();
    enum class Other { host, shared_host, unregistered, other_device, unaligned };
    for (Other other : {Other::host, Other::shared_host, Other::unregistered, Other::other_device,
                        Other::unaligned})
        for (int odd : {0, 2}) {
            ranks::run_with_contexts(
                3, with_gpus, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                    const std::vector<uint8_t> mine = input(large, DTRAIN_F32, rank);
                    std::vector<uint8_t> wanted(mine.size());
                    dtrain_op_params_t params;
                    DTRAIN_INIT(&params);
                    OK(dtrain_allreduce(comm, mine.data(), wanted.data(), large, DTRAIN_F32,
                                        DTRAIN_SUM, &params, nullptr));
                    const bool is_odd = rank == odd;
                    dtrain_request_t *request = nullptr;
                    const auto sum = [&](void *at) {
                        OK(dtrain_allreduce(comm, at, at, large, DTRAIN_F32, DTRAIN_SUM, &params,
                                            &request));
                        OK(dtrain_request_wait(request, -1));
                        dtrain_request_free(request);
                    };
                    if (is_odd && (other == Other::host || other == Other::shared_host)) {
                        dtrain_mem_t *mem = nullptr;
                        OK(dtrain_mem_alloc(context, mine.size(), &mem));
                        std::vector<uint8_t> own(mine.size());
                        auto *at = other == Other::host
                                       ? own.data()
                                       : static_cast<uint8_t *>(dtrain_mem_address(mem));
                        std::copy(mine.begin(), mine.end(), at);
                        sum(at);
                        REQUIRE(std::equal(wanted.begin(), wanted.end(), at));
                        OK(dtrain_mem_deregister(mem));
                    } else if (is_odd && other == Other::unregistered) {
                        gpu::Buffer buffer = gpu::copy_of(mine);
                        sum(buffer.address());
                        REQUIRE(buffer.values<uint8_t>() == wanted);
                    } else if (is_odd && other == Other::unaligned) {
                        std::vector<uint8_t> shifted(mine.size() + 1);
                        std::copy(mine.begin(), mine.end(), shifted.begin() + 1);
                        Shared buffer(context, shifted);
                        sum(buffer.address() + 1);
                        std::copy(wanted.begin(), wanted.end(), shifted.begin() + 1);
                        REQUIRE(buffer.values<uint8_t>() == shifted);
                    } else {
                        Shared buffer(context, mine,
                                      is_odd && other == Other::other_device ? 1 : 0);
                        sum(buffer.address());
                        REQUIRE(buffer.values<uint8_t>() == wanted);
                    }
                    REQUIRE(gpu::counted(context, "reduced_bytes") == 0);
                });
        }
}

// The driver refuses what the leader needs: all ranks copy, from then on without another try.
void leader_cannot(void **) {
    gpu::needs_fake();
    for (const char *wish :
         {"cuIpcOpenMemHandle_v2:1", "cuMemGetAddressRange_v2:1", "cuLaunchKernel:1"})
        run_processes(2, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            const std::vector<uint8_t> mine = input(large, DTRAIN_F32, rank);
            std::vector<uint8_t> wanted(mine.size());
            OK(dtrain_allreduce(comm, mine.data(), wanted.data(), large, DTRAIN_F32, DTRAIN_SUM,
                                nullptr, nullptr));
            for (int round = 0; round < 3; round++) {
                Shared buffer(context, mine);
                if (round == 0 && rank == 0) fail_at(wish);
                OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_F32,
                                    DTRAIN_SUM, nullptr, nullptr));
                if (rank == 0) fail_at("");
                REQUIRE(buffer.values<uint8_t>() == wanted);
            }
            REQUIRE(gpu::counted(context, "to_host_bytes") == 3 * mine.size());
        });
}

// The kernels cannot be loaded for now: the leader offers nothing, and later it does.
void kernels_are_missing(void **) {
    gpu::needs_fake();
    run_processes(2, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Shared buffer(context, std::vector<uint8_t>(large * 4, 1));
        const auto sum = [&] {
            OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U32,
                                DTRAIN_SUM, nullptr, nullptr));
        };
        if (rank == 0) fail_at("cuModuleLoadData:1:2");
        sum();
        REQUIRE(gpu::counted(context, "to_host_bytes") == large * 4);
        sum();
        REQUIRE(gpu::counted(context, "to_host_bytes") == large * 4);
        for (uint32_t value : buffer.values<uint32_t>()) REQUIRE(value == 4 * 0x01010101u);
    });
}

// Many operations at once, of several kinds, and the same again and again.
void requests(void **) {
    ranks::run_with_contexts(
        3, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr int many = 6;
            std::vector<std::unique_ptr<Shared>> buffers;
            std::vector<dtrain_request_t *> waiting(many), again(many);
            dtrain_op_params_t persistent, awaited;
            DTRAIN_INIT(&persistent);
            DTRAIN_INIT(&awaited);
            persistent.flags = DTRAIN_OP_PERSISTENT;
            awaited.flags = DTRAIN_OP_AWAITED;
            const auto sum = [&](int i, const dtrain_op_params_t *params, dtrain_request_t **out) {
                void *const at = buffers[size_t(i)]->address();
                OK(dtrain_allreduce(comm, at, at, large, DTRAIN_U8, DTRAIN_SUM, params, out));
            };
            for (int i = 0; i < many; i++)
                buffers.push_back(std::make_unique<Shared>(
                    context, std::vector<uint8_t>(large, uint8_t(rank + i))));
            uint8_t factor = 1;
            for (int i = 0; i < many; i++)
                sum(i, i % 3 == 2 ? &awaited : nullptr, &waiting[size_t(i)]);
            for (int i = 0; i < many; i++) sum(i, &persistent, &again[size_t(i)]);
            FAILS(DTRAIN_ERR_BUSY, dtrain_mem_deregister(buffers[0]->mem()));
            for (dtrain_request_t *request : waiting) {
                OK(dtrain_request_wait(request, -1));
                dtrain_request_free(request);
            }
            for (int round = 0; round < 3; round++) {
                OK(dtrain_request_start(again.data(), many));
                for (dtrain_request_t *request : again) OK(dtrain_request_wait(request, -1));
                factor = uint8_t(factor * 3);
            }
            for (dtrain_request_t *request : again) dtrain_request_free(request);
            for (int i = 0; i < many; i++)
                REQUIRE(buffers[size_t(i)]->values<uint8_t>() ==
                        std::vector<uint8_t>(large, uint8_t((3 + 3 * i) * factor)));
            REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
        });
}

void a_late_rank_is_named(void **) {
    for (int late : {0, 1})
        gpu::expect_late_rank(late, [](dtrain_context_t *context, dtrain_comm_t *comm,
                                       int64_t timeout_ns, std::string &text) {
            Shared buffer(context, large);
            dtrain_op_params_t params;
            DTRAIN_INIT(&params);
            params.timeout_ns = timeout_ns;
            const dtrain_status_t status =
                dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8,
                                 DTRAIN_SUM, &params, nullptr);
            text = ranks::last_error();
            return status;
        });
}

// The leader's kernel does not run: all ranks end, and say for what they have waited.
void a_slow_device(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Shared buffer(context, std::vector<uint8_t>(large, 1));
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8, DTRAIN_SUM,
                            nullptr, nullptr));
        stall(1);
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = 200'000'000;
        const dtrain_status_t status =
            dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8, DTRAIN_SUM,
                             &params, nullptr);
        REQUIRE(status == DTRAIN_ERR_TIMEOUT);
        const std::string text = ranks::last_error();
        const bool told = text.find("the accelerator has not finished yet") != std::string::npos;
        const bool named = text.find("waits for rank 0") != std::string::npos;
        if (!told && !named) std::fprintf(stderr, "%d: %s\n", rank, text.c_str());
        REQUIRE(told || named);
        stall(0);
    });
}

// The kernel is on its way, but nobody would hear of its end: what it writes must not be read.
void the_end_is_not_told(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Shared buffer(context, std::vector<uint8_t>(large, 1));
        if (rank == 0) fail_at("cuStreamWriteValue32_v2:1");
        FAILS(DTRAIN_ERR_DEVICE, dtrain_allreduce(comm, buffer.address(), buffer.address(), large,
                                                  DTRAIN_U8, DTRAIN_SUM, nullptr, nullptr));
        expect_text("rank 0");
        expect_text("submitting a kernel");
    });
}

void a_device_that_fails(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Shared buffer(context, std::vector<uint8_t>(large, 1));
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8, DTRAIN_SUM,
                            nullptr, nullptr));
        if (rank == 0) stall(1);
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8, DTRAIN_SUM,
                            nullptr, &request));
        if (rank == 0) {
            REQUIRE(dtrain_request_wait(request, 100'000'000) == DTRAIN_IN_PROGRESS);
            gpu::call_void<int>("fakecuda_fault", 700);
        }
        FAILS(DTRAIN_ERR_DEVICE, dtrain_request_wait(request, -1));
        expect_text("rank 0");
        expect_text("CUDA_ERROR_ILLEGAL_ADDRESS");
        dtrain_request_free(request);
        if (rank == 0) stall(0);
    });
}

void calls_that_differ(void **) {
    ranks::run_with_contexts(
        2, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            Shared buffer(context, large);
            FAILS(DTRAIN_ERR_MISMATCH,
                  dtrain_allreduce(comm, buffer.address(), buffer.address(), large - size_t(rank),
                                   DTRAIN_U8, DTRAIN_SUM, nullptr, nullptr));
        });
}

// The leader, or another rank, is killed at any moment; the others learn who it was and go on.
void killed_rank(void **) {
    for (int victim : {0, 1}) {
        processes::Job job;
        constexpr int size = 3;
        job.start(size, [&](int rank) {
            dtrain_context_t *context = ranks::make_context(with_gpus);
            dtrain_comm_t *comm = processes::join(job, context, rank, size);
            {
                Shared buffer(context, std::vector<uint8_t>(large, 1));
                dtrain_status_t status = DTRAIN_OK;
                while (status == DTRAIN_OK) {
                    dtrain_request_t *request = nullptr;
                    status = dtrain_allreduce(comm, buffer.address(), buffer.address(), large,
                                              DTRAIN_U8, DTRAIN_SUM, nullptr, &request);
                    if (status == DTRAIN_OK) status = dtrain_request_wait(request, -1);
                    dtrain_request_free(request);
                    job.seen(rank).rounds++;
                }
                processes::note_failure(job.seen(rank), status);
                dtrain_comm_t *rest = nullptr;
                OK(dtrain_comm_shrink(comm, &rest));
                buffer.write(std::vector<uint8_t>(large, 1).data());
                OK(dtrain_allreduce(rest, buffer.address(), buffer.address(), large, DTRAIN_U8,
                                    DTRAIN_SUM, nullptr, nullptr));
                REQUIRE(buffer.values<uint8_t>() == std::vector<uint8_t>(large, 2));
                OK(dtrain_comm_destroy(rest));
                OK(dtrain_comm_destroy(comm));
            }
            OK(dtrain_context_destroy(context));
        });
        job.wait_for_rounds(size, 5);
        job.kill_now(victim);
        job.expect_good_ends();
        for (int rank = 0; rank < size; rank++) {
            if (rank == victim) continue;
            REQUIRE(job.seen(rank).status == DTRAIN_ERR_PEER);
            expect_text(job.seen(rank).text, ("rank " + std::to_string(victim)).c_str());
        }
    }
}

void abort_ends_it(void **) {
    ranks::run_with_contexts(
        2, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            Shared buffer(context, large);
            if (rank == 1) {
                const timespec t = {0, 50'000'000};
                nanosleep(&t, nullptr);
                OK(dtrain_comm_abort(comm, "enough"));
                return;
            }
            FAILS(DTRAIN_ERR_ABORTED,
                  dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8,
                                   DTRAIN_SUM, nullptr, nullptr));
            expect_text("enough");
        });
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        // Processes before this one starts the driver.
        cmocka_unit_test(in_processes),
        cmocka_unit_test(imports_are_bounded),
        cmocka_unit_test(threads_and_processes),
        cmocka_unit_test(leader_cannot),
        cmocka_unit_test(kernels_are_missing),
        cmocka_unit_test(a_slow_device),
        cmocka_unit_test(the_end_is_not_told),
        cmocka_unit_test(a_device_that_fails),
        cmocka_unit_test(killed_rank),
        cmocka_unit_test(threads),
        cmocka_unit_test(reduce_to_a_root),
        cmocka_unit_test(one_rank_has_other_memory),
        cmocka_unit_test(requests),
        cmocka_unit_test(a_late_rank_is_named),
        cmocka_unit_test(calls_that_differ),
        cmocka_unit_test(abort_ends_it),
    };
    return cmocka_run_group_tests_name("ranks on one GPU", tests, nullptr, nullptr);
}
