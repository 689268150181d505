// Update rules of one's own: registered, or loaded by servers from shared objects.
// SPDX-License-Identifier: Apache-2.0
#include "contract/function_case.h"
#include "temporary_folder.h"

using namespace functions;

namespace {

// A dense and a sparse table through the same calls.
struct Access {
    dtrain_table_t *table;
    std::vector<uint64_t> keys; // of a sparse one
    uint64_t numbers() const { return keys.empty() ? length : keys.size() * row_length; }
    void push(const std::vector<float> &g) const {
        if (keys.empty())
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        else
            OK(dtrain_table_push_rows(table, keys.data(), keys.size(), g.data(), nullptr, nullptr));
    }
    std::vector<float> pull() const {
        std::vector<float> w(numbers());
        if (keys.empty())
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
        else
            OK(dtrain_table_pull_rows(table, keys.data(), keys.size(), w.data(), nullptr, nullptr));
        return w;
    }
    std::vector<float> state() const {
        std::vector<float> sum(numbers());
        if (keys.empty())
            OK(dtrain_table_pull_state(table, 0, 0, length, sum.data(), nullptr, nullptr));
        else
            OK(dtrain_table_pull_state_rows(table, 0, keys.data(), keys.size(), sum.data(), nullptr,
                                            nullptr));
        return sum;
    }
};

std::vector<uint64_t> some_keys() {
    std::vector<uint64_t> keys(700);
    for (uint64_t i = 0; i < keys.size(); i++) keys[i] = i * i * 0x9e3779b97f4a7c15u;
    return keys;
}

void require_close(const std::vector<float> &got, const std::vector<float> &expected) {
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); i++)
        REQUIRE(std::fabs(got[i] - expected[i]) <= 1e-5f * (1 + std::fabs(expected[i])));
}

// A job whose tables with the function and with the built-in rule end up the same.
void like_adagrad(int workers, int servers, uint32_t consistency, const ranks::Options &more) {
    ranks::Options options = loaded;
    options.insert(options.end(), more.begin(), more.end());
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        Access pairs[2][2];
        for (int i = 0; i < 2; i++) {
            const char *function = i == 0 ? "clipped_adagrad" : nullptr;
            pairs[0][i] = {make(comm, i == 0 ? "a" : "b", dense(consistency, function)), {}};
            pairs[1][i] = {make(comm, i == 0 ? "c" : "d", sparse(consistency, function)),
                           some_keys()};
        }
        for (auto &[own, builtin] : pairs) {
            for (int step = 0; step < 4; step++) {
                std::vector<float> g(own.numbers());
                for (size_t i = 0; i < g.size(); i++)
                    g[i] = std::sin(float(i) * 0.1f + float(step + 3 * rank));
                for (const Access &table : {own, builtin}) {
                    if (consistency == DTRAIN_ASYNC) // in turn: the order matters
                        for (int turn = 0; turn < workers; turn++) {
                            if (turn == rank) table.push(g);
                            OK(dtrain_barrier(comm, nullptr, nullptr));
                        }
                    else if (consistency == DTRAIN_BSP || rank == 0)
                        table.push(g);
                    if (consistency != DTRAIN_ASYNC)
                        OK(dtrain_table_clock(table.table, nullptr, nullptr));
                }
                if (consistency == DTRAIN_SSP) OK(dtrain_barrier(comm, nullptr, nullptr));
                require_close(own.pull(), builtin.pull());
                OK(dtrain_barrier(comm, nullptr, nullptr)); // SSP would show later pushes
            }
            require_close(own.state(), builtin.state());
            for (const Access &table : {own, builtin}) OK(dtrain_table_destroy(table.table));
        }
    });
}

void from_a_file(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP}) {
        like_adagrad(1, 0, consistency, {});
        like_adagrad(2, 2, consistency, {{"transports", "tcp"}});
        like_adagrad(3, 1, consistency, {});
    }
    like_adagrad(2, 0, DTRAIN_BSP, {{"transports", "tcp"}});
}

