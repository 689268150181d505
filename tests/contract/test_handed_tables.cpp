// Tables on workers of which some leave: the workers that stay have all values and state, bit by
// bit but for int8.
// SPDX-License-Identifier: Apache-2.0
#include "contract/elastic.h"
#include "contract/function_case.h"
#include "unit/device/reference.h"

#include <random>
#include <set>

using namespace elastic;

namespace {

constexpr uint64_t length = 6400, row_length = 16, dim = 5;
constexpr size_t key_count = 700;

// What is set besides the dtype and, of a dense table, the length.
struct Kind {
    const char *name;
    void (*set)(dtrain_table_params_t &params);
};

const Kind kinds[] = {
    {"momentum", [](dtrain_table_params_t &p) { p.rule = DTRAIN_RULE_MOMENTUM; }},
    {"adam", [](dtrain_table_params_t &p) { p.rule = DTRAIN_RULE_ADAM; }},
    {"adam of f64, steps of the table",
     [](dtrain_table_params_t &p) {
         p.dtype = DTRAIN_F64;
         p.rule = DTRAIN_RULE_ADAM;
         p.steps = DTRAIN_STEPS_TABLE;
     }},
    {"lamb by rows",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_LAMB;
         p.row_length = row_length;
     }},
    {"adagrad by rows, by a hash",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_ADAGRAD_ROWS;
         p.row_length = row_length;
         p.placement = DTRAIN_PLACE_HASH;
     }},
    {"bsp, f16, consistent",
     [](dtrain_table_params_t &p) {
         p.dtype = DTRAIN_F16;
         p.rule = DTRAIN_RULE_ADAGRAD;
         p.consistency = DTRAIN_BSP;
         p.placement = DTRAIN_PLACE_CONSISTENT;
     }},
    {"stored as int8",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_SGD;
         p.storage_dtype = DTRAIN_I8;
     }},
    {"on one server",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_RMSPROP;
         p.placement = DTRAIN_PLACE_ROUND_ROBIN;
     }},
    {"with a function",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_FUNCTION;
         p.function = "clipped_adagrad";
         p.row_length = row_length;
         p.epsilon = 1e-6;
         p.clip_norm = 2;
     }},
    {"sums of integers",
     [](dtrain_table_params_t &p) {
         p.dtype = DTRAIN_I64;
         p.rule = DTRAIN_RULE_ADD;
     }},
    {"rows, adam",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_ADAM;
         p.dim = dim;
     }},
    {"rows of bf16, adagrad by rows",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_ADAGRAD_ROWS;
         p.dim = dim;
         p.storage_dtype = DTRAIN_BF16;
     }},
    {"rows, ssp, as set",
     [](dtrain_table_params_t &p) {
         p.rule = DTRAIN_RULE_ASSIGN;
         p.dim = dim;
         p.consistency = DTRAIN_SSP;
     }},
};

const ranks::Options &with(const ranks::Options &options) {
    static ranks::Options all;
    all = options;
    all.insert(all.end(), functions::loaded.begin(), functions::loaded.end());
    return all;
}

class Table {
  public:
    Table(dtrain_comm_t *comm, const Kind &kind) : name_(kind.name) {
        DTRAIN_INIT(&params_);
        params_.dtype = DTRAIN_F32;
        params_.learning_rate = 0.25;
        kind.set(params_);
        if (params_.rule == DTRAIN_RULE_ADD || params_.rule == DTRAIN_RULE_ASSIGN)
            params_.learning_rate = 0;
        if (params_.dim == 0) params_.length = length;
        ranks::expect(dtrain_table_create(comm, kind.name, &params_, &table_), DTRAIN_OK, kind.name,
                      __LINE__);
        for (size_t i = 0; i < key_count; i++) keys_.push_back(i * i * 0x9e3779b97f4a7c15u);
    }
    void close() const { OK(dtrain_table_destroy(table_)); }

    // Some ranges or rows more often than others.
    void push(uint32_t seed) const {
        std::mt19937 random(seed);
        for (int time = 0; time < 4; time++) {
            const size_t first = random() % 3 * row_length * 100, count = 200 * row_length;
            const size_t rows = 300 + random() % 300;
            std::vector<double> numbers(std::max(count, rows * dim));
            for (double &x : numbers) x = double(random() % 31) - 15;
            const std::vector<char> values = typed(numbers);
            if (params_.dim == 0)
                OK(dtrain_table_push(table_, first, count, values.data(), nullptr, nullptr));
            else
                OK(dtrain_table_push_rows(table_, keys_.data(), rows, values.data(), nullptr,
                                          nullptr));
        }
        if (params_.consistency != DTRAIN_ASYNC) OK(dtrain_table_clock(table_, nullptr, nullptr));
    }
    void halve_rate() const {
        if (params_.learning_rate != 0)
            OK(dtrain_table_set_rate(table_, params_.learning_rate / 2, nullptr, nullptr));
    }

