// Tables that are kept, or travel, in fewer bytes than the caller's f32: every operation, next to
// sums in double; what is counted; what they learn.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t dim = 24;
constexpr uint64_t rows = 60, length = rows * dim;
constexpr uint32_t dtypes[] = {0, DTRAIN_F16, DTRAIN_BF16, DTRAIN_I8};

uint64_t first_seed() {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20261122;
    print_message("seed %llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

// By how much a number may be off that is rounded to nearest; most: the largest there is.
double half_step(uint32_t dtype, double most) {
    return dtype == DTRAIN_F16    ? most * 0x1p-11
           : dtype == DTRAIN_BF16 ? most * 0x1p-8
           : dtype == DTRAIN_I8   ? most / 254 * 1.001
                                  : most * 0x1p-22; // some sums in f32
}

struct Case {
    dtrain_table_params_t params;
    dtrain_segment_t segments[2];
    bool sparse = false;
    int workers = 1, servers = 1;
    uint64_t seed = 0;
};

Case random_case(uint64_t seed) {
    std::mt19937_64 random(seed);
    Case c;
    c.seed = seed;
    DTRAIN_INIT(&c.params);
    c.params.dtype = DTRAIN_F32;
    c.params.storage_dtype = dtypes[random() % 4];
    c.params.wire_dtype = dtypes[random() % 4];
    c.sparse = random() % 2 == 0;
    c.params.length = c.sparse ? 0 : length;
    c.params.dim = c.sparse ? dim : 0;
    c.workers = 1 + int(random() % 2);
    c.servers = int(random() % 3);
    const uint32_t modes[] = {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP, DTRAIN_QUORUM};
    c.params.consistency = modes[random() % 4];
    if (c.params.consistency == DTRAIN_QUORUM) c.params.quorum = uint32_t(c.workers);
    const bool collects = c.params.consistency == DTRAIN_BSP || c.params.quorum > 0;
    c.params.aggregate = collects && random() % 2 == 0 ? DTRAIN_AVG : DTRAIN_SUM;
    const uint32_t rules[] = {DTRAIN_RULE_ADD, DTRAIN_RULE_SGD, DTRAIN_RULE_MAX};
    c.params.rule = rules[random() % (c.params.aggregate == DTRAIN_AVG ? 2 : 3)];
    c.params.learning_rate = c.params.rule == DTRAIN_RULE_SGD ? 0.5 : 0;
    if (c.params.rule == DTRAIN_RULE_ADD && random() % 2 == 0) { // the same by segments
        c.params.row_length = c.sparse ? 0 : dim;
        for (dtrain_segment_t &segment : c.segments) {
            DTRAIN_INIT(&segment);
            segment.rule = DTRAIN_RULE_ADD;
        }
        c.segments[0].count = c.segments[1].first = 1 + random() % 5;
        c.segments[1].count = dim - c.segments[0].count;
        c.params.rule = 0;
        c.params.segment_count = 2;
    }
    return c;
}

// What one worker pushes in a round, and what it brings about.
std::vector<float> gradient(const Case &c, int round, int worker) {
    std::mt19937_64 random(c.seed * 1000 + uint64_t(round) * 10 + uint64_t(worker));
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> g(length);
    for (float &value : g) value = uniform(random);
    return g;
}

class Model {
  public:
    explicit Model(const Case &c)
        : case_(c), w_(length),
          collects_(c.params.consistency == DTRAIN_BSP || c.params.consistency == DTRAIN_QUORUM) {}
    void round(int number) {
        const auto n = uint32_t(case_.workers);
        std::vector<double> sum(length, 0);
        for (int worker = 0; worker < case_.workers; worker++) {
            const std::vector<float> g = gradient(case_, number, worker);
            for (uint64_t i = 0; i < length; i++) {
                if (case_.params.rule == DTRAIN_RULE_MAX)
                    w_[i] = std::max(w_[i], double(g[i]));
                else
                    sum[i] += double(g[i]) / (case_.params.aggregate == DTRAIN_AVG ? n : 1);
            }
        }
        double most = 1;
        for (uint64_t i = 0; i < length; i++) {
            w_[i] += (case_.params.rule == DTRAIN_RULE_SGD ? -0.5 : 1) * sum[i];
            most = std::max(most, std::fabs(w_[i]));
        }
        // To nearest, and once more when a block's scale changes; at random, up to a whole step.
        const bool max = case_.params.rule == DTRAIN_RULE_MAX;
        const double updates = collects_ ? 1 : n;
        off_ += (max ? 1 : 2) * updates * half_step(case_.params.storage_dtype, most);
        gradients_ = n * half_step(case_.params.wire_dtype, 1) + (max ? 0 : gradients_);
        most_ = most;
    }
    void check(const std::vector<float> &pulled, const char *what) const {
        const double off = off_ + gradients_;
        const double most = off + half_step(case_.params.wire_dtype, most_ + off) + 1e-6;
        for (uint64_t i = 0; i < length; i++)
            if (!(std::fabs(double(pulled[i]) - w_[i]) <= most))
                fail_msg("seed %llu, %s: element %llu is %g, not %g; at most off by %g",
                         static_cast<unsigned long long>(case_.seed), what,
                         static_cast<unsigned long long>(i), double(pulled[i]), w_[i], most);
    }

  private:
    const Case &case_;
    std::vector<double> w_;
    const bool collects_;
    double off_ = 0, gradients_ = 0, most_ = 1; // gradients_: what their rounding has brought
};

// The same calls for ranges and rows.
struct Values {
    explicit Values(const Case &c) : sparse(c.sparse), keys(rows) {
        for (uint64_t i = 0; i < rows; i++) keys[i] = i * 0x9e3779b97f4a7c15;
    }
    void push(const std::vector<float> &g) {
        if (!sparse) OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        if (!sparse) return;
        // Each key twice, one of them with zeros, or the same again for MAX.
        std::vector<uint64_t> twice = keys;
        twice.insert(twice.end(), keys.rbegin(), keys.rend());
        std::vector<float> both = g;
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t k = 0; k < dim; k++)
                both.push_back(max ? g[(rows - 1 - i) * dim + k] : 0);
        OK(dtrain_table_push_rows(table, twice.data(), 2 * rows, both.data(), nullptr, nullptr));
    }
    std::vector<float> pull() {
        std::vector<float> values(length);
        OK(sparse
               ? dtrain_table_pull_rows(table, keys.data(), rows, values.data(), nullptr, nullptr)
               : dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
        return values;
    }
    void set(const std::vector<float> &values) {
        OK(sparse ? dtrain_table_set_rows(table, keys.data(), rows, values.data(), nullptr, nullptr)
                  : dtrain_table_set(table, 0, length, values.data(), nullptr, nullptr));
    }
    void push_pull(std::vector<float> &values) {
        OK(sparse ? dtrain_table_push_pull_rows(table, keys.data(), rows, values.data(),
                                                values.data(), nullptr, nullptr)
                  : dtrain_table_push_pull(table, 0, length, values.data(), values.data(), nullptr,
                                           nullptr));
    }
    bool sparse, max = false;
    std::vector<uint64_t> keys;
    dtrain_table_t *table = nullptr;
};

void run_case(Case c, const ranks::Options &options) {
    if (c.params.segment_count > 0) c.params.segments = c.segments;
    ranks::run(c.workers, c.servers, options, [&](int rank, dtrain_comm_t *comm) {
        Values values(c);
        values.max = c.params.rule == DTRAIN_RULE_MAX;
        OK(dtrain_table_create(comm, "t", &c.params, &values.table));
        Model model(c);
        for (int round = 0; round < 4; round++) {
            std::vector<float> g = gradient(c, round, rank);
            if (round % 2 == 0) {
                values.push(g);
                OK(dtrain_table_clock(values.table, nullptr, nullptr));
            } else {
                values.push_pull(g);
                if (c.params.consistency == DTRAIN_SSP)
                    OK(dtrain_table_clock(values.table, nullptr, nullptr));
            }
            OK(dtrain_barrier(comm, nullptr, nullptr));
            model.round(round);
            model.check(values.pull(), "pull");
            OK(dtrain_barrier(comm, nullptr, nullptr));
        }
        const std::vector<float> g = gradient(c, 9, 0); // the values, then
        if (rank == 0) values.set(g);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        const std::vector<float> pulled = values.pull();
        for (uint64_t i = 0; i < length; i++)
            REQUIRE(std::fabs(double(pulled[i]) - double(g[i])) <=
                    half_step(c.params.storage_dtype, 1) + half_step(c.params.wire_dtype, 1.01));
        OK(dtrain_table_destroy(values.table));
    });
}

void all_operations_of_all_kinds(void **) {
    const uint64_t seed = first_seed();
    for (uint64_t i = 0; i < 150; i++)
        run_case(random_case(seed + i),
                 i % 3 == 0 ? ranks::Options{{"transports", "tcp"}} : ranks::Options{});
}

dtrain_table_params_t params_of(uint32_t storage, uint32_t wire, bool sparse, uint32_t rule) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.storage_dtype = storage;
    params.wire_dtype = wire;
    params.length = sparse ? 0 : 1 << 16;
    params.dim = sparse ? dim : 0;
    params.rule = rule;
    return params;
}

// What is counted is what travels.
void bytes_on_the_wire_are_counted(void **) {
    for (int servers : {0, 1})
        for (uint32_t wire : dtypes)
            for (bool sparse : {false, true})
                ranks::run(1, servers, {{"ps.retry", "600s"}}, [&](int, dtrain_comm_t *comm) {
                    const auto params = params_of(0, wire, sparse, DTRAIN_RULE_ADD);
                    dtrain_table_t *table = nullptr;
                    OK(dtrain_table_create(comm, "t", &params, &table));
                    dtrain_table_stats_t before, after;
                    DTRAIN_INIT(&before);
                    DTRAIN_INIT(&after);
                    OK(dtrain_stats_table(table, -1, &before));
                    constexpr uint64_t n = 1 << 16, few = 100;
                    std::vector<float> values(n, 1);
                    std::vector<uint64_t> keys(few);
                    for (uint64_t i = 0; i < few; i++) keys[i] = i;
                    if (sparse) {
                        OK(dtrain_table_push_rows(table, keys.data(), few, values.data(), nullptr,
                                                  nullptr));
                        OK(dtrain_table_pull_rows(table, keys.data(), few, values.data(), nullptr,
                                                  nullptr));
                    } else {
                        OK(dtrain_table_push(table, 0, n, values.data(), nullptr, nullptr));
                        OK(dtrain_table_pull(table, 0, n, values.data(), nullptr, nullptr));
                    }
                    OK(dtrain_stats_table(table, -1, &after));
                    const uint64_t size = wire == 0 ? 4 : wire == DTRAIN_I8 ? 1 : 2;
                    const uint64_t scales = wire == DTRAIN_I8 ? 4 : 0;
                    const uint64_t due =
                        sparse ? few * (dim * size + scales) : n * size + n / 128 * scales;
                    REQUIRE(after.received_bytes == due);
                    REQUIRE(after.sent_bytes - before.sent_bytes ==
                            due + (sparse ? 2 * few * sizeof(uint64_t) : 0));
                    for (float value : values) REQUIRE(value == 1);
                    OK(dtrain_table_destroy(table));
                });
}

// In the memory of a server that has too little of it for f32.
void a_quarter_fits(void **) {
    const ranks::Options options = {{"ps.memory", "100K"}};
    ranks::run(1, 1, options, [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = nullptr;
        auto params = params_of(DTRAIN_I8, 0, false, DTRAIN_RULE_ADD);
        OK(dtrain_table_create(comm, "i8", &params, &table));
        OK(dtrain_table_destroy(table));
        params.storage_dtype = DTRAIN_F16;
        FAILS(DTRAIN_ERR_LIMIT, dtrain_table_create(comm, "f16", &params, &table));
        params.storage_dtype = 0;
        FAILS(DTRAIN_ERR_LIMIT, dtrain_table_create(comm, "f32", &params, &table));
    });
    for (uint32_t storage : {uint32_t(0), uint32_t(DTRAIN_I8)})
        ranks::run(1, 1, options, [&](int, dtrain_comm_t *comm) {
            const auto params = params_of(storage, 0, true, DTRAIN_RULE_ADD);
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "rows", &params, &table));
            constexpr uint64_t many = 1000; // 96 KB of f32, 28 KB of int8, and their index
            std::vector<uint64_t> keys(many);
            for (uint64_t i = 0; i < many; i++) keys[i] = i * 0x9e3779b97f4a7c15;
            const std::vector<float> values(many * dim, 1);
            const auto status =
                dtrain_table_push_rows(table, keys.data(), many, values.data(), nullptr, nullptr);
            REQUIRE(status == (storage == 0 ? DTRAIN_ERR_LIMIT : DTRAIN_OK));
            OK(dtrain_table_destroy(table));
        });
}

