// Tables with a rule for each segment of their columns, next to a table for each segment.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "contract/rules.h"
#include "temporary_folder.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr uint32_t parts = 3;
constexpr uint64_t rows = 40;

bool says(const char *text) { return ranks::last_error().find(text) != std::string::npos; }

std::vector<uint64_t> keys_of() {
    std::vector<uint64_t> keys(rows);
    for (uint64_t i = 0; i < rows; i++) keys[i] = i * 0x9e3779b97f4a7c15u;
    return keys;
}
const std::vector<uint64_t> keys = keys_of();

// What a segment, or a table in its place, has.
template <class T> void fill(T &params, uint32_t rule, uint32_t part) {
    params.rule = rule;
    if (rule == DTRAIN_RULE_ADD || rule == DTRAIN_RULE_ASSIGN || rule == DTRAIN_RULE_MEAN ||
        rule == DTRAIN_RULE_MIN || rule == DTRAIN_RULE_MAX)
        return;
    params.learning_rate = 0.1 * (part + 1);
    auto give = [&](std::initializer_list<uint32_t> rules, double &number, double value) {
        if (std::find(rules.begin(), rules.end(), rule) != rules.end()) number = value;
    };
    give({DTRAIN_RULE_MOMENTUM, DTRAIN_RULE_NESTEROV, DTRAIN_RULE_LARS}, params.momentum, 0.5);
    give({DTRAIN_RULE_ADAM, DTRAIN_RULE_ADAMW, DTRAIN_RULE_AMSGRAD, DTRAIN_RULE_LAMB}, params.beta1,
         0.75);
    give({DTRAIN_RULE_RMSPROP, DTRAIN_RULE_ADADELTA}, params.rho, 0.875);
    give({DTRAIN_RULE_FTRL}, params.ftrl_beta, 2);
    give({DTRAIN_RULE_LARS}, params.trust, 0.25);
    if (part != 1) return;
    params.clip_norm = 3;
    params.weight_decay = 0.01;
    params.l1 = 0.001;
}

uint32_t place_of(uint32_t rule) {
    return uint32_t(std::find(common_rules.begin(), common_rules.end(), rule) -
                    common_rules.begin());
}

struct Job {
    bool sparse;
    uint32_t consistency, dtype;
    uint32_t first_rule; // of three that follow each other in common_rules
    uint64_t width(uint32_t part) const { return sparse ? 3 + 2 * part : 16; }
    uint32_t rule(uint32_t part) const {
        return common_rules[(first_rule + part) % common_rules.size()];
    }
    uint64_t row() const { return width(0) + width(1) + width(2); }
    uint64_t first(uint32_t part) const {
        return part == 0 ? 0 : first(part - 1) + width(part - 1);
    }