    // All values and state.
    std::vector<std::vector<char>> contents() const {
        std::vector<std::vector<char>> all;
        const size_t size = dtrain_dtype_size(params_.dtype);
        const bool dense = params_.dim == 0;
        all.emplace_back((dense ? length : key_count * dim) * size);
        OK(dense ? dtrain_table_pull(table_, 0, length, all[0].data(), nullptr, nullptr)
                 : dtrain_table_pull_rows(table_, keys_.data(), key_count, all[0].data(), nullptr,
                                          nullptr));
        const char *name;
        uint32_t dtype;
        uint64_t count;
        for (uint32_t i = 0;
             dtrain_table_describe_state(table_, i, &name, &dtype, &count) == DTRAIN_OK; i++) {
            all.emplace_back(count * (dense ? 1 : key_count) * dtrain_dtype_size(dtype));
            OK(dense ? dtrain_table_pull_state(table_, i, 0, count, all.back().data(), nullptr,
                                               nullptr)
                     : dtrain_table_pull_state_rows(table_, i, keys_.data(), key_count,
                                                    all.back().data(), nullptr, nullptr));
        }
        uint64_t rows = 0;
        if (!dense) OK(dtrain_table_count_rows(table_, &rows, nullptr, nullptr));
        all.emplace_back(reinterpret_cast<const char *>(&rows),
                         reinterpret_cast<const char *>(&rows) + sizeof rows);
        return all;
    }
    void expect(const std::vector<std::vector<char>> &before) const {
        const auto now = contents();
        REQUIRE(now.size() == before.size());
        for (size_t i = 0; i < now.size(); i++)
            if (now[i] != before[i] && !(i == 0 && is_rounded_once_more(now[0], before[0]))) {
                std::fprintf(stderr, "table \"%s\": array %zu of %zu differs\n", name_, i,
                             now.size());
                std::abort();
            }
    }

  private:
    // A block of int8 whose largest value is below what its scale can hold gets a finer scale.
    bool is_rounded_once_more(const std::vector<char> &now, const std::vector<char> &before) const {
        constexpr size_t block = 128;
        if (params_.storage_dtype != DTRAIN_I8) return false;
        std::vector<float> a(length), b(length);
        std::memcpy(a.data(), now.data(), now.size());
        std::memcpy(b.data(), before.data(), before.size());
        for (size_t first = 0; first < length; first += block) {
            float most = 0;
            for (size_t i = first; i < first + block; i++) most = std::max(most, std::fabs(b[i]));
            for (size_t i = first; i < first + block; i++)
                if (std::fabs(a[i] - b[i]) > most / 127 * 1.001f) return false;
        }
        return true;
    }
    std::vector<char> typed(const std::vector<double> &numbers) const {
        const size_t size = dtrain_dtype_size(params_.dtype);
        std::vector<char> out(numbers.size() * size);
        for (size_t i = 0; i < numbers.size(); i++) {
            char *to = &out[i * size];
            const auto put = [&](auto number) { std::memcpy(to, &number, sizeof number); };
            switch (params_.dtype) {
            case DTRAIN_F32: put(float(numbers[i])); break;
            case DTRAIN_F64: put(numbers[i]); break;
            case DTRAIN_I64: put(int64_t(numbers[i])); break;
            case DTRAIN_F16: put(reference::to_half(numbers[i], 10)); break;
            default: REQUIRE(false);
            }
        }
        return out;
    }

    const char *name_;
    dtrain_table_params_t params_;
    dtrain_table_t *table_ = nullptr;
    std::vector<uint64_t> keys_;
};

using Contents = std::vector<std::vector<std::vector<char>>>; // by table

std::vector<Table> open_all(dtrain_comm_t *comm) {
    std::vector<Table> all;
    for (const Kind &kind : kinds) all.emplace_back(comm, kind);
    return all;
}
void close_all(const std::vector<Table> &tables) {
    for (const Table &table : tables) table.close();
}

// The reform, with the old communicator and its tables closed afterwards. NULL: this one has left.
dtrain_comm_t *go_on(dtrain_comm_t *comm, const std::vector<Table> &tables, int32_t size,
                     bool leaves) {
    dtrain_comm_t *next = nullptr;
    const dtrain_reform_params_t params = sizes(size, 0, leaves ? 1 : 0);
    OK(dtrain_comm_reform(comm, &params, &next));
    REQUIRE((next == nullptr) == leaves);
    close_all(tables);
    OK(dtrain_comm_destroy(comm));
    return next;
}