// Tables whose callers have 16 bits: what is set comes back, pushes are widened, and the rows of a
// key that repeats are added up in f32, which f16 would end at 32.
void halves_of_their_own(void **) {
    struct Numbers { // of bits
        uint32_t dtype;
        uint16_t one, two, small, many; // small: 0.01; many: 100,000 of them
    };
    constexpr Numbers all[] = {{DTRAIN_F16, 0x3c00, 0x4000, 0x211f, 0x63d2},
                               {DTRAIN_BF16, 0x3f80, 0x4000, 0x3c24, 0x447a}};
    for (const Numbers &its : all)
        for (uint32_t storage : {uint32_t{0}, uint32_t{DTRAIN_F32}})
            for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP})
                ranks::run(1, 2, {}, [&](int, dtrain_comm_t *comm) {
                    dtrain_table_params_t params;
                    DTRAIN_INIT(&params);
                    params.dtype = its.dtype;
                    params.storage_dtype = storage;
                    params.consistency = consistency;
                    params.dim = 1;
                    dtrain_table_t *sparse = nullptr, *table = nullptr;
                    OK(dtrain_table_create(comm, "rows", &params, &sparse));
                    const std::vector<uint64_t> keys(100'000, 7);
                    const std::vector<uint16_t> values(keys.size(), its.small);
                    OK(dtrain_table_push_rows(sparse, keys.data(), keys.size(), values.data(),
                                              nullptr, nullptr));
                    OK(dtrain_table_clock(sparse, nullptr, nullptr));
                    uint16_t found[2] = {};
                    OK(dtrain_table_pull_rows(sparse, keys.data(), 2, found, nullptr, nullptr));
                    REQUIRE(found[0] == its.many && found[1] == its.many);
                    OK(dtrain_table_set_rows(sparse, keys.data(), 1, &its.two, nullptr, nullptr));
                    OK(dtrain_table_pull_rows(sparse, keys.data(), 1, found, nullptr, nullptr));
                    REQUIRE(found[0] == its.two);
                    params.dim = 0;
                    params.length = 200'000; // more than a request has
                    OK(dtrain_table_create(comm, "table", &params, &table));
                    std::vector<uint16_t> w(params.length, its.one), pulled(params.length);
                    OK(dtrain_table_set(table, 0, w.size(), w.data(), nullptr, nullptr));
                    OK(dtrain_table_pull(table, 0, w.size(), pulled.data(), nullptr, nullptr));
                    REQUIRE(pulled == w);
                    OK(dtrain_table_push_pull(table, 0, w.size(), w.data(), pulled.data(), nullptr,
                                              nullptr));
                    REQUIRE(pulled == std::vector<uint16_t>(w.size(), its.two));
                    OK(dtrain_table_destroy(sparse));
                    OK(dtrain_table_destroy(table));
                });
}

