// Every kind of collective of ranks on one GPU: without copies to the host where the buffers are
// shared memory, which the counters show, and with the expected result.
// SPDX-License-Identifier: Apache-2.0
#include "gpu/placed_case.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>

namespace {

using cases::Case;
using cases::Kind;
using cases::Part;
using gpu::check;
using gpu::large;
using gpu::make_case;
using gpu::Placed;
using gpu::run_processes;
using gpu::Shape;
using gpu::shapes;
using gpu::Shared;
using gpu::Stream;
using gpu::Type;
using gpu::Way;
using gpu::with_gpus;

Way way_of(const Shape &shape, bool in_place) {
    const bool own_counts = shape.kind == Kind::alltoall && (shape.ragged || in_place);
    return own_counts ? Way::copies : Way::direct;
}

const Type types[] = {{DTRAIN_F32, DTRAIN_SUM}, {DTRAIN_BF16, DTRAIN_AVG},
                      {DTRAIN_F16, DTRAIN_AVG}, {DTRAIN_F64, DTRAIN_MAX},
                      {DTRAIN_U8, DTRAIN_BXOR}, {DTRAIN_I64, DTRAIN_AVG}};

void all_shapes(int, dtrain_context_t *context, dtrain_comm_t *comm) {
    const int size = dtrain_comm_size(comm);
    for (const Shape &shape : shapes)
        for (const Type &type : std::span(types).first(size == 2 ? 1 : std::size(types)))
            for (bool in_place : {false, true})
                check(make_case(shape, type, size, in_place, large), context, comm,
                      way_of(shape, in_place));
}

void every_kind(void **) {
    for (int size : {2, 3}) ranks::run_with_contexts(size, with_gpus, all_shapes);
}

// On streams, where nothing waits but the streams: first a rank or two, then all.
void in_order_of_streams(int rank, dtrain_context_t *context, dtrain_comm_t *comm, bool repeats) {
    const int size = dtrain_comm_size(comm);
    for (const Type &type : std::span(types).first(2)) gpu::load_kernels(context, comm, type);
    Stream stream;
    for (const Shape &shape : shapes)
        for (int from : {size - 1, 0})
            for (bool in_place : {false, true})
                check(make_case(shape, types[from == 0 ? 1 : 0], size, in_place, large), context,
                      comm, way_of(shape, in_place), rank >= from ? &stream : nullptr, repeats);
    // Small calls are copied, in the order of the stream.
    for (uint64_t count : {0, 1, 100})
        for (const Shape &shape : shapes)
            check(make_case(shape, types[0], size, false, count), context, comm, Way::copies,
                  &stream);
}

// A stream that waits holds up everything in the one queue.
bool has_one_queue() { return std::getenv("FAKECUDA_ONE_QUEUE") != nullptr; }

void every_kind_on_streams(void **) {
    if (has_one_queue()) return;
    for (int size : {2, 3})
        ranks::run_with_contexts(size, with_gpus,
                                 [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                     in_order_of_streams(rank, context, comm, false);
                                 });
}

void every_kind_between_processes(void **) {
    run_processes(3, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        for (const Shape &shape : shapes)
            for (bool in_place : {false, true})
                check(make_case(shape, types[1], 3, in_place, large), context, comm,
                      way_of(shape, in_place));
    });
}

void every_kind_on_streams_of_processes(void **) {
    if (has_one_queue()) return;
    run_processes(3, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        in_order_of_streams(rank, context, comm, true);
    });
}

// The driver runs the library's own work behind the stream that waits for it: that is found out.
void streams_hold_up_the_library(void **) {
    gpu::needs_fake();
    const bool one = has_one_queue();
    setenv("FAKECUDA_ONE_QUEUE", "1", 1);
    run_processes(2, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        Shared buffer(context, large);
        gpu::Buffer after(large);
        Stream stream;
        dtrain_op_params_t params = stream.params();
        params.timeout_ns = -1;
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer.address(), buffer.address(), large, DTRAIN_U8, DTRAIN_SUM,
                            &params, &request));
        stream.fill(after, 5);
        FAILS(DTRAIN_ERR_DEVICE, dtrain_request_wait(request, -1));
        REQUIRE(ranks::last_error().find("seems to hold it up") != std::string::npos);
        REQUIRE(ranks::last_error().find("rank ") != std::string::npos);
        dtrain_request_free(request);
        stream.synchronize(); // it was let go
        REQUIRE(after.values<uint8_t>() == std::vector<uint8_t>(large, 5));
    });
    if (!one) unsetenv("FAKECUDA_ONE_QUEUE");
}