void check(dtrain_comm_t *comm, const Contents &before) {
    const std::vector<Table> tables = open_all(comm);
    for (size_t i = 0; i < tables.size(); i++)
        if (!before.empty()) tables[i].expect(before[i]);
    OK(dtrain_barrier(comm, nullptr, nullptr));
    for (const Table &table : tables) table.push(uint32_t(dtrain_comm_rank(comm)));
    OK(dtrain_barrier(comm, nullptr, nullptr));
    close_all(tables);
}

struct Case {
    int size;
    std::set<int> leave;
    int come = 0;
};

void some_leave(const Case &its, const ranks::Options &options) {
    Job job;
    job.start(its.size + its.come, [&](int process) {
        dtrain_context_t *context = ranks::make_context(with(options));
        dtrain_comm_t *comm = nullptr;
        Contents before;
        if (process < its.size) {
            comm = join_as(context, job.rendezvous(), process, its.size);
            std::vector<Table> tables = open_all(comm);
            for (const Table &table : tables) table.push(uint32_t(process));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            if (process == 0)
                for (const Table &table : tables) table.halve_rate();
            OK(dtrain_barrier(comm, nullptr, nullptr));
            for (const Table &table : tables) before.push_back(table.contents());
            OK(dtrain_barrier(comm, nullptr, nullptr));
            if (its.come > 0) step_until_newcomers(comm, job.seen(process), its.come);
            const int after = its.size - int(its.leave.size()) + its.come;
            comm = go_on(comm, tables, after, its.leave.contains(process));
        } else {
            while (job.seen(0).rounds < 1) processes::nap();
            comm = join_as(context, job.rendezvous(), newcomer, its.size);
        }
        if (comm != nullptr) {
            check(comm, before);
            OK(dtrain_comm_destroy(comm));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}
void one_leaves(void **) {
    some_leave({3, {1}}, elastic_shm);
    some_leave({2, {0}}, elastic_tcp);
}
void two_leave(void **) { some_leave({4, {0, 2}}, elastic_shm); }
void one_leaves_and_one_comes(void **) {
    some_leave({2, {1}, 1}, elastic_tcp);
    some_leave({3, {0}, 2}, elastic_shm);
}

// Nobody opens the tables in the second generation, and the one that was given parts leaves.
void parts_are_passed_on(void **) {
    constexpr int size = 3;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(with(elastic_shm));
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size);
        std::vector<Table> tables = open_all(comm);
        for (const Table &table : tables) table.push(uint32_t(process));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        Contents before;
        for (const Table &table : tables) before.push_back(table.contents());
        OK(dtrain_barrier(comm, nullptr, nullptr));
        comm = go_on(comm, tables, 2, process == 2);
        if (comm != nullptr) comm = go_on(comm, {}, 1, process == 0); // rank 2's heir
        if (comm != nullptr) {
            check(comm, before);
            OK(dtrain_comm_destroy(comm));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// The rate that was set, and the number of updates.
void rate_and_version_go_on(void **) {
    Job job;
    job.start(2, [&](int process) {
        dtrain_context_t *context = ranks::make_context(elastic_tcp);
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, 2), *next = nullptr;
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = length;
        params.rule = DTRAIN_RULE_SGD;
        params.learning_rate = 0.5;
        dtrain_table_t *table = nullptr;
        OK(dtrain_table_create(comm, "sgd", &params, &table));
        std::vector<float> g(length, 1), w(length);
        if (process == 0) OK(dtrain_table_set_rate(table, 0.125, nullptr, nullptr));
        OK(dtrain_barrier(comm, nullptr, nullptr));
        for (int i = 0; i < 5; i++)
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
        dtrain_reform_params_t sizes_now = sizes(1, 0, process == 0 ? 1 : 0);
        OK(dtrain_comm_reform(comm, &sizes_now, &next));
        OK(dtrain_table_destroy(table));
        OK(dtrain_comm_destroy(comm));
        if (next != nullptr) {
            OK(dtrain_table_create(next, "sgd", &params, &table));
            OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
            dtrain_request_t *request = nullptr;
            OK(dtrain_table_pull(table, 0, length, w.data(), nullptr, &request));
            OK(dtrain_request_wait(request, -1));
            dtrain_event_t event;
            OK(dtrain_request_result(request, &event));
            dtrain_request_free(request);
            REQUIRE(event.version == 11);
            for (float x : w) REQUIRE(x == -0.125f * 11);
            OK(dtrain_table_destroy(table));
            OK(dtrain_comm_destroy(next));
        }
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// The worker that leaves dies instead of handing over: an error on all ranks, as for any loss.
void one_dies_on_leaving(void **) {
    constexpr int size = 3, dead = 1;
    Job job;
    job.start(size, [&](int process) {
        dtrain_context_t *context = ranks::make_context(with(elastic_shm));
        dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size), *next = nullptr;
        const Table table(comm, kinds[0]);
        OK(dtrain_barrier(comm, nullptr, nullptr));
        if (process == dead) _exit(0);
        dtrain_reform_params_t params = sizes(1);
        OK(dtrain_comm_reform(comm, &params, &next));
        dtrain_table_params_t again;
        DTRAIN_INIT(&again);
        again.dtype = DTRAIN_F32;
        again.length = length;
        again.learning_rate = 0.25;
        again.rule = DTRAIN_RULE_MOMENTUM;
        dtrain_table_t *fresh = nullptr;
        FAILS(DTRAIN_ERR_PEER, dtrain_table_create(next, kinds[0].name, &again, &fresh));
        REQUIRE(ranks::last_error().find("was lost") != std::string::npos);
        table.close();
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_comm_destroy(next));
        OK(dtrain_context_destroy(context));
    });
    job.expect_good_ends();
}

// One that leaves dies, or stops, at a random moment of its reform: before the others have agreed,
// while it hands its part over, or afterwards. The others form the next generation without waiting
// for the reform's timeout, and have all values or an error.
void one_fails_while_it_leaves(int number) {
    constexpr int size = 3, leaver = 1, rounds = 6;
    constexpr uint64_t many = 3 << 20;             // takes some ten milliseconds to hand over
    constexpr int64_t longest_ns = 20'000'000'000; // heartbeat.timeout, on a busy machine
    const ranks::Options options = {
        {"elastic", "yes"}, {"op.timeout", "120s"}, {"heartbeat.timeout", "1s"}};
    std::mt19937 random{uint32_t(number)};
    int whole = 0;
    for (int round = 0; round < rounds; round++) {
        Job job;
        job.start(size, [&](int process) {
            dtrain_context_t *context = ranks::make_context(options);
            dtrain_comm_t *comm = join_as(context, job.rendezvous(), process, size),
                          *next = nullptr;
            dtrain_table_params_t params;
            DTRAIN_INIT(&params);
            params.dtype = DTRAIN_F32;
            params.length = many;
            params.rule = DTRAIN_RULE_MOMENTUM;
            params.learning_rate = 1;
            dtrain_table_t *table = nullptr;
            OK(dtrain_table_create(comm, "w", &params, &table));
            std::vector<float> x(many, 1);
            if (process == 0) OK(dtrain_table_push(table, 0, many, x.data(), nullptr, nullptr));
            OK(dtrain_barrier(comm, nullptr, nullptr));
            job.seen(process).rounds = 1;
            const int64_t begin_ns = processes::now_ns();
            const dtrain_reform_params_t reform = sizes(1, 0, process == leaver);
            OK(dtrain_comm_reform(comm, &reform, &next));
            if (process == leaver) _exit(0); // it was not in time
            REQUIRE(dtrain_comm_size(next) == size - 1);
            OK(dtrain_table_destroy(table));
            OK(dtrain_comm_destroy(comm));
            const dtrain_status_t opened = dtrain_table_create(next, "w", &params, &table);
            REQUIRE(processes::now_ns() - begin_ns < longest_ns);
            job.seen(process).status = opened;
            if (opened == DTRAIN_OK) {
                OK(dtrain_table_pull(table, 0, many, x.data(), nullptr, nullptr));
                for (float value : x) REQUIRE(value == -1);
                OK(dtrain_table_destroy(table));
            } else {
                REQUIRE(opened == DTRAIN_ERR_PEER);
                REQUIRE(ranks::last_error().find("was lost") != std::string::npos);
            }
            OK(dtrain_comm_destroy(next));
            OK(dtrain_context_destroy(context));
        });
        job.wait_for(leaver, [](const processes::Seen &seen) { return seen.rounds >= 1; });
        for (uint32_t naps = random() % 40; naps > 0; naps--) processes::nap();
        job.signal(leaver, number);
        for (int stays : {0, 2}) job.wait_for_good_end(stays);
        job.kill_now(leaver);
        REQUIRE(job.seen(0).status == job.seen(2).status);
        whole += job.seen(0).status == DTRAIN_OK;
    }
    std::printf("the table was whole in %d of %d rounds\n", whole, rounds);
}
void one_dies_while_it_leaves(void **) { one_fails_while_it_leaves(SIGKILL); }
void one_stops_while_it_leaves(void **) { one_fails_while_it_leaves(SIGSTOP); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_leaves),
        cmocka_unit_test(two_leave),
        cmocka_unit_test(one_leaves_and_one_comes),
        cmocka_unit_test(rate_and_version_go_on),
        cmocka_unit_test(parts_are_passed_on),
        cmocka_unit_test(one_dies_on_leaving),
        cmocka_unit_test(one_dies_while_it_leaves),
        cmocka_unit_test(one_stops_while_it_leaves),
    };
    return cmocka_run_group_tests_name("handed_tables", tests, nullptr, nullptr);
}
