// Ranks on one GPU whose calls are in the order of streams: whatever fails or has to be copied, the
// streams go on, and the error names the rank.
// SPDX-License-Identifier: Apache-2.0
#include "gpu/placed_case.h"

#include <csignal>
#include <utility>

namespace {

using cases::Case;
using cases::Kind;
using cases::Part;
using gpu::large;
using gpu::make_case;
using gpu::NobodyWaits;
using gpu::Placed;
using gpu::run_processes;
using gpu::Shared;
using gpu::Stream;
using gpu::Type;
using gpu::Way;
using gpu::with_gpus;

constexpr Type floats = {DTRAIN_F32, DTRAIN_SUM};
const Kind kinds[] = {Kind::allreduce, Kind::reduce_scatter, Kind::allgather, Kind::broadcast,
                      Kind::reduce};

void fail_at(const char *wish) { gpu::call_void<const char *>("fakecuda_fail", wish); }

void expect_text(const std::string &text, const char *part) {
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "\"%s\" does not tell \"%s\"\n", text.c_str(), part);
    REQUIRE(text.find(part) != std::string::npos);
}

// A case on a stream, begun but not waited for; something follows it in the stream.
class Begun {
  public:
    Begun(dtrain_context_t *context, dtrain_comm_t *comm, Kind kind, Stream &stream,
          int64_t timeout_ns = 0, bool posts = true)
        : part_(make_case({kind, false}, floats, dtrain_comm_size(comm), false, large),
                dtrain_comm_rank(comm)),
          placed_(context, dtrain_comm_rank(comm), 4, &stream), stream_(stream), after_(1000) {
        part_.move([&](uint8_t *data, size_t bytes) { return placed_.place(data, bytes); });
        if (posts) post(comm, timeout_ns);
    }
    ~Begun() {
        stream_.synchronize(); // its buffers go now
        dtrain_request_free(request_);
    }
    Begun(const Begun &) = delete;

    // Perhaps again: only then the leader's process may have imported the memory.
    void post(dtrain_comm_t *comm, int64_t timeout_ns = 0) {
        dtrain_request_free(std::exchange(request_, nullptr));
        placed_.fill();
        dtrain_op_params_t params = stream_.params();
        params.timeout_ns = timeout_ns;
        stream_.fill(after_, 6);
        posted_ = part_.post(comm, &params, &request_);
        stream_.fill(after_, 7);
    }

    dtrain_status_t posted() const { return posted_; }
    // The call's status, after what follows it in the stream is done.
    dtrain_status_t status() {
        stream_.synchronize();
        for (uint8_t byte : after_.values<uint8_t>()) REQUIRE(byte == 7);
        if (posted_ != DTRAIN_OK) return posted_;
        return dtrain_request_wait(request_, -1);
    }
    bool is_right() {
        placed_.take_back();
        return part_.first_difference() < 0;
    }

  private:
    Part part_;
    Placed placed_;
    Stream &stream_;
    gpu::Buffer after_;
    dtrain_status_t posted_ = DTRAIN_OK;
    dtrain_request_t *request_ = nullptr;
};

// Many calls in a stream, of which each uses what the one before has written.
void in_flight(void **) {
    ranks::run_with_contexts(
        3, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr int rounds = 12;
            gpu::load_kernels(context, comm, {DTRAIN_U8, DTRAIN_SUM});
            const NobodyWaits after(comm);
            const uint64_t copied = gpu::Counts::of(context).copied;
            const Shared sum(context, 3 * large), part(context, large);
            const NobodyWaits done(comm);
            Stream stream;
            const dtrain_op_params_t params = stream.params();
            stream.fill(sum.address(), uint8_t(rank + 1), 3 * large);
            std::vector<dtrain_request_t *> requests;
            dtrain_request_t *request = nullptr;
            const auto keep = [&](dtrain_status_t status) {
                OK(status);
                requests.push_back(request);
            };
            for (int round = 0; round < rounds; round++) {
                keep(dtrain_reduce_scatter(comm, sum.address(), part.address(), large, DTRAIN_U8,
                                           DTRAIN_SUM, &params, &request));
                keep(dtrain_allgather(comm, part.address(), sum.address(), large, DTRAIN_U8,
                                      &params, &request));
                if (rank == 1) stream.fill(sum.address(), uint8_t(round), 3 * large);
                keep(dtrain_broadcast(comm, sum.address(), 3 * large, DTRAIN_U8, 1, &params,
                                      &request));
            }
            stream.synchronize();
            REQUIRE(sum.values<uint8_t>() == std::vector<uint8_t>(3 * large, rounds - 1));
            REQUIRE(part.values<uint8_t>() == std::vector<uint8_t>(large, 3 * (rounds - 2)));
            for (dtrain_request_t *one : requests) {
                OK(dtrain_request_wait(one, -1));
                dtrain_request_free(one);
            }
            REQUIRE(gpu::Counts::of(context).copied == copied);
        });
}

