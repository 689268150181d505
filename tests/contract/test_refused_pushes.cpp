// A push that has no room on a server changes nothing there, and does once there is room.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <array>

namespace {

constexpr uint32_t dim = 3;
using Row = std::array<float, dim>;

struct Case {
    int servers;
    uint32_t consistency;
    uint64_t max_bytes; // 0: the servers' own limit
};

class Rows {
  public:
    Rows(dtrain_comm_t *comm, const Case &c) : comm_(comm), clocks_(c.consistency != DTRAIN_ASYNC) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.dim = dim;
        params.consistency = c.consistency;
        params.max_bytes = c.max_bytes;
        OK(dtrain_table_create(comm, "rows", &params, &table_));
    }
    ~Rows() { OK(dtrain_table_destroy(table_)); }
    dtrain_status_t push(const uint64_t *keys, uint64_t count) const {
        const std::vector<Row> rows(count, Row{1, 2, 3});
        return dtrain_table_push_rows(table_, keys, count, rows.data(), nullptr, nullptr);
    }
    void erase(const uint64_t *keys, uint64_t count) const {
        OK(dtrain_table_erase_rows(table_, keys, count, nullptr, nullptr));
    }
    std::vector<Row> pull(const uint64_t *keys, uint64_t count) const {
        std::vector<Row> rows(count);
        OK(dtrain_table_pull_rows(table_, keys, count, rows.data(), nullptr, nullptr));
        return rows;
    }
    uint64_t count() const {
        uint64_t count = UINT64_MAX;
        OK(dtrain_table_count_rows(table_, &count, nullptr, nullptr));
        return count;
    }
    // What was pushed is there.
    void meet() const {
        if (clocks_) OK(dtrain_table_clock(table_, nullptr, nullptr));
        OK(dtrain_barrier(comm_, nullptr, nullptr));
        const uint64_t any[] = {1, 2, 3, 4, 5, 6, 7, 8}; // on every server, or most
        (void)pull(any, std::size(any));
        OK(dtrain_barrier(comm_, nullptr, nullptr));
    }

  private:
    dtrain_comm_t *comm_;
    dtrain_table_t *table_ = nullptr;
    const bool clocks_;
};

void is_whole(const Case &c, const ranks::Options &options) {
    ranks::run(2, c.servers, options, [c](int rank, dtrain_comm_t *comm) {
        const Rows rows(comm, c);
        const uint64_t first = 8000 * uint64_t(c.servers), more = 19'000 * uint64_t(c.servers);
        std::vector<uint64_t> keys(first + more);
        for (uint64_t i = 0; i < keys.size(); i++) keys[i] = i * 0x9e3779b97f4a7c15;
        const uint64_t *fresh = keys.data() + first;
        if (rank == 0) OK(rows.push(keys.data(), first));
        rows.meet();
        REQUIRE(rows.count() == first);
        rows.meet();
        for (int repetition = 0; rank == 0 && repetition < 3; repetition++) {
            FAILS(DTRAIN_ERR_LIMIT, rows.push(keys.data(), keys.size()));
            const char *who = c.servers == 1
                                  ? "nothing of the push was applied on server 0"
                                  : "nothing of the push was applied on servers 0, 1 and 2";
            REQUIRE(ranks::last_error().find(who) != std::string::npos);
        }
        rows.meet();
        REQUIRE(rows.count() == first);
        for (const Row &row : rows.pull(keys.data(), first)) REQUIRE((row == Row{1, 2, 3}));
        for (const Row &row : rows.pull(fresh, more)) REQUIRE(row == Row{});
        rows.meet();
        if (rank == 0) {
            rows.erase(keys.data(), first);
            OK(rows.push(fresh, more / 2)); // its room is room for others
        }
        rows.meet();
        REQUIRE(rows.count() == more / 2);
        for (const Row &row : rows.pull(fresh, more / 2)) REQUIRE((row == Row{1, 2, 3}));
        rows.meet();
    });
}

void by_the_tables_limit(void **) {
    is_whole({1, DTRAIN_ASYNC, 500'000}, {});
    is_whole({3, DTRAIN_ASYNC, 500'000}, {});
}
void by_the_tables_limit_in_clocks(void **) {
    is_whole({1, DTRAIN_BSP, 800'000}, {});
    is_whole({3, DTRAIN_BSP, 800'000}, {{"transports", "tcp"}});
}
void by_the_servers_limit(void **) {
    is_whole({1, DTRAIN_ASYNC, 0}, {{"ps.memory", "500000"}});
    is_whole({3, DTRAIN_SSP, 0}, {{"ps.memory", "500000"}});
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(by_the_tables_limit),
        cmocka_unit_test(by_the_tables_limit_in_clocks),
        cmocka_unit_test(by_the_servers_limit),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
