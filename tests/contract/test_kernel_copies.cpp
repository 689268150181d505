// Large collectives of ordinary buffers, which the kernel copies from process to process. Seeded
// (DTRAIN_TEST_SEED).
// SPDX-License-Identifier: Apache-2.0
#include "contract/collective_case.h"
#include "contract/kernel_copies.h"
#include "contract/ranks.h"

#include <atomic>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using cases::Case;
using cases::Kind;
using cases::Part;

uint64_t seed() {
    const char *text = std::getenv("DTRAIN_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

// Rank 0 tells which ways its calls took.
struct Ways {
    std::atomic<int> by_kernel{0}, by_pipeline{0};

    static void add(void *self, int32_t, const char *line) {
        auto *ways = static_cast<Ways *>(self);
        if (std::strstr(line, ": window kernel copies (") != nullptr) ways->by_kernel++;
        if (std::strstr(line, ": window pipeline (") != nullptr) ways->by_pipeline++;
    }
};

constexpr Kind copied[] = {Kind::allgather, Kind::alltoall, Kind::broadcast, Kind::scatter,
                           Kind::gather};
using Kinds = std::span<const Kind>;
const Kinds all_kinds(copied), if_faster(copied, 2);

// Of i64 or f64, so large that the kernel shall copy; ragged ones have a rank that gives nothing.
Case generate(uint64_t of, int size, Kinds kinds) {
    std::mt19937_64 random(of);
    Case c;
    c.seed = of;
    c.size = size;
    c.kind = kinds[random() % kinds.size()];
    c.root = int(random() % uint64_t(size));
    c.dtype = random() % 2 ? DTRAIN_F64 : DTRAIN_I64;
    const bool whole = c.kind == Kind::broadcast;
    c.ragged = c.kind != Kind::alltoall && !whole && random() % 2;
    c.in_place = c.kind != Kind::alltoall && random() % 2;
    const uint64_t least = // of bytes in a piece
        c.kind == Kind::alltoall             ? 64 << 10
        : c.kind == Kind::allgather || whole ? uint64_t(size) * (256 << 10)
                                             : 256 << 10;
    c.count = least / 8 + random() % 1000;
    c.gap = c.ragged ? random() % 3 : 0;
    const auto without = int(random() % uint64_t(size));
    uint64_t next = 0;
    for (int r = 0; r < size; r++) {
        uint64_t count = c.count;
        if (c.ragged) count = r == without ? 0 : c.count * uint64_t(size) / uint64_t(size - 1) + 1;
        c.counts.push_back(count);
        c.displs.push_back(next);
        next += count + c.gap;
    }
    return c;
}

void post_and_check(const Case &c, int rank, dtrain_context_t *context, dtrain_comm_t *comm,
                    int shared, bool blocking) {
    Part part(c, rank, context, shared);
    dtrain_request_t *request = nullptr;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    OK(part.post(comm, &params, blocking ? nullptr : &request));
    if (!blocking) OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
    if (int64_t at = part.first_difference(); at >= 0) {
        std::fprintf(stderr, "rank %d, seed %llu: %s: byte %lld is wrong\n", rank,
                     static_cast<unsigned long long>(seed()), c.describe().c_str(),
                     static_cast<long long>(at));
        std::abort();
    }
}

void calls(int size, Kinds kinds, Ways &ways, const std::function<ranks::Options(int)> &more,
           bool share) {
    auto options_of = [&](int rank) {
        ranks::Options options = more(rank);
        options.emplace_back("explain", "yes");
        return options;
    };
    ranks::run_each(
        size, 0, options_of, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            if (rank == 0) OK(dtrain_context_set_log(context, Ways::add, &ways));
            std::mt19937_64 random(seed() * 100 + uint64_t(size)), own(random() + uint64_t(rank));
            for (int round = 0; round < 16; round++)
                post_and_check(generate(random(), size, kinds), rank, context, comm,
                               share ? int(own() % 4) : 0, own() % 2);
        });
}

void results(void **) {
    skip_without_kernel_copies();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
    for (int size : {2, 3, 5}) { // and more ranks than cores
        Ways ways;
        calls(
            size, size == 2 ? all_kinds : if_faster, ways, [](int) { return ranks::Options{}; },
            false);
        assert_true(ways.by_kernel > 0); // far cores share the ring for all-gathers of this size
    }
}

void results_of_all_kinds(void **) {
    skip_without_kernel_copies();
    for (int size : {2, 3, 5}) {
        Ways ways;
        calls(
            size, all_kinds, ways,
            [](int) {
                return ranks::Options{{"shm.copy", "kernel"}};
            },
            false);
        assert_true(ways.by_kernel > 0);
        assert_int_equal(ways.by_pipeline, 0);
    }
}

// Whether a rank's own buffers are memory that it shares makes no difference to the others.
void some_buffers_are_shared(void **) {
    skip_without_kernel_copies();
    for (int size : {2, 3}) {
        Ways ways;
        calls(
            size, all_kinds, ways,
            [](int) {
                return ranks::Options{{"shm.copy", "kernel"}};
            },
            true);
        assert_true(ways.by_kernel > 0);
    }
}

// One rank that may not be read, nor read, and nobody is.
void one_is_out_of_reach(void **) {
    for (int out : {0, 1, 2}) {
        Ways ways;
        calls(
            3, all_kinds, ways,
            [out](int rank) {
                return ranks::Options{{"shm.copy", rank == out ? "ring" : "kernel"}};
            },
            false);
        assert_true(ways.by_pipeline > 0);
        assert_int_equal(ways.by_kernel, 0);
    }
}

// Where rank 1 says that rank 0's piece is, there is no memory.
void an_address_without_memory(void **) {
    skip_without_kernel_copies();
    constexpr size_t piece = 256 << 10;
    void *at = mmap(nullptr, 2 * piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at, piece, PROT_NONE), 0);
    ranks::run(2, {}, [&](int rank, dtrain_comm_t *comm) {
        std::vector<uint8_t> send(2 * piece), recv(2 * piece);
        FAILS(DTRAIN_ERR_IO, dtrain_alltoall(comm, rank == 1 ? at : send.data(), recv.data(), piece,
                                             DTRAIN_U8, nullptr, nullptr));
        const std::string text = ranks::last_error();
        for (const char *part : {"rank 1: the kernel cannot copy 262144 bytes", "shm.copy=ring"})
            if (text.find(part) == std::string::npos) {
                std::fprintf(stderr, "rank %d: no \"%s\" in: %s\n", rank, part, text.c_str());
                std::abort();
            }
    });
    munmap(at, 2 * piece);
}

