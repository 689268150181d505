// Registered memory that the host's other ranks can map: same results, nothing lost.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <cmath>
#include <latch>
#include <random>
#include <sys/mman.h>

namespace {

constexpr size_t page = 4096;

// Whole private pages of the process.
struct Pages {
    explicit Pages(size_t size)
        : bytes(size), at(static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(at != MAP_FAILED);
    }
    ~Pages() { munmap(at, bytes); }
    size_t bytes;
    char *at;
};

dtrain_status_t share(dtrain_context_t *context, void *address, uint64_t bytes,
                      dtrain_mem_t **mem) {
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.address = address;
    params.length = bytes;
    params.flags = DTRAIN_MEM_SHARED;
    return dtrain_mem_register(context, &params, mem);
}

float value(int rank, uint64_t i, int round) {
    return float((uint64_t(rank) * 31 + i * 7 + uint64_t(round) * 13) % 101) / 7;
}

void fill(float *buffer, uint64_t count, int rank, int round) {
    for (uint64_t i = 0; i < count; i++) buffer[i] = value(rank, i, round);
}

// In rank order, as the library sums inside a host.
void check(const float *buffer, uint64_t count, int size, int round, uint32_t op = DTRAIN_SUM) {
    for (uint64_t i = 0; i < count; i++) {
        float sum = value(0, i, round);
        for (int r = 1; r < size; r++) sum += value(r, i, round);
        if (op == DTRAIN_AVG) sum /= float(size);
        if (buffer[i] != sum) {
            std::fprintf(stderr, "round %d, element %llu of %llu: %g, not %g\n", round,
                         static_cast<unsigned long long>(i), static_cast<unsigned long long>(count),
                         double(buffer[i]), double(sum));
            std::abort();
        }
    }
}

constexpr uint64_t counts[] = {1, 9000, 33333, 65536, 300001};

void allocated(void **) {
    for (int size : {2, 3, 4})
        ranks::run(size, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            dtrain_mem_t *mem = nullptr;
            OK(dtrain_mem_alloc(context, 2 << 20, &mem));
            auto *base = static_cast<float *>(dtrain_mem_address(mem));
            REQUIRE(reinterpret_cast<uintptr_t>(base) % page == 0);
            int round = 0;
            for (uint64_t count : counts)
                for (uint64_t offset : {0, 1, 37})
                    for (uint32_t op : {DTRAIN_SUM, DTRAIN_AVG}) {
                        // Buffers need not lie at the same place in all ranks.
                        float *buffer = base + offset * uint64_t(rank + 1);
                        fill(buffer, count, rank, ++round);
                        OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, op, nullptr,
                                            nullptr));
                        check(buffer, count, size, round, op);
                    }
            OK(dtrain_mem_deregister(mem));
        });
}

void apart(void **) {
    ranks::run(3, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_mem_t *mem = nullptr;
        constexpr uint64_t count = 50000;
        OK(dtrain_mem_alloc(context, 2 * 4 * count, &mem));
        auto *send = static_cast<float *>(dtrain_mem_address(mem)), *recv = send + count;
        for (int round = 0; round < 5; round++) {
            fill(send, count, rank, round);
            OK(dtrain_allreduce(comm, send, recv, count, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
            check(recv, count, 3, round);
            for (uint64_t i = 0; i < count; i++) REQUIRE(send[i] == value(rank, i, round));
        }
        OK(dtrain_mem_deregister(mem));
    });
}

void some_ranks_only(void **) {
    for (int with : {0, 1, 2})
        ranks::run(3, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            constexpr uint64_t count = 100000;
            dtrain_mem_t *mem = nullptr;
            std::vector<float> own(count);
            float *buffer = own.data();
            if (rank != with) {
                OK(dtrain_mem_alloc(context, 4 * count, &mem));
                buffer = static_cast<float *>(dtrain_mem_address(mem));
            }
            for (int round = 0; round < 4; round++) {
                fill(buffer, count, rank, round);
                OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                    nullptr));
                check(buffer, count, 3, round);
            }
            OK(dtrain_mem_deregister(mem));
        });
}

void moved_at_the_same_address(void **) {
    ranks::run(2, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Pages pages(100 * page);
        auto *buffer = reinterpret_cast<float *>(pages.at + 12); // neither begins nor ends a page
        constexpr uint64_t count = 70000;
        dtrain_mem_t *mem = nullptr, *again = nullptr;
        for (int round = 0; round < 40; round++) { // more than a rank keeps mapped
            fill(buffer, count, rank, round);
            pages.at[0] = char(round);
            OK(share(context, buffer, 4 * count, &mem));
            FAILS(DTRAIN_ERR_UNSUPPORTED, share(context, buffer, 4, &again));
            REQUIRE(pages.at[0] == char(round));
            OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                nullptr));
            check(buffer, count, 2, round);
            OK(dtrain_mem_deregister(mem));
            REQUIRE(pages.at[0] == char(round));
            check(buffer, count, 2, round);
            // Private again: whoever still maps the shared pages does not see it.
            fill(buffer, count, rank, round + 1);
            OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                nullptr));
            check(buffer, count, 2, round + 1);
        }
    });
}

