// Keys of a call, cut for the servers: each once, rows added up, answers handed back.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/row_batch.h"

#include "check.h"
#include "ps/client/client_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace dtrain::ps;

namespace {

constexpr uint32_t dim = 3;

class NoWire : public Wire {
    dtrain::Status send(uint32_t, Outgoing &) override { return DTRAIN_ERR_BUSY; }
    void withdraw(uint32_t, Outgoing &) override {}
};

struct Rig {
    Rig(uint32_t servers, uint32_t rule, uint64_t chunk)
        : client({.servers = servers, .chunk = chunk}, wire) {
        TableParams params;
        params.dim = dim;
        params.dtype = DTRAIN_I32;
        params.rule = rule;
        params.placement.policy = DTRAIN_PLACE_HASH;
        assert_int_equal(client.open("t", params, table), DTRAIN_OK);
    }
    // f(server, its rows, the request) for each that the batch makes.
    template <class F> void for_each_request(const RowBatch &batch, RequestKind kind, F &&f) {
        for (uint32_t s = 0; s < table->channels.size(); s++) {
            const Range part = batch.part(s);
            for (uint64_t i = 0; i < part.count; i += batch.rows_per_request()) {
                Range rows = {part.first + i, std::min(batch.rows_per_request(), part.count - i)};
                Outgoing request;
                request.header.kind = kind;
                // Exactly as much as it says that it needs.
                std::vector<uint64_t> scratch((batch.scratch_bytes(kind, rows.count) + 7) / 8);
                batch.attach(rows, request, reinterpret_cast<char *>(scratch.data()));
                f(s, rows.count, request);
                if (has_trait(kind, Trait::receives)) batch.deliver(rows, request.answer);
            }
        }
    }
    NoWire wire;
    Client client;
    ClientTable *table = nullptr;
};

using Row = std::array<int32_t, dim>;

std::vector<uint64_t> random_keys(std::mt19937_64 &random) {
    std::vector<uint64_t> keys(random() % 300);
    const uint64_t below = 1 + random() % 400;
    for (uint64_t &key : keys)
        key = random() % 5 == 0 ? UINT64_MAX - random() % 3 : random() % below;
    return keys;
}

void pushes_are_added_up(void **) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 400; round++) {
        const uint32_t rule = 1 + uint32_t(round % 2);
        const auto kind = round % 3 == 0 ? RequestKind::set_rows : RequestKind::push_rows;
        const bool adds = rule == DTRAIN_RULE_ADD && kind == RequestKind::push_rows;
        Rig rig(1 + uint32_t(random() % 4), rule, 20 + random() % 400);
        const auto keys = random_keys(random);
        std::vector<Row> rows(keys.size());
        std::map<uint64_t, Row> due;
        for (size_t i = 0; i < keys.size(); i++)
            for (uint32_t c = 0; c < dim; c++) {
                rows[i][c] = int32_t(random() % 1000);
                int32_t &sum = due[keys[i]][c];
                sum = rows[i][c] + (adds ? sum : 0); // else the last one
            }
        const RowBatch batch(*rig.table, {kind, keys.data(), keys.size(), rows.data()});
        std::map<uint64_t, Row> is;
        rig.for_each_request(
            batch, kind, [&](uint32_t server, uint64_t count, const auto &request) {
                assert_int_equal(reinterpret_cast<uintptr_t>(request.payload) % 8, 0);
                assert_int_equal(request.payload_bytes, count * (8 + sizeof(Row)));
                assert_int_equal(request.answer_bytes, 0);
                const auto *sent = static_cast<const uint64_t *>(request.payload);
                for (uint64_t i = 0; i < count; i++) {
                    assert_int_equal(rig.table->key_partition.server_of(sent[i]), server);
                    assert_false(is.contains(sent[i]));
                    std::memcpy(&is[sent[i]],
                                reinterpret_cast<const char *>(sent + count) + i * sizeof(Row),
                                sizeof(Row));
                }
            });
        assert_true(is == due);
    }
}

void pulls_are_scattered(void **) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 400; round++) {
        Rig rig(1 + uint32_t(random() % 4), DTRAIN_RULE_ADD, 20 + random() % 400);
        auto keys = random_keys(random);
        std::set<uint64_t> once(keys.begin(), keys.end());
        if (round % 3 == 0) // one server's answers need no second copy
            keys.assign(once.begin(), once.end());
        std::vector<Row> rows(keys.size());
        const auto kind = round % 2 == 0 ? RequestKind::pull_rows : RequestKind::push_pull_rows;
        const uint64_t carried = kind == RequestKind::pull_rows ? 0 : sizeof(Row);
        const RowBatch batch(*rig.table,
                             {kind, keys.data(), keys.size(), rows.data(), rows.data()});
        std::set<uint64_t> asked;
        rig.for_each_request(
            batch, kind, [&](uint32_t server, uint64_t count, const auto &request) {
                assert_int_equal(request.payload_bytes, count * (8 + carried));
                assert_int_equal(request.answer_bytes, count * sizeof(Row));
                for (uint64_t i = 0; i < count; i++) {
                    const uint64_t key = static_cast<const uint64_t *>(request.payload)[i];
                    assert_int_equal(rig.table->key_partition.server_of(key), server);
                    assert_true(asked.insert(key).second);
                    const Row answer = {int32_t(key), int32_t(key) + 1, int32_t(key) + 2};
                    std::memcpy(static_cast<char *>(request.answer) + i * sizeof(Row), &answer,
                                sizeof answer);
                }
            });
        assert_true(asked == once);
        for (size_t i = 0; i < keys.size(); i++)
            for (uint32_t c = 0; c < dim; c++)
                assert_int_equal(rows[i][c], int32_t(keys[i]) + int32_t(c));
    }
}

void servers_have_equal_shares(void **) {
    for (uint32_t servers : {1u, 2u, 3u, 7u}) {
        const KeyPartition partition(servers, 4);
        assert_int_equal(partition.version(), 4);
        std::vector<uint32_t> keys(servers);
        for (uint64_t key = 0; key < 70'000; key++) keys[partition.server_of(key)]++;
        for (uint32_t share : keys)
            assert_true(share > 65'000 / servers && share < 75'000 / servers);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(pushes_are_added_up),
        cmocka_unit_test(pulls_are_scattered),
        cmocka_unit_test(servers_have_equal_shares),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