    dtrain_table_params_t params(uint64_t wide) const {
        dtrain_table_params_t its;
        DTRAIN_INIT(&its);
        its.dtype = dtype;
        its.consistency = consistency;
        its.initial = 0.5;
        if (sparse) {
            its.dim = uint32_t(wide);
        } else {
            its.row_length = wide;
            its.length = rows * wide;
        }
        return its;
    }
    dtrain_table_t *segmented(dtrain_comm_t *comm) const {
        dtrain_segment_t segments[parts];
        for (uint32_t i = 0; i < parts; i++) {
            DTRAIN_INIT(&segments[i]);
            segments[i].first = first(i);
            segments[i].count = width(i);
            fill(segments[i], rule(i), i);
        }
        dtrain_table_params_t its = params(row());
        its.segments = segments;
        its.segment_count = parts;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "whole", &its, &table));
        return table;
    }
    dtrain_table_t *single(dtrain_comm_t *comm, uint32_t part) const {
        dtrain_table_params_t its = params(width(part));
        fill(its, rule(part), part);
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, ("part" + std::to_string(part)).c_str(), &its, &table));
        return table;
    }
    // Numbers whose sums are exact, so that their order does not matter.
    std::vector<float> gradient(int rank, int step) const {
        std::vector<float> g(rows * row());
        for (size_t i = 0; i < g.size(); i++)
            g[i] = float(int(i * 7 + size_t(step * 3 + rank * 5)) % 23 - 11) / 4;
        return g;
    }
    std::vector<float> columns(const std::vector<float> &from, uint32_t part) const {
        std::vector<float> some;
        for (uint64_t r = 0; r < rows; r++)
            some.insert(some.end(), from.begin() + ptrdiff_t(r * row() + first(part)),
                        from.begin() + ptrdiff_t(r * row() + first(part) + width(part)));
        return some;
    }
    void push(dtrain_table_t *table, const std::vector<float> &g) const {
        if (sparse)
            OK(dtrain_table_push_rows(table, keys.data(), rows, g.data(), nullptr, nullptr));
        else
            OK(dtrain_table_push(table, 0, g.size(), g.data(), nullptr, nullptr));
    }
    std::vector<float> pull(dtrain_table_t *table, uint64_t wide) const {
        std::vector<float> w(rows * wide);
        if (sparse)
            OK(dtrain_table_pull_rows(table, keys.data(), rows, w.data(), nullptr, nullptr));
        else
            OK(dtrain_table_pull(table, 0, w.size(), w.data(), nullptr, nullptr));
        return w;
    }
    std::vector<char> state(dtrain_table_t *table, uint32_t index, std::string &name) const {
        const char *its = nullptr;
        uint32_t type = 0;
        uint64_t count = 0;
        name.clear();
        if (dtrain_table_describe_state(table, index, &its, &type, &count) != DTRAIN_OK) return {};
        name = its;
        std::vector<char> numbers(count * (sparse ? rows : 1) * dtrain_dtype_size(type));
        if (sparse)
            OK(dtrain_table_pull_state_rows(table, index, keys.data(), rows, numbers.data(),
                                            nullptr, nullptr));
        else
            OK(dtrain_table_pull_state(table, index, 0, count, numbers.data(), nullptr, nullptr));
        return numbers;
    }
    // Values and state of the segments are those of the tables in their place, to the bit.
    void compare(dtrain_table_t *whole, dtrain_table_t *const *tables) const {
        const std::vector<float> w = pull(whole, row());
        uint32_t index = 0;
        for (uint32_t part = 0; part < parts; part++) {
            REQUIRE(columns(w, part) == pull(tables[part], width(part)));
            std::string name, expected;
            for (uint32_t i = 0;; i++) {
                const std::vector<char> its = state(tables[part], i, expected);
                if (expected.empty() || expected == "steps") break;
                REQUIRE(state(whole, index++, name) == its);
                REQUIRE(name == "segment" + std::to_string(part) + "." + expected);
            }
        }
        std::string name;
        state(whole, index, name);
        REQUIRE(name.empty() || name == "steps");
    }
};

void run(int workers, int servers, const Job &job, const ranks::Options &options = {}) {
    ranks::run(workers, servers, options, [&](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *tables[parts + 1] = {};
        for (uint32_t i = 0; i < parts; i++) tables[i] = job.single(comm, i);
        tables[parts] = job.segmented(comm);
        auto barrier = [&] { OK(dtrain_barrier(comm, nullptr, nullptr)); };
        for (int step = 0; step < 4; step++) {
            const std::vector<float> g = job.gradient(rank, step);
            for (int turn = 0; turn < workers; turn++) { // outside of BSP the order matters
                if (turn == rank) {
                    for (uint32_t i = 0; i < parts; i++) job.push(tables[i], job.columns(g, i));
                    job.push(tables[parts], g);
                }
                if (job.consistency != DTRAIN_BSP) barrier();
            }
            for (dtrain_table_t *table : tables) OK(dtrain_table_clock(table, nullptr, nullptr));
            job.compare(tables[parts], tables);
            barrier();
        }
        for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
    });
}

void as_tables_of_their_own(void **) {
    for (uint32_t rule = 0; rule < common_rules.size(); rule += parts)
        for (bool sparse : {false, true}) {
            run(2, 2, {sparse, DTRAIN_ASYNC, DTRAIN_F32, rule});
            run(3, 0, {sparse, DTRAIN_BSP, DTRAIN_F32, rule});
            run(1, 1, {sparse, DTRAIN_SSP, DTRAIN_F32, rule}, {{"transports", "tcp"}});
        }
}

// The table's rate is a factor, and what replaces it, too.
void rates(void **) {
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
        for (bool sparse : {false, true})
            ranks::run(1, 2, {}, [&](int, dtrain_comm_t *comm) {
                const Job job = {sparse, consistency, DTRAIN_F32, place_of(DTRAIN_RULE_SGD)};
                dtrain_table_t *tables[parts] = {}, *whole = job.segmented(comm);
                for (uint32_t i = 0; i < parts; i++) tables[i] = job.single(comm, i);
                for (double factor : {0.5, 4.0}) {
                    OK(dtrain_table_set_rate(whole, factor, nullptr, nullptr));
                    const std::vector<float> g = job.gradient(0, int(factor));
                    job.push(whole, g);
                    OK(dtrain_table_clock(whole, nullptr, nullptr));
                    for (uint32_t i = 0; i < parts; i++) {
                        OK(dtrain_table_set_rate(tables[i], 0.1 * (i + 1) * factor, nullptr,
                                                 nullptr));
                        job.push(tables[i], job.columns(g, i));
                        OK(dtrain_table_clock(tables[i], nullptr, nullptr));
                    }
                    job.compare(whole, tables);
                }
                OK(dtrain_table_destroy(whole));
                for (dtrain_table_t *table : tables) OK(dtrain_table_destroy(table));
            });
}

