// Every builder, numbers of ranks up to 64, odd sizes: proved by the checker.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/call/layout.h"
#include "collectives/check/check.h"
#include "engine/tag.h"
#include "every_rank.h"
#include "tested.h"
#include "thorough.h"

#include <bit>
#include <cinttypes>
#include <numeric>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr uint64_t seed = 20240607; // of interleavings and counts; printed by a failing check

// All up to 64 if thorough; otherwise the small ones, and those around powers of two.
const std::vector<int32_t> &tested_sizes() {
    static const std::vector<int32_t> sizes = [] {
#ifdef __OPTIMIZE__
        constexpr int32_t small = 20;
#else
        constexpr int32_t small = 9; // with sanitizers more would take minutes
#endif
        std::vector<int32_t> out(is_thorough() ? 64 : small);
        std::iota(out.begin(), out.end(), 1);
        if (!is_thorough()) out.insert(out.end(), {31, 32, 33, 47, 63, 64});
        return out;
    }();
    return sizes;
}

void prove(EveryRank &ranks, Algorithm algorithm) {
    const CollectiveSpec &spec = ranks.specs[0];
    Status status = ranks.build(algorithm);
    if (status == DTRAIN_OK)
        status =
            check(ranks.specs, ranks.schedules, seed + spec.count * 1000 + uint64_t(spec.size));
    if (status != DTRAIN_OK)
        fail_msg("%s by %s, %d ranks, root %d, count %" PRIu64 ", chunks of %" PRIu64 ": %s",
                 kind_name(spec.kind), algorithm_name(algorithm), spec.size, spec.root, spec.count,
                 spec.chunk_bytes, error_text());
}

bool rooted(Kind kind) {
    return kind == Kind::reduce || kind == Kind::broadcast || kind == Kind::gather ||
           kind == Kind::scatter;
}

bool whole_vector(Kind kind) {
    return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::broadcast;
}

// In place on every second rank only: ranks must not depend on each other's choice.
void prove_variants(CollectiveSpec call, Algorithm algorithm) {
    for (bool in_place : {false, true}) {
        if (in_place && call.kind == Kind::barrier) continue;
        EveryRank ranks(call);
        for (CollectiveSpec &spec : ranks.specs)
            spec.in_place = in_place && (spec.rank % 2 == 0 || call.count % 2 == 1);
        prove(ranks, algorithm);
    }
}

void prove_all(Kind kind, Algorithm algorithm, int32_t size) {
    CollectiveSpec call;
    call.kind = kind;
    call.size = size;
    call.element_bytes = 4;
    auto n = uint64_t(size);
    std::vector<uint64_t> counts = {0, 1, 3};
    if (whole_vector(kind)) counts = {0, 1, n - 1, n, n + 1, 3 * n + 1};
    if (whole_vector(kind) && size <= 20) counts.push_back(1000);
    if (kind == Kind::barrier) counts = {0}, call.element_bytes = 1;
    for (uint64_t count : counts) {
        call.count = count;
        call.root = rooted(kind) ? int32_t((count * 7 + 3) % n) : 0;
        call.average = count % 2 == 0;
        call.chunk_bytes = size <= 9 ? 12 : 12 + count; // few steps where there are many ranks
        prove_variants(call, algorithm);
    }
}

void every_builder(void **) {
    size_t proved = 0;
    for (int kind = 0; kind < kind_count; kind++)
        for (Algorithm algorithm : tested_algorithms())
            for (int32_t size : tested_sizes()) {
                if (!supports(Kind(kind), algorithm, size)) continue;
                prove_all(Kind(kind), algorithm, size);
                proved++;
            }
    print_message("proved %zu combinations of kind, algorithm and ranks\n", proved);
    size_t methods = 0; // for any number of ranks
    for (Algorithm algorithm : tested_algorithms())
        for (const Method &method : description(algorithm).methods)
            methods += !over_graph(method.kind) && !method.powers_of_two;
    assert_true(proved >= methods * tested_sizes().size());
}

// Blocks of all lengths, with gaps between them and not in the order of ranks.
void blocks_that_differ(void **) {
    for (int32_t size = 1; size <= 33; size++) {
        auto n = size_t(size);
        std::vector<uint64_t> counts(n), displs(n);
        uint64_t end = 2;
        for (size_t i = n; i-- > 0; end += counts[i] + i % 2) {
            counts[i] = i * 5 % 4;
            displs[i] = end;
        }
        for (Kind kind : {Kind::reduce_scatter, Kind::allgather, Kind::gather, Kind::scatter})
            for (Algorithm algorithm : tested_algorithms())
                for (bool gaps : {false, true}) {
                    if (!supports(kind, algorithm, size, false)) continue;
                    if (gaps && kind == Kind::reduce_scatter) continue; // always packed
                    CollectiveSpec call;
                    call.kind = kind;
                    call.size = size;
                    call.root = size / 2;
                    call.element_bytes = 8;
                    call.chunk_bytes = 16;
                    call.counts = counts;
                    call.average = kind == Kind::reduce_scatter;
                    if (gaps) call.displs = displs;
                    prove_variants(call, algorithm);
                }
    }
}