void unmapped_before_it_is_deregistered(void **) {
    ranks::run(2, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        Pages pages(64 * page);
        constexpr uint64_t count = 60000;
        dtrain_mem_t *mem = nullptr;
        auto *buffer = reinterpret_cast<float *>(pages.at);
        OK(share(context, pages.at, pages.bytes, &mem));
        fill(buffer, count, rank, 1);
        OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
        check(buffer, count, 2, 1);
        buffer[page] = 5;
        // Something else takes the place of the first half.
        REQUIRE(munmap(pages.at, 32 * page) == 0);
        void *other = mmap(pages.at, 32 * page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (other != pages.at)
            return dtrain_mem_deregister(mem), void(); // another thread was faster
        std::memset(other, 7, 32 * page);
        float kept = buffer[40 * page / 4];
        OK(dtrain_mem_deregister(mem));
        for (size_t i = 0; i < 32 * page; i++) REQUIRE(pages.at[i] == 7);
        REQUIRE(buffer[40 * page / 4] == kept);
    });
}

void busy_while_in_use(void **) {
    std::latch checked(1); // rank 1 stays away until then, so the operation cannot end early
    ranks::run(2, 0, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        constexpr uint64_t count = 100000;
        dtrain_mem_t *mem = nullptr;
        OK(dtrain_mem_alloc(context, 4 * count, &mem));
        auto *buffer = static_cast<float *>(dtrain_mem_address(mem));
        fill(buffer, count, rank, 3);
        if (rank == 1) checked.wait();
        dtrain_request_t *request = nullptr;
        OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                            &request));
        if (rank == 0) {
            const dtrain_status_t busy = dtrain_mem_deregister(mem);
            checked.count_down(); // before any check that could end this rank
            REQUIRE(busy == DTRAIN_ERR_BUSY);
        }
        OK(dtrain_request_wait(request, -1));
        dtrain_request_free(request);
        check(buffer, count, 2, 3);
        OK(dtrain_mem_deregister(mem));
    });
}

void bad_input(void **) {
    dtrain_context_t *context = ranks::make_context({});
    dtrain_mem_t *mem = nullptr;
    FAILS(DTRAIN_ERR_INVALID, dtrain_mem_alloc(context, 0, &mem));
    FAILS(DTRAIN_ERR_INVALID, dtrain_mem_alloc(context, 1, nullptr));
    FAILS(DTRAIN_ERR_INVALID, dtrain_mem_alloc(context, UINT64_MAX, &mem));
    FAILS(DTRAIN_ERR_LIMIT, dtrain_mem_alloc(context, uint64_t{1} << 45, &mem)); // 32 TiB
    FAILS(DTRAIN_ERR_INVALID, dtrain_mem_alloc(nullptr, 1, &mem));
    REQUIRE(dtrain_mem_address(nullptr) == nullptr);
    static const char constant[2 * page] = {1}; // read only
    FAILS(DTRAIN_ERR_UNSUPPORTED, share(context, const_cast<char *>(constant), page, &mem));
    Pages pages(2 * page);
    FAILS(DTRAIN_ERR_INVALID, share(context, pages.at, 0, &mem));
    REQUIRE(munmap(pages.at + page, page) == 0);
    FAILS(DTRAIN_ERR_INVALID, share(context, pages.at, 2 * page, &mem));
    OK(share(context, pages.at, page, &mem));
    FAILS(DTRAIN_ERR_BUSY, dtrain_context_destroy(context));
    OK(dtrain_mem_deregister(mem));
    OK(dtrain_context_destroy(context));
}

// Where nothing can be shared, it is ordinary memory.
void over_tcp(void **) {
    ranks::run(2, 0, {{"transports", "tcp"}},
               [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                   constexpr uint64_t count = 30000;
                   dtrain_mem_t *mem = nullptr, *moved = nullptr;
                   Pages pages(page);
                   OK(share(context, pages.at, page, &moved));
                   OK(dtrain_mem_alloc(context, 4 * count, &mem));
                   auto *buffer = static_cast<float *>(dtrain_mem_address(mem));
                   fill(buffer, count, rank, 1);
                   OK(dtrain_allreduce(comm, buffer, buffer, count, DTRAIN_F32, DTRAIN_SUM, nullptr,
                                       nullptr));
                   for (uint64_t i = 0; i < count; i++)
                       REQUIRE(std::fabs(buffer[i] - value(0, i, 1) - value(1, i, 1)) < 1e-3f);
                   OK(dtrain_mem_deregister(mem));
                   OK(dtrain_mem_deregister(moved));
               });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(allocated),
        cmocka_unit_test(apart),
        cmocka_unit_test(some_ranks_only),
        cmocka_unit_test(moved_at_the_same_address),
        cmocka_unit_test(unmapped_before_it_is_deregistered),
        cmocka_unit_test(busy_while_in_use),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(over_tcp),
    };
    return cmocka_run_group_tests_name("shared memory", tests, nullptr, nullptr);
}