// A key that repeats in a push: sums, the last, the least, each in its columns.
void repeated_keys(void **) {
    ranks::run(1, 0, {}, [&](int, dtrain_comm_t *comm) {
        dtrain_segment_t segments[3];
        const uint32_t rules[] = {DTRAIN_RULE_ADD, DTRAIN_RULE_ASSIGN, DTRAIN_RULE_MIN};
        for (uint32_t i = 0; i < 3; i++) {
            DTRAIN_INIT(&segments[i]);
            segments[i].first = i;
            segments[i].count = 1;
            segments[i].rule = rules[i];
        }
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_I32;
        params.dim = 3;
        params.segments = segments;
        params.segment_count = 3;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        const uint64_t some[] = {7, 8, 7};
        const int32_t g[] = {1, 2, -5, 0, 0, 0, 10, 20, -3};
        int32_t w[3] = {};
        OK(dtrain_table_push_rows(table, some, 3, g, nullptr, nullptr));
        OK(dtrain_table_pull_rows(table, some, 1, w, nullptr, nullptr));
        REQUIRE(w[0] == 11 && w[1] == 20 && w[2] == -5);
        OK(dtrain_table_destroy(table));
    });
}

void checkpoints(void **) {
    for (bool sparse : {false, true}) {
        TemporaryFolder folder;
        const Job job = {sparse, DTRAIN_ASYNC, DTRAIN_F32, place_of(DTRAIN_RULE_AMSGRAD)};
        std::vector<float> expected;
        std::vector<char> kept;
        std::string name;
        for (int servers : {2, 3})
            ranks::run(1, servers, {{"checkpoint.directory", folder.name}},
                       [&](int, dtrain_comm_t *comm) {
                           dtrain_table_t *table = job.segmented(comm);
                           if (servers == 2) {
                               job.push(table, job.gradient(0, 0));
                               OK(dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr));
                               job.push(table, job.gradient(0, 1));
                               expected = job.pull(table, job.row());
                               kept = job.state(table, 2, name);
                           } else {
                               OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
                               job.push(table, job.gradient(0, 1));
                               REQUIRE(job.pull(table, job.row()) == expected);
                               REQUIRE(job.state(table, 2, name) == kept);
                               OK(dtrain_table_destroy(table));
                               const Job other = {sparse, DTRAIN_ASYNC, DTRAIN_F32,
                                                  place_of(DTRAIN_RULE_ADAGRAD)};
                               table = other.segmented(comm);
                               FAILS(DTRAIN_ERR_MISMATCH,
                                     dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr));
                               REQUIRE(says("amsgrad:") && says("adagrad:"));
                           }
                           OK(dtrain_table_destroy(table));
                       });
    }
}