// A file may have several, each under its name.
void two_in_a_file(void **) {
    ranks::run(2, 0, {{"ps.functions", plugins + "/libfunction_two.so"}},
               [&](int, dtrain_comm_t *comm) {
                   const Access plus = {make(comm, "p", dense(DTRAIN_BSP, "plus")), {}};
                   const Access minus = {make(comm, "m", dense(DTRAIN_BSP, "minus")), {}};
                   for (const Access &table : {plus, minus}) {
                       table.push(std::vector<float>(length, 3));
                       OK(dtrain_table_clock(table.table, nullptr, nullptr));
                   }
                   for (float x : plus.pull()) REQUIRE(x == 6);
                   for (float x : minus.pull()) REQUIRE(x == -6);
                   OK(dtrain_barrier(comm, nullptr, nullptr));
                   for (const Access &table : {plus, minus}) OK(dtrain_table_destroy(table.table));
               });
}

// What pulls get, and what a clock's sum is, is the function's, too.
void get_and_aggregate(void **) {
    for (int workers : {1, 2, 3})
        ranks::run_with_contexts(
            workers, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                static Seen seen;
                dtrain_function_t function = function_of(seen);
                function.get = doubled;
                function.aggregate = greatest;
                OK(dtrain_function_register(context, &function));
                FAILS(DTRAIN_ERR_STATE, dtrain_function_register(context, &function));
                dtrain_table_params_t its[] = {dense(DTRAIN_BSP, "add"), sparse(DTRAIN_BSP, "add")};
                its[1].initial = 0;
                Access tables[] = {{make(comm, "d", its[0]), {}},
                                   {make(comm, "s", its[1]), some_keys()}};
                for (const Access &table : tables) {
                    for (int clock = 0; clock < 3; clock++) {
                        table.push(std::vector<float>(table.numbers(), float(rank + 1)));
                        OK(dtrain_table_clock(table.table, nullptr, nullptr));
                        for (float x : table.pull()) REQUIRE(x == 2 * float(workers * (clock + 1)));
                    }
                    OK(dtrain_barrier(comm, nullptr, nullptr));
                }
                // Without a row: initial values, through the function. Nothing is made.
                const uint64_t fresh = 12345;
                float w[row_length];
                uint64_t rows = 0;
                OK(dtrain_table_pull_rows(tables[1].table, &fresh, 1, w, nullptr, nullptr));
                for (float x : w) REQUIRE(x == 0);
                OK(dtrain_table_count_rows(tables[1].table, &rows, nullptr, nullptr));
                REQUIRE(rows == some_keys().size());
                REQUIRE(seen.updates > 0 && seen.gets > 0 && (workers == 1 || seen.aggregates > 0));
                if (rank == 0) { // ranges are whole rows
                    FAILS(DTRAIN_ERR_INVALID,
                          dtrain_table_pull(tables[0].table, 1, 8, w, nullptr, nullptr));
                    FAILS(DTRAIN_ERR_INVALID,
                          dtrain_table_push(tables[0].table, 0, 4, w, nullptr, nullptr));
                    OK(dtrain_table_set(tables[0].table, 1, 2, w, nullptr, nullptr));
                }
                OK(dtrain_barrier(comm, nullptr, nullptr));
                for (const Access &table : tables) OK(dtrain_table_destroy(table.table));
            });
}

// A server in a program that has the function; its worker has but the name.
void registered_where_a_server_is(void **) {
    static Seen seen;
    ranks::Exchange exchange(2);
    std::thread serving([&] {
        dtrain_context_t *context = ranks::make_context({});
        const dtrain_function_t function = function_of(seen);
        OK(dtrain_function_register(context, &function));
        ranks::Member member = {&exchange, 1};
        dtrain_server_params_t params;
        DTRAIN_INIT(&params);
        params.size = params.servers = 1;
        params.oob = &ranks::Member::allgather;
        params.oob_arg = &member;
        dtrain_server_t *server = nullptr;
        OK(dtrain_server_create(context, "oob", &params, &server));
        OK(dtrain_server_wait(server, -1));
        OK(dtrain_server_destroy(server));
        OK(dtrain_context_destroy(context));
    });
    dtrain_context_t *context = ranks::make_context({});
    ranks::Member member = {&exchange, 0};
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = params.servers = 1;
    params.oob = &ranks::Member::allgather;
    params.oob_arg = &member;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, "oob", &params, &comm));
    const Access table = {make(comm, "w", sparse(DTRAIN_ASYNC, "add")), some_keys()};
    table.push(std::vector<float>(table.numbers(), 1));
    for (float x : table.pull()) REQUIRE(x == 1.5f);
    const char *name = nullptr;
    uint32_t dtype = 0;
    uint64_t count = 0;
    OK(dtrain_table_describe_state(table.table, 1, &name, &dtype, &count));
    REQUIRE(std::string(name) == "times" && dtype == DTRAIN_U64 && count == 1);
    OK(dtrain_table_destroy(table.table));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
    serving.join();
}