void alltoall_that_differs(void **) {
    for (int32_t size = 1; size <= 17; size++) {
        auto n = size_t(size);
        auto sent = [](size_t from, size_t to) { return (from * 3 + to * 5) % 4; };
        CollectiveSpec call;
        call.kind = Kind::alltoall;
        call.size = size;
        call.element_bytes = 2;
        call.chunk_bytes = 2;
        EveryRank ranks(call);
        std::vector<std::vector<uint64_t>> lists;
        lists.reserve(n * 3);
        for (size_t rank = 0; rank < n; rank++) {
            std::vector<uint64_t> send(n), recv(n), displs(n);
            for (size_t peer = 0; peer < n; peer++) {
                send[peer] = sent(rank, peer);
                recv[peer] = sent(peer, rank);
                displs[peer] = (n - peer) * 5 + rank % 3;
            }
            CollectiveSpec &spec = ranks.specs[rank];
            spec.counts = lists.emplace_back(send);
            spec.recv_counts = lists.emplace_back(recv);
            spec.recv_displs = lists.emplace_back(displs);
        }
        prove(ranks, Algorithm::direct);
        assert_int_equal(ranks.build(Algorithm::bruck), DTRAIN_ERR_UNSUPPORTED);
    }
}

// The numbers of messages are bounded whatever the size; nothing overflows near 2^40 elements.
void huge_vectors(void **) {
    for (Kind kind : {Kind::allreduce, Kind::reduce, Kind::broadcast, Kind::allgather})
        for (Algorithm algorithm : tested_algorithms())
            for (int32_t size : {2, 5, 24}) {
                if (!supports(kind, algorithm, size)) continue;
                CollectiveSpec call;
                call.kind = kind;
                call.size = size;
                call.rank = size - 1;
                call.element_bytes = 4;
                call.count = (uint64_t{1} << 40) + 7;
                engine::Schedule schedule;
                assert_int_equal(build(call, algorithm, schedule), DTRAIN_OK);
                assert_in_range(schedule.max_message, 1, engine::max_messages);
                for (const engine::Step &step : schedule.steps)
                    assert_true(step.bytes > 0 && step.bytes % 4 == 0);
            }
}

void parts_cover_the_vector(void **) {
    for (uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{16383}, (uint64_t{1} << 61) + 12345})
        for (uint64_t parts : {1, 2, 3, 7, 16384}) {
            assert_true(part_begin(count, parts, 0) == 0);
            assert_true(part_begin(count, parts, parts) == count);
            for (uint64_t i = 0; i < parts; i++) {
                uint64_t size = part_begin(count, parts, i + 1) - part_begin(count, parts, i);
                assert_true(size == count / parts || size == count / parts + 1);
            }
        }
}

void named_errors(void **) {
    engine::Schedule schedule;
    CollectiveSpec call;
    call.kind = Kind::gather;
    call.size = 3;
    call.count = 1;
    assert_int_equal(build(call, Algorithm::ring, schedule), DTRAIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(error_text(), "gather has no algorithm \"ring\""));
    call.root = 3;
    assert_int_equal(build(call, Algorithm::direct, schedule), DTRAIN_ERR_INVALID);
    call.root = 0;
    call.count = uint64_t{1} << 61;
    call.element_bytes = 8;
    assert_int_equal(build(call, Algorithm::direct, schedule), DTRAIN_ERR_LIMIT);
    call.kind = Kind::allreduce;
    call.count = 1;
    call.size = 10000; // 2 * 9999 rounds with the same neighbor
    assert_int_equal(build(call, Algorithm::ring, schedule), DTRAIN_ERR_UNSUPPORTED);
    assert_int_equal(build(call, Algorithm::halving_doubling, schedule), DTRAIN_OK);
    Algorithm algorithm;
    for (Algorithm i : all_algorithms()) {
        assert_true(parse_algorithm(algorithm_name(i), algorithm));
        assert_true(algorithm == i);
    }
    assert_false(parse_algorithm("window", algorithm));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_the_vector), cmocka_unit_test(named_errors),
        cmocka_unit_test(every_builder),          cmocka_unit_test(blocks_that_differ),
        cmocka_unit_test(alltoall_that_differs),  cmocka_unit_test(huge_vectors),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