// Least squares: y = x . w of known w, by stochastic gradients of one sample each.
constexpr uint32_t n = 16;

void learn(dtrain_comm_t *comm, uint32_t rule, uint32_t storage, uint32_t wire) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.storage_dtype = storage;
    params.wire_dtype = wire;
    params.length = n;
    params.rule = rule;
    params.learning_rate = rule == DTRAIN_RULE_SGD ? 0.02 : 0.3;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "w", &params, &table));
    std::mt19937_64 random(rule * 100 + storage * 10 + wire);
    std::normal_distribution<float> normal;
    std::vector<float> truth(n), w(n), x(n), g(n), mean(n, 0);
    for (float &value : truth) value = normal(random);
    constexpr int steps = 1500, last = 300;
    for (int step = 0; step < steps; step++) {
        OK(dtrain_table_pull(table, 0, n, w.data(), nullptr, nullptr));
        float error = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = normal(random);
            error += (w[i] - truth[i]) * x[i];
            if (step >= steps - last) mean[i] += w[i] / last;
        }
        for (uint32_t i = 0; i < n; i++) g[i] = error * x[i];
        OK(dtrain_table_push(table, 0, n, g.data(), nullptr, nullptr));
    }
    double off = 0, off_mean = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        off += std::pow(double(w[i]) - double(truth[i]), 2);
        off_mean += std::pow(double(mean[i]) - double(truth[i]), 2);
        size += std::pow(double(truth[i]), 2);
    }
    off = std::sqrt(off / size), off_mean = std::sqrt(off_mean / size);
    const bool coarse = storage == DTRAIN_I8 || wire == DTRAIN_I8;
    if (off > (coarse ? 0.1 : 0.03) || off_mean > 0.03)
        std::fprintf(stderr, "rule %u, storage %u, wire %u: off by %g, on average by %g\n", rule,
                     storage, wire, off, off_mean);
    REQUIRE(off <= (coarse ? 0.1 : 0.03) && off_mean <= 0.03);
    OK(dtrain_table_destroy(table));
}