// Where both of two ranks copy, the root writes into the other one's buffer: by the kernel, or as
// the buffers are shared. Not any more when that one's call has ended, as its time was over.
void write_until_the_end(bool shared) {
    constexpr size_t bytes = 128 << 20, page = 4096;
    constexpr uint8_t own = 2;
    int ended_early = 0;
    for (int round = 0; round < 8; round++)
        ranks::run(2, 0, {{"shm.copy", shared ? "ring" : "kernel"}},
                   [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                       std::vector<uint8_t> ordinary(shared ? 0 : bytes, 1);
                       dtrain_mem_t *memory = nullptr;
                       if (shared) OK(dtrain_mem_alloc(context, bytes, &memory));
                       auto *buffer = shared ? static_cast<uint8_t *>(dtrain_mem_address(memory))
                                             : ordinary.data();
                       if (rank == 1) std::memset(buffer, 1, bytes);
                       dtrain_op_params_t params;
                       DTRAIN_INIT(&params);
                       if (rank == 1) params.timeout_ns = shared ? 3'000'000 : 2'000'000;
                       dtrain_request_t *request = nullptr;
                       OK(dtrain_barrier(comm, nullptr, nullptr));
                       dtrain_status_t status =
                           dtrain_broadcast(comm, buffer, bytes, DTRAIN_U8, 0, &params, &request);
                       if (status == DTRAIN_OK) status = dtrain_request_wait(request, -1);
                       dtrain_request_free(request);
                       if (rank == 1 && status != DTRAIN_OK) {
                           FAILS(DTRAIN_ERR_TIMEOUT, status);
                           ended_early++;
                           for (size_t i = 0; i < bytes; i += page) buffer[i] = own;
                           usleep(60'000);
                           for (size_t i = 0; i < bytes; i += page) REQUIRE(buffer[i] == own);
                       }
                       if (memory != nullptr) OK(dtrain_mem_deregister(memory));
                   });
    assert_true(ended_early > 0);
}

void nobody_writes_by_the_kernel_after_the_end(void **) {
    skip_without_kernel_copies();
    write_until_the_end(false);
}
void nobody_writes_into_shared_memory_after_the_end(void **) { write_until_the_end(true); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(results),
        cmocka_unit_test(results_of_all_kinds),
        cmocka_unit_test(some_buffers_are_shared),
        cmocka_unit_test(one_is_out_of_reach),
        cmocka_unit_test(an_address_without_memory),
        cmocka_unit_test(nobody_writes_by_the_kernel_after_the_end),
        cmocka_unit_test(nobody_writes_into_shared_memory_after_the_end),
    };
    return cmocka_run_group_tests_name("kernel copies", tests, nullptr, nullptr);
}