// Without rows a function is given ranges; states have the names, types and sizes it says.
void ranges_and_states(void **) {
    ranks::run_with_contexts(2, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        static Seen seen;
        dtrain_function_t function = function_of(seen);
        OK(dtrain_function_register(context, &function));
        dtrain_table_params_t params = dense(DTRAIN_ASYNC, "add", 0);
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(says("row_length")); // it counts rows
        table = make(comm, "w", dense(DTRAIN_ASYNC, "add"));
        const char *name = nullptr;
        uint32_t dtype = 0;
        uint64_t count = 0;
        OK(dtrain_table_describe_state(table, 0, &name, &dtype, &count));
        REQUIRE(std::string(name) == "rates" && dtype == DTRAIN_F64 && count == length);
        OK(dtrain_table_describe_state(table, 1, &name, &dtype, &count));
        REQUIRE(std::string(name) == "times" && dtype == DTRAIN_U64);
        REQUIRE(count == length / row_length);
        FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_describe_state(table, 2, &name, &dtype, &count));
        REQUIRE(says("function add"));
        if (rank == 0) {
            std::vector<float> g(row_length * 3, 1), w(row_length * 3);
            std::vector<uint64_t> times(5);
            std::vector<double> rates(row_length * 3);
            OK(dtrain_table_set_rate(table, 4, nullptr, nullptr));
            OK(dtrain_table_push(table, 0, g.size(), g.data(), nullptr, nullptr));
            OK(dtrain_table_push_pull(table, row_length, row_length, g.data(), w.data(), nullptr,
                                      nullptr));
            REQUIRE(w[0] == 2 && w[row_length - 1] == 2);
            OK(dtrain_table_pull_state(table, 1, 0, 5, times.data(), nullptr, nullptr));
            REQUIRE(times == std::vector<uint64_t>({1, 2, 1, 0, 0}));
            OK(dtrain_table_pull_state(table, 0, 7, 3, rates.data(), nullptr, nullptr));
            REQUIRE(rates[0] == 4 && rates[1] == 8 && rates[2] == 8);
            times[0] = uint64_t{1} << 60; // any number, other than counts of steps
            OK(dtrain_table_set_state(table, 1, 4, 1, times.data(), nullptr, nullptr));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
    ranks::run_with_contexts(2, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        static Seen seen;
        dtrain_function_t function = function_of(seen, "plain");
        function.state_count = 0;
        function.update = [](void *, const dtrain_function_batch_t *batch) -> dtrain_status_t {
            REQUIRE(batch->count == 1);
            for (uint64_t i = 0; i < batch->dim; i++)
                static_cast<int32_t *>(batch->rows[0].values)[i] =
                    int32_t(batch->rows[0].key + i) +
                    static_cast<const int32_t *>(batch->rows[0].pushed)[i];
            return DTRAIN_OK;
        };
        OK(dtrain_function_register(context, &function));
        for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP}) {
            dtrain_table_params_t params = dense(consistency, "plain", 0);
            params.dtype = DTRAIN_I32;
            dtrain_table_t *table = make(comm, "w", params);
            std::vector<int32_t> g(length, 10), w(length);
            if (rank == 0) OK(dtrain_table_push(table, 5, 9000, g.data(), nullptr, nullptr));
            OK(dtrain_table_clock(table, nullptr, nullptr));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, nullptr));
            for (int32_t i = 0; i < int32_t(length); i++)
                REQUIRE(w[size_t(i)] == (i >= 5 && i < 9005 ? i + 10 : 0));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        }
    });
}

