// Placements: every element and key has one server, shares are as the weights, few keys move, and
// the weights of mixed servers are the best ones.
// SPDX-License-Identifier: Apache-2.0
#include "ps/placement/placement_balance.h"
#include "ps/placement/placement_map.h"
#include "ps/table/placement.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace dtrain::ps;

namespace {

TableParams dense(uint64_t length, uint32_t policy = DTRAIN_PLACE_RANGE, uint64_t block = 0) {
    TableParams params;
    params.length = length;
    params.dtype = DTRAIN_F32;
    params.placement.policy = policy;
    params.placement.block = block;
    return params;
}

TableParams sparse(uint32_t policy) {
    TableParams params;
    params.dim = 4;
    params.dtype = DTRAIN_F32;
    params.placement.policy = policy;
    if (policy == DTRAIN_PLACE_CONSISTENT) params.placement.virtual_nodes = 256;
    return params;
}

// ---- ranges of a dense table ----

void check_range(uint64_t length, uint32_t servers) {
    const Partition partition = make_partition(dense(length), servers);
    assert_int_equal(partition.length(), length);
    uint64_t next = 0, least = UINT64_MAX, most = 0;
    for (uint32_t s = 0; s < servers; ++s) {
        const Part part = partition.part(s);
        least = std::min(least, part.count());
        most = std::max(most, part.count());
        if (part.count() == 0) continue;
        assert_int_equal(part.ranges(), 1);
        assert_int_equal(part.range(0).first, next);
        if (length / servers >= 16) assert_int_equal(next % 16, 0);
        next = part.range(0).end();
    }
    assert_int_equal(next, length);
    assert_true(most - least <= (length / servers >= 16 ? 31 : 1));
}

void ranges_are_equal(void **) {
    for (uint64_t length = 1; length < 700; ++length)
        for (uint32_t servers = 1; servers < 20; ++servers) check_range(length, servers);
    check_range(uint64_t{1} << 53, 1000);
    check_range((uint64_t{1} << 53) - 1, 7);
}

void rows_stay_whole(void **) {
    for (uint64_t row = 1; row < 40; ++row)
        for (uint64_t rows = 1; rows < 20; ++rows)
            for (uint32_t servers = 1; servers < 8; ++servers) {
                TableParams params = dense(row * rows);
                params.row_length = row;
                const Partition partition = make_partition(params, servers);
                uint64_t empty = 0;
                for (uint32_t s = 0; s < servers; ++s) {
                    assert_int_equal(partition.count(s) % row, 0);
                    empty += partition.count(s) == 0;
                }
                assert_int_equal(partition.length(), row * rows);
                assert_int_equal(empty, rows < servers ? servers - rows : 0);
            }
}

void shares_follow_the_weights(void **) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 2000; ++round) {
        std::vector<uint32_t> weights(1 + random() % 9);
        double total = 0;
        for (uint32_t &w : weights) w = random() % 4 == 0 ? 0 : uint32_t(random() >> random() % 64);
        weights[random() % weights.size()] |= 1;
        for (uint32_t w : weights) total += w;
        const uint64_t units = random() % 100'000;
        const auto ends = cut(units, uint32_t(weights.size()), weights);
        uint64_t before = 0;
        for (size_t s = 0; s < weights.size(); ++s) {
            assert_true(ends[s] >= before);
            const double due = double(units) * weights[s] / total;
            assert_true(std::fabs(double(ends[s] - before) - due) <= 1.001);
            if (weights[s] == 0) assert_int_equal(ends[s], before);
            before = ends[s];
        }
        assert_int_equal(before, units);
    }
}

// ---- blocks ----