// Each step waits for the one before, so all jobs at once take little longer than one.
void they_learn(void **) {
    std::vector<std::thread> jobs;
    for (uint32_t rule : {DTRAIN_RULE_SGD, DTRAIN_RULE_ADAGRAD})
        for (uint32_t storage : dtypes)
            for (uint32_t wire : dtypes)
                jobs.emplace_back([=] {
                    ranks::run(1, 1, {},
                               [=](int, dtrain_comm_t *comm) { learn(comm, rule, storage, wire); });
                });
    for (std::thread &job : jobs) job.join();
}

void bad_requests_are_named(void **) {
    ranks::run(2, 1, {}, [](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = nullptr;
        auto params = params_of(DTRAIN_U16, 0, false, DTRAIN_RULE_ADD);
        FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "t", &params, &table));
        REQUIRE(ranks::last_error().find(
                    "storage_dtype is not valid (the dtype; or F16, BF16 or I8 if") !=
                std::string::npos);
        params.storage_dtype = 0;
        params.wire_dtype = rank == 0 ? DTRAIN_F16 : DTRAIN_I8;
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_table_create(comm, "t", &params, &table));
        REQUIRE(ranks::last_error().find("rank 0 gives wire_dtype 3, rank 1 wire_dtype 5") !=
                std::string::npos);
        params.wire_dtype = rank == 0 ? 0 : DTRAIN_F32; // the same
        OK(dtrain_table_create(comm, "t", &params, &table));
        OK(dtrain_table_destroy(table));
    });
}