// A scaled reduction: all results are multiplied, and the inputs perhaps, too.
struct Scaled {
    Kind kind;
    uint32_t dtype;
    bool in_place, prescaled;
};
dtrain_status_t reduce_scaled(const Scaled &c, dtrain_comm_t *comm, const void *send, void *recv,
                              dtrain_op_params_t params, dtrain_request_t **request_p) {
    if (c.prescaled) params.prescale = 0.7 + dtrain_comm_rank(comm);
    params.postscale = 0.3;
    switch (c.kind) {
    case Kind::allreduce:
        return dtrain_allreduce(comm, send, recv, large, c.dtype, DTRAIN_SUM, &params, request_p);
    case Kind::reduce:
        return dtrain_reduce(comm, send, recv, large, c.dtype, DTRAIN_SUM, 1, &params, request_p);
    default:
        return dtrain_reduce_scatter(comm, send, recv, large, c.dtype, DTRAIN_SUM, &params,
                                     request_p);
    }
}

// Against the host's result. odd: the rank that has other memory, because of which all copy.
void check_scaled(const Scaled &c, dtrain_context_t *context, dtrain_comm_t *comm, Stream *stream,
                  int odd) {
    const NobodyWaits ended(comm);
    const int rank = dtrain_comm_rank(comm), size = dtrain_comm_size(comm);
    const uint64_t count = large * uint64_t(c.kind == Kind::reduce_scatter ? size : 1);
    const size_t bytes = count * dtrain_dtype_size(c.dtype);
    std::vector<uint8_t> input(bytes), host(bytes, 1);
    for (uint64_t i = 0; i < count; i++)
        cases::write(input.data(), i, c.dtype, int64_t((i * 7 + uint64_t(rank)) % 61) - 30);
    if (c.in_place) host = input;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    OK(reduce_scaled(c, comm, c.in_place ? host.data() : input.data(), host.data(), params,
                     nullptr));
    const auto before = gpu::Counts::of(context);
    const Shared from(context, input), to(context, std::vector<uint8_t>(bytes, 1));
    const gpu::Buffer other = gpu::copy_of(input), result(bytes), late = gpu::copy_of(input);
    const NobodyWaits done(comm);
    uint8_t *const send = rank == odd ? other.address() : from.address();
    uint8_t *const recv = c.in_place ? send : to.address();
    Stream own;
    Stream &used = stream != nullptr ? *stream : own;
    dtrain_request_t *request = nullptr;
    if (stream != nullptr) {
        stream->fill(send, 9, bytes);
        stream->copy(send, late.address(), bytes);
        OK(reduce_scaled(c, comm, send, recv, stream->params(), &request));
    } else {
        OK(reduce_scaled(c, comm, send, recv, params, nullptr));
    }
    used.copy(result.address(), recv, bytes);
    used.fill(recv, 9, bytes);
    used.synchronize();
    if (stream != nullptr) OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    if (result.values<uint8_t>() != host)
        std::fprintf(stderr, "rank %d: kind %d, dtype %u, in place %d, prescaled %d, stream %d\n",
                     rank, int(c.kind), c.dtype, c.in_place, c.prescaled, stream != nullptr);
    REQUIRE(result.values<uint8_t>() == host);
    const auto after = gpu::Counts::of(context);
    const bool direct = odd < 0 && (c.kind == Kind::allreduce || !c.prescaled);
    REQUIRE((after.copied == before.copied) == direct);
    REQUIRE((after.reduced > before.reduced) == (direct && rank == 0));
}

void scaled(void **) {
    for (int odd : {-1, 1})
        ranks::run_with_contexts(
            3, with_gpus, [&](int, dtrain_context_t *context, dtrain_comm_t *comm) {
                for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16})
                    gpu::load_kernels(context, comm, {dtype, DTRAIN_SUM});
                Stream stream;
                for (Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter})
                    for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16})
                        for (int i = 0; i < 8; i++) {
                            const bool in_place = i % 2 != 0 && kind == Kind::allreduce;
                            check_scaled({kind, dtype, in_place, i % 4 >= 2}, context, comm,
                                         i >= 4 ? &stream : nullptr, odd);
                        }
            });
}