void refused(void **) {
    ranks::run(1, 0, {}, [&](int, dtrain_comm_t *comm) {
        auto refuses = [&](const char *text, auto &&change) {
            dtrain_segment_t segments[DTRAIN_SEGMENTS + 1];
            for (uint32_t i = 0; i <= DTRAIN_SEGMENTS; i++) {
                DTRAIN_INIT(&segments[i]);
                segments[i].first = i;
                segments[i].count = 1;
                segments[i].rule = DTRAIN_RULE_SGD;
            }
            dtrain_table_params_t params;
            DTRAIN_INIT(&params);
            params.dtype = DTRAIN_F32;
            params.dim = 3;
            params.segments = segments;
            params.segment_count = 3;
            change(params, segments);
            dtrain_table_t *table = nullptr;
            const dtrain_status_t status = dtrain_table_create(comm, "t", &params, &table);
            if (status == DTRAIN_OK || !says(text))
                fprintf(stderr, "%s, not: %s\n", text, ranks::last_error().c_str());
            REQUIRE(status == DTRAIN_ERR_INVALID && says(text));
        };
        using P = dtrain_table_params_t;
        using S = dtrain_segment_t;
        refuses("segment 1: its first column is 0 where 1", [](P &, S *s) { s[1].first = 0; });
        refuses("segment 1: its first column is 2 where 1", [](P &, S *s) { s[1].first = 2; });
        refuses("segment 2: its columns are 2 where 1", [](P &, S *s) { s[2].count = 2; });
        refuses("segment 2: its columns are", [](P &, S *s) { s[2].count = UINT64_MAX; });
        refuses("segment 0: its columns are 0", [](P &, S *s) { s[0].count = 0; });
        refuses("the segments end before column 2 where 3", [](P &p, S *) { p.segment_count = 2; });
        refuses("at most 16", [](P &p, S *) { p.dim = p.segment_count = 17; });
        refuses("NULL", [](P &p, S *) { p.segments = nullptr; });
        refuses("segment_count is 0, but segments is not NULL",
                [](P &p, S *) { p.segment_count = 0; });
        refuses("rule of its own", [](P &p, S *) { p.rule = DTRAIN_RULE_ADD; });
        for (uint32_t rule : {uint32_t{0}, uint32_t{DTRAIN_RULE_DC_SGD},
                              uint32_t{DTRAIN_RULE_FUNCTION}, uint32_t{1000}, UINT32_MAX})
            refuses("segment 1: rule", [&](P &, S *s) { s[1].rule = rule; });
        refuses("segment 0: rule is not valid", [](P &p, S *) { p.dtype = DTRAIN_I32; });
        refuses("segment 1: beta1 is not valid", [](P &, S *s) {
            s[1].rule = DTRAIN_RULE_ADAM;
            s[1].beta1 = 1;
        });
        refuses("segment 1: clip_norm", [](P &, S *s) { s[1].clip_norm = -1; });
        refuses("segment 2: l1", [](P &, S *s) {
            s[2].rule = DTRAIN_RULE_MIN;
            s[2].l1 = 1;
        });
        refuses("aggregate", [](P &p, S *s) {
            s[2].rule = DTRAIN_RULE_MIN;
            p.aggregate = DTRAIN_AVG;
        });
        refuses("clip_norm", [](P &p, S *) { p.clip_norm = 1; });
        refuses("give a dim, or a row_length", [](P &p, S *) {
            p.length = 9;
            p.dim = 0;
        });
        refuses("give a dim, or a row_length", [](P &p, S *) {
            p.length = 10;
            p.row_length = 3;
            p.dim = 0;
        });
        refuses("reserved", [](P &p, S *) { p.reserved = 1; });
        refuses("segment 0: given is 0x100 (known are 0x2ff), reserved 0",
                [](P &, S *s) { s[0].given = DTRAIN_GIVEN_COMPENSATION; });
        refuses("given is 0x0 (known are 0x2ff), reserved 1", [](P &, S *s) { s[0].reserved = 1; });
        refuses("segment 0: momentum is given, which the rule sgd does not have", [](P &, S *s) {
            s[0].rule = DTRAIN_RULE_SGD;
            s[0].given = DTRAIN_GIVEN_MOMENTUM;
        });
        refuses("momentum is given, which a table with segments does not have",
                [](P &p, S *) { p.momentum = 0.5; });
        refuses("struct_size", [](P &, S *s) { s[0].struct_size = 0; });
        refuses("segment 1: its struct_size", [](P &, S *s) { s[1].struct_size -= 8; });
        refuses("learning_rate", [](P &p, S *s) { // the table's rate with a rule that divides by it
            s[1].rule = DTRAIN_RULE_FTRL;
            p.learning_rate = -1;
        });
        // Ranges are whole rows, of values and of a segment's state.
        const Job job = {false, DTRAIN_ASYNC, DTRAIN_F32, place_of(DTRAIN_RULE_MOMENTUM)};
        dtrain_table_t *table = job.segmented(comm);
        std::vector<float> some(job.row());
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_push(table, 0, 16, some.data(), nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID,
              dtrain_table_set_state(table, 0, 8, 16, some.data(), nullptr, nullptr));
        REQUIRE(says("whole rows of 16"));
        OK(dtrain_table_set_state(table, 0, 16, 16, some.data(), nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_set_rate(table, NAN, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
    // Workers that do not agree.
    ranks::run(2, 1, {}, [&](int rank, dtrain_comm_t *comm) {
        dtrain_segment_t segment;
        DTRAIN_INIT(&segment);
        segment.count = 4;
        segment.rule = DTRAIN_RULE_SGD;
        segment.learning_rate = rank == 0 ? 0.5 : 0.25;
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.dim = 4;
        params.segments = &segment;
        params.segment_count = 1;
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_table_create(comm, "t", &params, &table));
        REQUIRE(says("rank 0 gives segment 0 learning_rate 0.5, rank 1 segment 0"));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(as_tables_of_their_own),
        cmocka_unit_test(rates),
        cmocka_unit_test(repeated_keys),
        cmocka_unit_test(checkpoints),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