void blocks_are_placed_whole(void **) {
    for (uint32_t policy : {DTRAIN_PLACE_HASH, DTRAIN_PLACE_CONSISTENT, DTRAIN_PLACE_USER})
        for (uint64_t length : {1, 99, 100, 101, 5'000})
            for (uint32_t servers : {1u, 2u, 5u}) {
                TableParams params = dense(length, policy, std::min<uint64_t>(length, 20));
                params.placement.virtual_nodes = policy == DTRAIN_PLACE_CONSISTENT ? 16 : 0;
                const Blocks blocks = blocks_of(params);
                uint64_t items = 0;
                for (uint64_t b = 0; b < blocks.count; ++b) {
                    assert_int_equal(blocks.first(b), items);
                    items += blocks.items_of(b);
                    if (policy == DTRAIN_PLACE_USER)
                        params.placement.owners.push_back(uint16_t(b * 7 % servers));
                }
                assert_int_equal(items, length);
                assert_null(bad_placement(params));
                assert_true(fits_servers(params, servers));
                const Partition partition = make_partition(params, servers);
                assert_int_equal(partition.length(), length);
                for (uint64_t e = 0; e < length; ++e) {
                    const uint32_t server = partition.server_of(e);
                    assert_int_equal(server, partition.server_of(e / blocks.size * blocks.size));
                    if (policy == DTRAIN_PLACE_USER)
                        assert_int_equal(server, params.placement.owners[e / blocks.size]);
                }
            }
}

void key_blocks_cover_the_keys(void **) {
    for (uint64_t most : {uint64_t{2}, most_blocks, uint64_t{65536}})
        for (uint64_t keys : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1000}, most - 1, most,
                              most + 1, uint64_t{1} << 40, UINT64_MAX}) {
            const Blocks blocks = key_blocks(keys, most);
            assert_true(blocks.count >= 1 && blocks.count <= most);
            assert_int_equal(blocks.size & (blocks.size - 1), 0);
            const uint64_t last = keys - 1; // 0 keys: 2^64
            assert_int_equal(last / blocks.size, blocks.count - 1);
            uint64_t items = 0;
            for (uint64_t b = 0; b < blocks.count; ++b) items += blocks.items_of(b);
            assert_int_equal(items, keys); // modulo 2^64
            if (blocks.size > 1) assert_true(last / (blocks.size / 2) + 1 > most);
        }
}

// ---- keys ----

std::vector<double> shares_of(const KeyPartition &partition, uint64_t keys) {
    std::vector<double> shares(partition.servers());
    for (uint64_t key = 0; key < keys; ++key)
        shares.at(partition.server_of(key)) += 1.0 / double(keys);
    return shares;
}