// What fails is its caller's error, and changes nothing.
void failures(int workers, const ranks::Options &options) {
    ranks::run_with_contexts(
        workers, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
            static Seen seen;
            dtrain_function_t function = function_of(seen);
            function.get = doubled;
            OK(dtrain_function_register(context, &function));
            dtrain_table_t *d = make(comm, "d", dense(DTRAIN_ASYNC, "add")),
                           *s = make(comm, "s", sparse(DTRAIN_ASYNC, "add"));
            float w[2 * row_length] = {}, g[2 * row_length] = {};
            uint64_t times[2] = {9, 9};
            const uint64_t keys[] = {3, 4};
            if (rank == 0) {
                g[0] = g[row_length + 3] = 666; // of both rows, which may lie on two servers
                FAILS(DTRAIN_ERR_CORRUPT, dtrain_table_push(d, 0, 16, g, nullptr, nullptr));
                REQUIRE(says("server 0") && says("function \"add\"") &&
                        says("666 of table of dim 0"));
                FAILS(DTRAIN_ERR_CORRUPT, dtrain_table_push_rows(s, keys, 2, g, nullptr, nullptr));
                FAILS(DTRAIN_ERR_CORRUPT, dtrain_table_push_pull(d, 0, 16, g, w, nullptr, nullptr));
                FAILS(DTRAIN_ERR_CORRUPT,
                      dtrain_table_push_pull_rows(s, keys, 2, g, w, nullptr, nullptr));
                REQUIRE(says("666 of table of dim 8"));
                OK(dtrain_table_pull_state(d, 1, 0, 2, times, nullptr, nullptr));
                REQUIRE(times[0] == 0 && times[1] == 0);
                OK(dtrain_table_pull_state_rows(s, 1, keys + 1, 1, times, nullptr, nullptr));
                REQUIRE(times[0] == 0);
                g[0] = g[row_length + 3] = 1; // the tables and their servers go on
                OK(dtrain_table_push_pull(d, 0, 16, g, w, nullptr, nullptr));
                REQUIRE(w[0] == 2 && w[1] == 0 && w[row_length + 3] == 2);
                OK(dtrain_table_push_pull_rows(s, keys, 2, g, w, nullptr, nullptr));
                REQUIRE(w[0] == 3 && w[1] == 1 && w[row_length + 3] == 3); // initially 0.5
                g[0] = 13; // which get() refuses without a word
                OK(dtrain_table_set(d, 0, 1, g, nullptr, nullptr));
                FAILS(DTRAIN_ERR_STATE, dtrain_table_pull(d, 0, 8, w, nullptr, nullptr));
                REQUIRE(says("get") && says("DTRAIN_ERR_STATE"));
                OK(dtrain_table_set_rows(s, keys, 1, g, nullptr, nullptr));
                FAILS(DTRAIN_ERR_STATE, dtrain_table_pull_rows(s, keys, 2, w, nullptr, nullptr));
                OK(dtrain_table_pull_rows(s, keys + 1, 1, w, nullptr, nullptr));
            }
            OK(dtrain_barrier(comm, nullptr, nullptr));
            for (dtrain_table_t *table : {d, s}) OK(dtrain_table_destroy(table));
        });
}
void failures_are_the_callers(void **) {
    failures(1, {});
    failures(2, {{"transports", "tcp"}});
    failures(2, {});
}

// Under BSP a clock's update fails after its pushes were taken: everybody learns of it, and a
// checkpoint heals the table.
void a_clock_that_fails(void **) {
    for (bool rows : {false, true}) {
        TemporaryFolder folder;
        const ranks::Options options = {{"checkpoint.directory", folder.name},
                                        {"log.level", "error"}};
        ranks::run_with_contexts(
            2, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                static Seen seen;
                dtrain_function_t function = function_of(seen);
                function.aggregate = greatest;
                OK(dtrain_function_register(context, &function));
                dtrain_table_params_t its =
                    rows ? sparse(DTRAIN_BSP, "add") : dense(DTRAIN_BSP, "add");
                its.initial = 0;
                Access table = {make(comm, "w", its), rows ? some_keys() : std::vector<uint64_t>()};
                std::vector<float> g(table.numbers(), 1), w(table.numbers());
                auto push = [&] {
                    return rows ? dtrain_table_push_rows(table.table, table.keys.data(),
                                                         table.keys.size(), g.data(), nullptr,
                                                         nullptr)
                                : dtrain_table_push(table.table, 0, length, g.data(), nullptr,
                                                    nullptr);
                };
                auto pull = [&] {
                    return rows ? dtrain_table_pull_rows(table.table, table.keys.data(),
                                                         table.keys.size(), w.data(), nullptr,
                                                         nullptr)
                                : dtrain_table_pull(table.table, 0, length, w.data(), nullptr,
                                                    nullptr);
                };
                auto clock = [&] { OK(dtrain_table_clock(table.table, nullptr, nullptr)); };
                OK(push());
                clock();
                if (rank == 0) OK(dtrain_checkpoint_save(&table.table, 1, 1, nullptr, nullptr));
                // A contribution that cannot be combined is its sender's error; the clock goes on.
                if (rank == 1) OK(push());
                OK(dtrain_barrier(comm, nullptr, nullptr));
                std::fill(g.begin(), g.end(), 777.f);
                if (rank == 0) {
                    FAILS(DTRAIN_ERR_INVALID, push());
                    REQUIRE(says("aggregate") && says("it returned 7"));
                }
                clock();
                OK(pull());
                for (float x : w) REQUIRE(x == 2);
                // Now one that is found out when the clock ends.
                std::fill(g.begin(), g.end(), 666.f);
                if (rank == 1) OK(push());
                clock();
                FAILS(DTRAIN_ERR_CORRUPT, pull());
                REQUIRE(says("clock 2") && says("restore") && says("666"));
                FAILS(DTRAIN_ERR_CORRUPT, push());
                FAILS(
                    DTRAIN_ERR_CORRUPT,
                    dtrain_checkpoint_save(&table.table, 1, uint64_t(2 + rank), nullptr, nullptr));
                OK(dtrain_barrier(comm, nullptr, nullptr));
                if (rank == 0) OK(dtrain_checkpoint_restore(&table.table, 1, 1, nullptr, nullptr));
                OK(dtrain_barrier(comm, nullptr, nullptr));
                OK(pull());
                for (float x : w) REQUIRE(x == 1);
                std::fill(g.begin(), g.end(), 2.f);
                OK(push());
                clock();
                OK(pull());
                for (float x : w) REQUIRE(x == 3);
                OK(dtrain_barrier(comm, nullptr, nullptr));
                OK(dtrain_table_destroy(table.table));
            });
    }
}