void persistent(void **) {
    ranks::run_with_contexts(
        2, with_gpus, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            const NobodyWaits after(comm);
            const uint64_t copied = gpu::Counts::of(context).copied;
            const Shared from(context, std::vector<uint8_t>(large, uint8_t(rank + 1))),
                to(context, 2 * large);
            const NobodyWaits done(comm);
            Stream stream;
            dtrain_op_params_t params = stream.params();
            params.flags = DTRAIN_OP_PERSISTENT;
            dtrain_request_t *request = nullptr;
            OK(dtrain_allgather(comm, from.address(), to.address(), large, DTRAIN_U8, &params,
                                &request));
            std::vector<uint8_t> wanted(large, 1);
            wanted.insert(wanted.end(), large, 2);
            for (int round = 0; round < 3; round++) {
                stream.fill(to.address(), 0, 2 * large);
                OK(dtrain_request_start(&request, 1));
                OK(dtrain_request_wait(request, -1));
                REQUIRE(to.values<uint8_t>() == wanted);
            }
            dtrain_request_free(request);
            REQUIRE(gpu::Counts::of(context).copied == copied);
        });
}

// Others on streams copy then, on queues of the library's, and their streams wait for that.
void one_rank_has_other_memory(void **) {
    gpu::needs_fake();
    for (Kind kind : kinds)
        for (int odd : {0, 2})
            for (bool on_gpu : {false, true})
                ranks::run_with_contexts(
                    3, with_gpus, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                        const NobodyWaits after(comm);
                        Stream stream;
                        if (rank != odd) {
                            Begun begun(context, comm, kind, stream);
                            const NobodyWaits done(comm);
                            OK(begun.posted());
                            REQUIRE(begun.is_right());
                            OK(begun.status());
                        } else {
                            Part part(make_case({kind, false}, floats, 3, false, large), rank);
                            gpu::Images images;
                            const NobodyWaits done(comm);
                            part.move([&](uint8_t *data, size_t bytes) {
                                return images.place(data, bytes, on_gpu ? 1 : 0);
                            });
                            OK(part.post(comm, nullptr, nullptr));
                            images.take_back();
                            REQUIRE(part.first_difference() < 0);
                        }
                        REQUIRE(gpu::counted(context, "reduced_bytes") == 0);
                        REQUIRE(gpu::counted(context, "moved_bytes") == 0);
                    });
}

// The leader cannot begin: all copy. Nor can a rank's input be copied then: all fail.
void leader_cannot(void **) {
    gpu::needs_fake();
    for (bool cannot_copy : {false, true})
        run_processes(3, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            Stream stream;
            Begun first(context, comm, Kind::allreduce, stream);
            REQUIRE(first.is_right());
            OK(first.status());
            const uint64_t copied = gpu::counted(context, "to_host_bytes");
            if (rank == 0) fail_at("cuLaunchKernel:1");
            if (cannot_copy && rank == 1) fail_at("cuMemcpyAsync:3"); // after two of the test's
            OK(dtrain_barrier(comm, nullptr, nullptr));
            first.post(comm);
            Begun &second = first;
            OK(second.posted());
            if (cannot_copy) {
                FAILS(DTRAIN_ERR_DEVICE, second.status());
                expect_text(ranks::last_error(), "rank 1");
                return;
            }
            REQUIRE(second.is_right());
            OK(second.status());
            REQUIRE(gpu::counted(context, "to_host_bytes") > copied);
        });
}

// Each of the driver's calls fails once on rank 1: its call says so, and its stream goes on; then
// it makes the call again.
void driver_calls_fail(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Stream stream;
        for (const char *wish :
             {"", "cuStreamGetCtx", "cuStreamIsCapturing", "cuStreamWriteValue32_v2:1",
              "cuStreamWaitValue32_v2:1", "cuStreamWriteValue32_v2:2"}) {
            if (rank == 1 && wish[0] != 0) {
                fail_at(wish);
                Begun begun(context, comm, Kind::allgather, stream);
                FAILS(DTRAIN_ERR_DEVICE, begun.posted());
                expect_text(ranks::last_error(), "cuda0: stream");
                stream.synchronize();
                fail_at("");
            }
            Begun begun(context, comm, Kind::allgather, stream);
            OK(begun.posted());
            REQUIRE(begun.is_right());
            OK(begun.status());
        }
    });
}