void keys_are_balanced(void **) {
    for (uint32_t servers : {1u, 2u, 3u, 7u, 30u}) {
        const auto hash =
            shares_of(make_key_partition(sparse(DTRAIN_PLACE_HASH), servers), 200'000);
        const auto ring =
            shares_of(make_key_partition(sparse(DTRAIN_PLACE_CONSISTENT), servers), 200'000);
        for (uint32_t s = 0; s < servers; ++s) {
            assert_true(std::fabs(hash[s] * servers - 1) < 0.06);
            assert_true(std::fabs(ring[s] * servers - 1) < 0.25); // 256 points each: 6 % typically
        }
    }
}

void ranges_of_keys(void **) {
    TableParams params = sparse(DTRAIN_PLACE_RANGE);
    params.placement.key_count = 1'000'000;
    for (uint32_t servers : {1u, 2u, 3u, 7u}) {
        const KeyPartition partition = make_key_partition(params, servers);
        uint32_t before = 0;
        for (uint64_t key = 0; key < 1'000'000; key += 17) {
            assert_true(partition.server_of(key) >= before);
            before = partition.server_of(key);
        }
        assert_int_equal(before, servers - 1);
        assert_int_equal(partition.server_of(UINT64_MAX), servers - 1);
        for (double share : shares_of(partition, 1'000'000))
            assert_true(std::fabs(share - 1.0 / servers) < 1e-4);
    }
    const KeyPartition all = make_key_partition(sparse(DTRAIN_PLACE_RANGE), 4);
    for (uint64_t quarter = 0; quarter < 4; ++quarter) {
        assert_int_equal(all.server_of(quarter << 62), quarter);
        assert_int_equal(all.server_of((quarter << 62) + (uint64_t{1} << 62) - 1), quarter);
    }
}

void weights_of_keys(void **) {
    for (uint32_t policy : {DTRAIN_PLACE_RANGE, DTRAIN_PLACE_HASH, DTRAIN_PLACE_CONSISTENT}) {
        TableParams params = sparse(policy);
        if (policy == DTRAIN_PLACE_RANGE) params.placement.key_count = 300'000;
        params.placement.weights = {4, 0, 2, 2};
        const auto shares = shares_of(make_key_partition(params, 4), 300'000);
        const double due[] = {0.5, 0, 0.25, 0.25};
        for (size_t s = 0; s < 4; ++s) assert_true(std::fabs(shares[s] - due[s]) <= 0.2 * due[s]);
        const KeyPartition partition = make_key_partition(params, 4);
        for (uint32_t s = 0; s < 4; ++s)
            assert_true(std::fabs(partition.share(s) - due[s]) <= 0.2 * due[s]);
    }
}

// Karger et al.: a key goes to the new server, or stays where it is.
void one_server_more_moves_few_keys(void **) {
    constexpr uint64_t keys = 100'000;
    for (uint32_t servers : {1u, 2u, 4u, 9u, 40u}) {
        const KeyPartition before = make_key_partition(sparse(DTRAIN_PLACE_CONSISTENT), servers);
        const KeyPartition after = make_key_partition(sparse(DTRAIN_PLACE_CONSISTENT), servers + 1);
        uint64_t moved = 0;
        for (uint64_t key = 0; key < keys; ++key) {
            if (before.server_of(key) == after.server_of(key)) continue;
            assert_int_equal(after.server_of(key), servers);
            ++moved;
        }
        const double due = double(keys) / (servers + 1);
        assert_true(double(moved) > 0.7 * due && double(moved) < 1.3 * due);
    }
}

// The ring next to a search of the points one by one.
void the_ring_is_what_it_says(void **) {
    TableParams params = sparse(DTRAIN_PLACE_CONSISTENT);
    params.placement.virtual_nodes = 5;
    const KeyPartition partition = make_key_partition(params, 6);
    std::vector<std::pair<uint64_t, uint32_t>> points;
    for (uint64_t s = 0; s < 6; ++s)
        for (uint64_t node = 0; node < 5; ++node)
            points.emplace_back(dtrain::mix(dtrain::mix(s << 32 | node)), s);
    for (uint64_t key = 0; key < 20'000; ++key) {
        const uint64_t at = dtrain::mix(~key) >> 48 << 48;
        auto next = std::pair{UINT64_MAX, 0u};
        auto first = next;
        for (const auto &point : points) {
            first = std::min(first, point);
            if (point.first >= at) next = std::min(next, point);
        }
        assert_int_equal(partition.server_of(key),
                         next.first == UINT64_MAX ? first.second : next.second);
    }
}

// ---- tables on one server ----

void whole_tables(void **) {
    TableParams params = dense(1000, DTRAIN_PLACE_GREEDY);
    params.placement.home = 3;
    const Partition partition = make_partition(params, 4);
    assert_int_equal(partition.count(2), 1000);
    assert_int_equal(partition.part(2).ranges(), 1);
    TableParams rows = sparse(DTRAIN_PLACE_ROUND_ROBIN);
    rows.placement.home = 2;
    const KeyPartition keys = make_key_partition(rows, 4);
    for (uint64_t key : {uint64_t{0}, uint64_t{77}, UINT64_MAX})
        assert_int_equal(keys.server_of(key), 1);
    assert_true(keys.share(1) == 1 && keys.share(0) == 0);
    params.placement.home = rows.placement.home = 0; // split
    assert_int_equal(make_partition(params, 4).count(2), 256);
    assert_true(make_key_partition(rows, 4).share(3) == 0.25);
}

void servers_take_turns(void **) {
    Placement placement = {.policy = DTRAIN_PLACE_ROUND_ROBIN};
    const std::vector<uint64_t> load(4);
    uint32_t turn = 0;
    for (uint32_t i = 0; i < 9; ++i)
        assert_int_equal(choose_server(placement, load, 1, turn), i % 4);
    placement.weights = {0, 3, 0, 1};
    for (uint32_t i = 0; i < 4; ++i)
        assert_int_equal(choose_server(placement, load, 1, turn), i % 2 == 0 ? 1 : 3);
}

// A server that was chosen was not fuller than the others would be, so: no fuller than the mean of
// what each would have, the last table added to all.
void greedy_is_balanced(void **) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 200; ++round) {
        Placement placement = {.policy = DTRAIN_PLACE_GREEDY};
        std::vector<uint64_t> load(1 + random() % 8);
        if (round % 2 == 1)
            for (size_t s = 0; s < load.size(); ++s)
                placement.weights.push_back(s == 0 ? 1 : uint32_t(random() % 4));
        double largest = 0, all = 0, weight = 0;
        uint32_t turn = 0;
        for (int table = 0; table < 50; ++table) {
            const uint64_t bytes = random() % 1000;
            load[choose_server(placement, load, bytes, turn)] += bytes;
            largest = std::max(largest, double(bytes));
            all += double(bytes);
        }
        auto weight_of = [&](size_t s) {
            return placement.weights.empty() ? 1.0 : double(placement.weights[s]);
        };
        double used = 0;
        for (size_t s = 0; s < load.size(); ++s) {
            weight += weight_of(s);
            used += weight_of(s) > 0;
        }
        for (size_t s = 0; s < load.size(); ++s)
            assert_true(double(load[s]) <= (all + used * largest) * weight_of(s) / weight + 1e-6);
    }
}

// ---- mixed servers ----

// The busiest link, with x of the bytes on each worker that serves and y on each dedicated server.
double busiest(uint32_t n, uint32_t c, double x, double y) {
    double most = std::max(n * y, c < n ? 1.0 : 0.0); // a worker that only works
    return c > 0 ? std::max(most, 1 - x + (n - 1) * x) : most;
}

void no_split_of_the_bytes_is_better(void **) {
    for (uint32_t n = 1; n <= 12; ++n)
        for (uint32_t k = 1; k <= 14; ++k)
            for (uint32_t c = 1; c <= n; ++c) {
                const auto weights = server_weights(n, k, c);
                assert_int_equal(weights.size(), k + c);
                double total = 0;
                for (uint32_t w : weights) total += w;
                const double ours = busiest(n, c, weights.back() / total, weights[0] / total);
                constexpr int steps = 2000;
                double best = 1e9;
                for (int i = 0; i <= steps; ++i) {
                    const double x = double(i) / steps / c;
                    best = std::min(best, busiest(n, c, x, (1 - c * x) / k));
                }
                if (ours > best + 1e-9) // a finer grid may only come closer from above
                    fail_msg("n %u, k %u, c %u: %g, but %g is possible", n, k, c, ours, best);
                if (c == n && k < n && n > 1) { // the paper's own result
                    const double paper =
                        2.0 * n * (n - 1) / (double(n) * n + double(k) * n - 2.0 * k);
                    assert_true(std::fabs(ours - paper) < 1e-9);
                }
            }
    assert_true(server_weights(4, 0, 4).empty());
    assert_true(server_weights(4, 3, 0).empty());
}

// ---- what may be wrong ----

void bad_placements_are_named(void **) {
    auto says = [](const TableParams &params, const char *word) {
        const char *why = bad_placement(params);
        if (why == nullptr || std::strstr(why, word) == nullptr)
            fail_msg("\"%s\" does not say \"%s\"", why == nullptr ? "" : why, word);
        assert_int_equal(first_bad_field(params), placement_field);
    };
    auto with = [](TableParams params, auto Placement::*field, auto value) {
        params.placement.*field = value;
        return params;
    };
    says(dense(100, 0), "placement");
    says(dense(100, 7), "placement");
    says(with(dense(100), &Placement::virtual_nodes, 1u), "virtual_nodes");
    says(with(sparse(DTRAIN_PLACE_CONSISTENT), &Placement::virtual_nodes, 0u), "virtual_nodes");
    says(with(sparse(DTRAIN_PLACE_CONSISTENT), &Placement::virtual_nodes, 1025u), "virtual_nodes");
    says(dense(100, DTRAIN_PLACE_HASH, 0), "placement_block");
    says(dense(100, DTRAIN_PLACE_HASH, 101), "placement_block");
    says(dense(16385, DTRAIN_PLACE_HASH, 1), "placement_block");
    says(dense(100, DTRAIN_PLACE_RANGE, 10), "placement_block");
    TableParams rows = dense(100, DTRAIN_PLACE_HASH, 15);
    rows.row_length = 10;
    says(rows, "placement_block");
    says(with(sparse(DTRAIN_PLACE_HASH), &Placement::key_count, uint64_t{5}), "key_count");
    says(with(dense(100), &Placement::key_count, uint64_t{5}), "key_count");
    says(with(dense(100), &Placement::split_bytes, uint64_t{5}), "split_bytes");
}

void what_does_not_fit_the_servers_is_found(void **) {
    TableParams greedy = dense(100, DTRAIN_PLACE_GREEDY);
    greedy.placement.home = 4;
    assert_true(fits_servers(greedy, 4));
    assert_false(fits_servers(greedy, 3));
    TableParams range = dense(100);
    range.placement.home = 1;
    assert_false(fits_servers(range, 3));
    range.placement.home = 0;
    range.placement.weights = {1, 1};
    assert_true(fits_servers(range, 2));
    assert_false(fits_servers(range, 3));
    range.placement.weights = {0, 0};
    assert_false(fits_servers(range, 2));
    TableParams user = dense(100, DTRAIN_PLACE_USER, 50);
    assert_false(fits_servers(user, 2));
    user.placement.owners = {0, 1};
    assert_true(fits_servers(user, 2));
    assert_false(fits_servers(user, 1));
    user.placement.weights = {1, 1};
    assert_false(fits_servers(user, 2));
    range.placement = {.owners = {0}};
    assert_false(fits_servers(range, 2));
}

void it_travels_with_the_parameters(void **) {
    TableParams params = dense(100, DTRAIN_PLACE_USER, 10);
    params.placement.owners = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0};
    TableParams weighted = sparse(DTRAIN_PLACE_CONSISTENT);
    weighted.placement.weights = {1, 0, 70000};
    for (const TableParams &sent : {params, weighted}) {
        const std::string payload = encode_table(sent, "name");
        TableParams got;
        std::string name;
        uint32_t bad = 0;
        assert_true(decode_table(payload.data(), payload.size(), got, name, bad));
        assert_int_equal(bad, field_count);
        assert_string_equal(name.c_str(), "name");
        assert_true(got.placement == sent.placement);
        assert_int_equal(first_difference(got, sent), field_count);
        got.placement.virtual_nodes++;
        assert_int_equal(first_difference(got, sent), placement_field);
        for (size_t size = 0; size + 4 <= payload.size(); ++size)
            assert_false(decode_table(payload.data(), size, got, name, bad));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_equal),
        cmocka_unit_test(rows_stay_whole),
        cmocka_unit_test(shares_follow_the_weights),
        cmocka_unit_test(blocks_are_placed_whole),
        cmocka_unit_test(key_blocks_cover_the_keys),
        cmocka_unit_test(keys_are_balanced),
        cmocka_unit_test(ranges_of_keys),
        cmocka_unit_test(weights_of_keys),
        cmocka_unit_test(one_server_more_moves_few_keys),
        cmocka_unit_test(the_ring_is_what_it_says),
        cmocka_unit_test(whole_tables),
        cmocka_unit_test(servers_take_turns),
        cmocka_unit_test(greedy_is_balanced),
        cmocka_unit_test(no_split_of_the_bytes_is_better),
        cmocka_unit_test(bad_placements_are_named),
        cmocka_unit_test(what_does_not_fit_the_servers_is_found),
        cmocka_unit_test(it_travels_with_the_parameters),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