// Every dtype and op, and no, one and few elements, which are exchanged by the host.
void every_type(void **) {
    ranks::run_with_contexts(3, with_gpus, [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
        for (uint32_t dtype = DTRAIN_F32; dtype <= DTRAIN_U64; dtype++)
            for (uint32_t op = DTRAIN_SUM;
                 op <= (cases::is_float(dtype) ? DTRAIN_MAX : DTRAIN_BXOR); op++)
                check(make_case({Kind::reduce_scatter, true}, {dtype, op}, 3, false, large),
                      context, comm, Way::direct);
        for (uint64_t count : {0, 1, 5})
            for (const Shape &shape : shapes)
                check(make_case(shape, types[0], 3, false, count), context, comm, Way::copies);
    });
}

// A NaN with a payload stays what it is where nothing is summed, as on the host.
void bits_stay(void **) {
    ranks::run_with_contexts(
        3, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            std::vector<uint32_t> values(large, 0x7f800001u + uint32_t(rank)), all;
            const Shared from(context, values), to(context, 3 * large * 4);
            OK(dtrain_allgather(comm, from.address(), to.address(), large, DTRAIN_F32, nullptr,
                                nullptr));
            for (uint32_t r = 0; r < 3; r++) all.insert(all.end(), large, 0x7f800001u + r);
            REQUIRE(to.values<uint32_t>() == all);
            REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
        });
}

// One rank's buffers are elsewhere: ranks choose between the host's ways by the same rules, also
// where only the root's buffer counts.
void one_rank_has_other_memory(void **) {
    gpu::needs_fake();
    enum class Other { host, shared_host, unregistered, other_device };
    for (Other other : {Other::host, Other::shared_host, Other::unregistered, Other::other_device})
        for (int odd : {0, 1, 2})
            ranks::run_with_contexts(
                3, with_gpus, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                    for (const Shape &shape : shapes)
                        for (bool in_place : {false, true}) {
                            const Case c = make_case(shape, types[0], 3, in_place, large);
                            const bool is_odd = rank == odd;
                            const bool shared = is_odd && other == Other::shared_host;
                            Part part(c, rank, shared ? context : nullptr, 3);
                            Placed placed(context, 0, 4, nullptr,
                                          is_odd && other == Other::other_device ? 1 : 0);
                            gpu::Images images;
                            part.move([&](uint8_t *data, size_t bytes) {
                                if (!is_odd || other == Other::other_device)
                                    return placed.place(data, bytes);
                                return images.place(data, bytes, other == Other::unregistered);
                            });
                            placed.fill();
                            OK(part.post(comm, nullptr, nullptr));
                            placed.take_back();
                            images.take_back();
                            REQUIRE(part.first_difference() < 0);
                        }
                    REQUIRE(gpu::counted(context, "reduced_bytes") == 0);
                    REQUIRE(gpu::counted(context, "moved_bytes") == 0);
                });
}

// The driver refuses the leader's first copy or kernel: the ranks take the host's way, once and for
// all. It refuses a later one: some results are written, so the call fails on all ranks.
void leader_cannot(void **) {
    gpu::needs_fake();
    for (const char *wish : {"cuIpcOpenMemHandle_v2:1", "cuLaunchKernel:1", "cuLaunchKernel:2"})
        run_processes(3, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            const Case c = make_case({Kind::allgather, false}, types[0], 3, false, large);
            if (rank == 0) gpu::call_void<const char *>("fakecuda_fail", wish);
            if (std::strcmp(wish, "cuLaunchKernel:2") != 0)
                return check(c, context, comm, Way::copies);
            Part part(c, rank);
            Placed placed(context, rank, 4, nullptr);
            part.move([&](uint8_t *data, size_t bytes) { return placed.place(data, bytes); });
            placed.fill();
            FAILS(DTRAIN_ERR_DEVICE, part.post(comm, nullptr, nullptr));
            REQUIRE(ranks::last_error().find("rank 0") != std::string::npos);
        });
}

void it_is_explained(void **) {
    static std::mutex mutex;
    static std::string said;
    said.clear();
    ranks::Options options = with_gpus;
    options.emplace_back("explain", "yes");
    ranks::run_with_contexts(2, options,
                             [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 if (rank == 0)
                                     OK(dtrain_context_set_log(
                                         context,
                                         [](void *, int32_t, const char *line) {
                                             const std::lock_guard lock(mutex);
                                             said += line;
                                         },
                                         nullptr));
                                 for (Kind kind : {Kind::allreduce, Kind::allgather})
                                     check(make_case({kind, false}, types[0], 2, false, large),
                                           context, comm, Way::direct);
                             });
    for (const char *kind : {"explain: allreduce of", "explain: allgather of"}) {
        const size_t at = said.find(kind);
        if (at == std::string::npos) std::fprintf(stderr, "%s\n", said.c_str());
        REQUIRE(at != std::string::npos);
        REQUIRE(said.find("window device (inside a host, all ranks' buffers are shared memory of "
                          "one accelerator)",
                          at) != std::string::npos);
    }
}