// Calls return, and their time does not count, while the GPU of rank 1 does nothing; then rank 0's
// time passes.
void a_slow_device(void **) {
    gpu::needs_fake();
    run_processes(2, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Stream stream;
        if (rank == 1) gpu::call_void<int>("fakecuda_stall", 1);
        Begun begun(context, comm, Kind::broadcast, stream, 300'000'000);
        OK(begun.posted());
        if (rank == 1) {
            while (dtrain_comm_status(comm) == DTRAIN_OK) processes::nap();
            gpu::call_void<int>("fakecuda_stall", 0);
        }
        FAILS(DTRAIN_ERR_TIMEOUT, begun.status());
        expect_text(ranks::last_error(), "rank 1");
    });
}

void a_late_rank_is_named(void **) {
    for (int late : {0, 1})
        for (Kind kind : kinds)
            gpu::expect_late_rank(late, [kind](dtrain_context_t *context, dtrain_comm_t *comm,
                                               int64_t timeout_ns, std::string &text) {
                Stream stream;
                Begun begun(context, comm, kind, stream, timeout_ns);
                const dtrain_status_t status = begun.status();
                text = ranks::last_error();
                return status;
            });
}

constexpr int64_t rounds_before = 12; // twice by each kind, however long that takes

// The leader, or another rank, is killed or stopped at any moment.
void lost_rank(int number, int64_t timeout_ns, dtrain_status_t expected) {
    for (int victim : {0, 1}) {
        processes::Job job;
        constexpr int size = 3;
        job.start(size, [&](int rank) {
            dtrain_context_t *context = ranks::make_context(with_gpus);
            dtrain_comm_t *comm = processes::join(job, context, rank, size);
            {
                Stream stream;
                dtrain_status_t status = DTRAIN_OK;
                std::vector<std::unique_ptr<Begun>> all;
                for (Kind kind : kinds)
                    all.push_back(std::make_unique<Begun>(context, comm, kind, stream, 0, false));
                for (int64_t round = 0; status == DTRAIN_OK; round++) {
                    Begun &begun = *all[size_t(round) % all.size()];
                    begun.post(comm, round < rounds_before ? 0 : timeout_ns);
                    status = begun.status();
                    if (status == DTRAIN_OK) REQUIRE(begun.is_right());
                    job.seen(rank).rounds++;
                }
                processes::note_failure(job.seen(rank), status);
                if (rank == 0) REQUIRE(gpu::counted(context, "moved_bytes") > 0);
            }
            OK(dtrain_comm_destroy(comm));
            OK(dtrain_context_destroy(context));
        });
        job.wait_for_rounds(size, rounds_before);
        if (number == SIGKILL)
            job.kill_now(victim);
        else
            job.signal(victim, number);
        for (int rank = 0; rank < size; rank++)
            if (rank != victim) job.wait_for_good_end(rank);
        for (int rank = 0; rank < size; rank++) {
            if (rank == victim) continue;
            if (job.seen(rank).status != expected)
                std::fprintf(stderr, "%d: %s\n", int(job.seen(rank).status), job.seen(rank).text);
            REQUIRE(job.seen(rank).status == expected);
            expect_text(job.seen(rank).text, victim == 0 ? "rank 0" : "rank 1");
        }
        if (number != SIGKILL) job.kill_now(victim);
    }
}
void killed_rank(void **) { lost_rank(SIGKILL, 0, DTRAIN_ERR_PEER); }
void stopped_rank(void **) { lost_rank(SIGSTOP, 3'000'000'000, DTRAIN_ERR_TIMEOUT); }

void abort_ends_it(void **) {
    ranks::run_with_contexts(2, with_gpus,
                             [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 if (rank == 1) {
                                     const timespec t = {0, 50'000'000};
                                     nanosleep(&t, nullptr);
                                     OK(dtrain_comm_abort(comm, "enough"));
                                     return;
                                 }
                                 Stream stream;
                                 Begun begun(context, comm, Kind::allgather, stream);
                                 FAILS(DTRAIN_ERR_ABORTED, begun.status());
                                 expect_text(ranks::last_error(), "enough");
                             });
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        // Processes before this one starts the driver.
        cmocka_unit_test(leader_cannot),
        cmocka_unit_test(driver_calls_fail),
        cmocka_unit_test(a_slow_device),
        cmocka_unit_test(killed_rank),
        cmocka_unit_test(stopped_rank),
        cmocka_unit_test(in_flight),
        cmocka_unit_test(scaled),
        cmocka_unit_test(persistent),
        cmocka_unit_test(one_rank_has_other_memory),
        cmocka_unit_test(a_late_rank_is_named),
        cmocka_unit_test(abort_ends_it),
    };
    return cmocka_run_group_tests_name("streams of ranks on one GPU", tests, nullptr, nullptr);
}