// Values as they were on another number of servers; not into another type.
void checkpoints_have_what_is_stored(void **) {
    for (bool sparse : {false, true})
        for (uint32_t storage : {DTRAIN_BF16, DTRAIN_I8}) {
            TemporaryFolder folder;
            const ranks::Options options = {{"checkpoint.directory", folder.name},
                                            {"log.level", "error"}};
            Case c;
            c.sparse = sparse;
            c.params = params_of(storage, 0, sparse, DTRAIN_RULE_ADAGRAD);
            if (!sparse) c.params.length = length;
            std::vector<float> saved;
            for (int servers : {3, 2})
                ranks::run(1, servers, options, [&](int, dtrain_comm_t *comm) {
                    Values values(c);
                    OK(dtrain_table_create(comm, "t", &c.params, &values.table));
                    if (servers == 3) {
                        for (int round = 0; round < 3; round++) values.push(gradient(c, round, 0));
                        OK(dtrain_checkpoint_save(&values.table, 1, 1, nullptr, nullptr));
                        saved = values.pull();
                        OK(dtrain_table_destroy(values.table));
                        return;
                    }
                    OK(dtrain_checkpoint_restore(&values.table, 1, 1, nullptr, nullptr));
                    REQUIRE(values.pull() == saved);
                    OK(dtrain_table_destroy(values.table));
                    dtrain_table_params_t other = c.params;
                    other.storage_dtype = 0;
                    OK(dtrain_table_create(comm, "t", &other, &values.table));
                    FAILS(DTRAIN_ERR_MISMATCH,
                          dtrain_checkpoint_restore(&values.table, 1, 1, nullptr, nullptr));
                    const char *says = storage == DTRAIN_I8
                                           ? "\"values\" are i8, the table's f32"
                                           : "\"values\" are bf16, the table's f32";
                    REQUIRE(ranks::last_error().find(says) != std::string::npos);
                    OK(dtrain_table_destroy(values.table));
                });
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_operations_of_all_kinds),
        cmocka_unit_test(bytes_on_the_wire_are_counted),
        cmocka_unit_test(a_quarter_fits),
        cmocka_unit_test(halves_of_their_own),
        cmocka_unit_test(they_learn),
        cmocka_unit_test(bad_requests_are_named),
        cmocka_unit_test(checkpoints_have_what_is_stored),
    };
    return cmocka_run_group_tests_name("narrow_tables", tests, nullptr, nullptr);
}