// The leader, or another rank, is killed at any moment; the others learn who it was.
void killed_rank(void **) {
    for (int victim : {0, 1}) {
        processes::Job job;
        constexpr int size = 3;
        job.start(size, [&](int rank) {
            dtrain_context_t *context = ranks::make_context(with_gpus);
            dtrain_comm_t *comm = processes::join(job, context, rank, size);
            {
                const Shared from(context, large), to(context, size * large);
                dtrain_status_t status = DTRAIN_OK;
                while (status == DTRAIN_OK) {
                    status = dtrain_allgather(comm, from.address(), to.address(), large, DTRAIN_U8,
                                              nullptr, nullptr);
                    if (status == DTRAIN_OK)
                        status = dtrain_broadcast(comm, to.address(), large, DTRAIN_U8, 1, nullptr,
                                                  nullptr);
                    job.seen(rank).rounds++;
                }
                processes::note_failure(job.seen(rank), status);
                REQUIRE(gpu::counted(context, "to_host_bytes") == 0);
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
            REQUIRE(std::strstr(job.seen(rank).text, victim == 0 ? "rank 0" : "rank 1") != nullptr);
        }
    }
}

// Rank 1 has made the call, and looks again only when the leader has declined it, done its part on
// copies, and gone on to a call that it need not wait for: what it sees of that is not taken for
// the end of its own.
void a_leader_that_declined_goes_on(void **) {
    gpu::needs_fake();
    std::atomic<bool> announced{false}, gone_on{false};
    const auto options_of = [](int rank) -> ranks::Options {
        if (rank == 0) return with_gpus;
        return {{"accelerators", "cuda"}, {"progress", "manual"}};
    };
    ranks::run_each(
        2, 0, options_of,
        ranks::Body([&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            const auto value = uint8_t(rank == 0 ? 7 : 1);
            const Shared data(context, std::vector<uint8_t>(large, value));
            dtrain_mem_t *host = nullptr;
            OK(dtrain_mem_alloc(context, large, &host));
            auto *const next = static_cast<uint8_t *>(dtrain_mem_address(host));
            std::memset(next, value, large);
            const auto start = [&](void *buffer) {
                dtrain_request_t *request = nullptr;
                OK(dtrain_broadcast(comm, buffer, large, DTRAIN_U8, 0, nullptr, &request));
                return request;
            };
            const auto end = [](dtrain_request_t *request) {
                OK(dtrain_request_wait(request, -1));
                dtrain_request_free(request);
            };
            dtrain_request_t *first = nullptr, *second = nullptr;
            if (rank == 0) {
                while (!announced) processes::nap();
                gpu::call_void<const char *>("fakecuda_fail", "cuMemcpyAsync:1");
                end(start(data.address()));
                second = start(next);
                usleep(100'000);
                gone_on = true;
            } else {
                first = start(data.address());
                for (int i = 0; i < 100; i++) (void)dtrain_context_progress(context);
                announced = true;
                while (!gone_on) processes::nap();
                end(first);
                second = start(next);
            }
            end(second);
            REQUIRE(data.values<uint8_t>() == std::vector<uint8_t>(large, 7));
            REQUIRE(std::count(next, next + large, 7) == int64_t(large));
            REQUIRE(gpu::counted(context, "moved_bytes") == 0);
            OK(dtrain_mem_deregister(host));
        }));
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        // Processes before this one starts the driver.
        cmocka_unit_test(every_kind_between_processes),
        cmocka_unit_test(every_kind_on_streams_of_processes),
        cmocka_unit_test(streams_hold_up_the_library),
        cmocka_unit_test(leader_cannot),
        cmocka_unit_test(killed_rank),
        cmocka_unit_test(every_kind),
        cmocka_unit_test(every_kind_on_streams),
        cmocka_unit_test(every_type),
        cmocka_unit_test(bits_stay),
        cmocka_unit_test(one_rank_has_other_memory),
        cmocka_unit_test(a_leader_that_declined_goes_on),
        cmocka_unit_test(it_is_explained),
    };
    return cmocka_run_group_tests_name("kinds on one GPU", tests, nullptr, nullptr);
}