// State of any type comes back on another number of servers; a table of another function is
// refused.
void checkpoints(void **) {
    TemporaryFolder folder;
    const ranks::Options options = {{"checkpoint.directory", folder.name},
                                    {"checkpoint.keep", "9"}};
    std::vector<double> rates(row_length);
    for (int workers : {2, 3})
        ranks::run_with_contexts(
            workers, options, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                static Seen seen;
                dtrain_function_t function = function_of(seen), other = function_of(seen, "other");
                OK(dtrain_function_register(context, &function));
                OK(dtrain_function_register(context, &other));
                Access tables[] = {{make(comm, "d", dense(DTRAIN_ASYNC, "add")), {}},
                                   {make(comm, "s", sparse(DTRAIN_ASYNC, "add")), some_keys()}};
                dtrain_table_t *both[] = {tables[0].table, tables[1].table};
                std::vector<uint64_t> times(length / row_length);
                if (rank == 0 && workers == 2) {
                    for (const Access &table : tables)
                        for (int i = 0; i < 3; i++)
                            table.push(std::vector<float>(table.numbers(), 1));
                    OK(dtrain_checkpoint_save(both, 2, 5, nullptr, nullptr));
                } else if (rank == 0) {
                    OK(dtrain_checkpoint_restore(both, 2, 5, nullptr, nullptr));
                    for (float x : tables[0].pull()) REQUIRE(x == 3);
                    for (float x : tables[1].pull()) REQUIRE(x == 3.5f);
                    OK(dtrain_table_pull_state(both[0], 1, 0, times.size(), times.data(), nullptr,
                                               nullptr));
                    for (uint64_t n : times) REQUIRE(n == 3);
                    OK(dtrain_table_pull_state_rows(both[1], 0, &tables[1].keys[1], 1, rates.data(),
                                                    nullptr, nullptr));
                    for (double r : rates) REQUIRE(r == 0.75);
                }
                OK(dtrain_barrier(comm, nullptr, nullptr));
                for (dtrain_table_t *table : both) OK(dtrain_table_destroy(table));
                dtrain_table_t *changed = make(comm, "d", dense(DTRAIN_ASYNC, "other"));
                if (rank == 0) {
                    FAILS(DTRAIN_ERR_MISMATCH,
                          dtrain_checkpoint_restore(&changed, 1, 5, nullptr, nullptr));
                    REQUIRE(says("function add") && says("function other"));
                }
                OK(dtrain_barrier(comm, nullptr, nullptr));
                OK(dtrain_table_destroy(changed));
            });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(from_a_file),        cmocka_unit_test(two_in_a_file),
        cmocka_unit_test(get_and_aggregate),  cmocka_unit_test(registered_where_a_server_is),
        cmocka_unit_test(ranges_and_states),  cmocka_unit_test(failures_are_the_callers),
        cmocka_unit_test(a_clock_that_fails), cmocka_unit_test(checkpoints),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
