// Evaluators, which follow the checkpoints of another job; and workers that wait for their chief.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"

#include <atomic>
#include <chrono>

using namespace checkpoints;

namespace {

constexpr int64_t ms = 1'000'000;

struct Lines { // of a log
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;

    static void sink(void *arg, int32_t, const char *line) {
        auto *self = static_cast<Lines *>(arg);
        std::lock_guard lock(self->mutex);
        self->text += line;
        self->changed.notify_all();
    }
    bool has(const char *part) {
        std::lock_guard lock(mutex);
        return text.find(part) != std::string::npos;
    }
    void wait_for(const char *part) {
        std::unique_lock lock(mutex);
        REQUIRE(changed.wait_for(lock, std::chrono::seconds(60),
                                 [&] { return text.find(part) != std::string::npos; }));
    }
};

ranks::Options loud(const Folder &folder) {
    ranks::Options options = folder.options();
    options.back().second = "warn"; // log.level
    return options;
}

// Waits for at most this time; -1: no limit.
dtrain_status_t next(dtrain_table_t *table, uint64_t after, int64_t timeout_ns, uint64_t &step) {
    dtrain_checkpoint_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = timeout_ns;
    return dtrain_checkpoint_wait(&table, 1, after, &params, &step);
}

// Lets two threads meet, each with its number of the meeting.
struct Meeting {
    std::atomic<int> reached = 0;

    void announce(int n) { reached = n; }
    void wait_for(int n) {
        while (reached < n) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
};

void train(const Folder &folder, Meeting &evaluator) {
    ranks::run(1, 1, folder.options(), [&](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        evaluator.wait_for(1); // it has found nothing
        for (uint64_t step : {10, 20}) {
            push(table, 1);
            OK(dtrain_checkpoint_save(&table, 1, step, nullptr, nullptr));
            evaluator.wait_for(int(step));
        }
        OK(dtrain_checkpoint_restore(&table, 1, 10, nullptr, nullptr)); // leaves 20 behind
        push(table, 4);
        OK(dtrain_checkpoint_save(&table, 1, 15, nullptr, nullptr));
        OK(dtrain_table_destroy(table));
    });
}

void each_is_seen(void **) {
    Folder folder;
    Meeting evaluator;
    std::thread job([&] { train(folder, evaluator); });
    ranks::run(1, folder.options(), [&](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        uint64_t step = 0;
        FAILS(DTRAIN_ERR_TIMEOUT, next(table, DTRAIN_CHECKPOINT_NEWEST, 50 * ms, step));
        REQUIRE(says("for a checkpoint in ") && says("with table \"w\"") && step == 0);
        evaluator.announce(1);
        uint64_t after = DTRAIN_CHECKPOINT_NEWEST;
        for (auto [expected, value] : {std::pair{10U, 1.F}, {20, 2}, {15, 5}}) {
            OK(next(table, after, -1, step));
            REQUIRE(step == expected);
            OK(dtrain_checkpoint_restore(&table, 1, step, nullptr, nullptr));
            for (float x : pulled(table)) REQUIRE(x == value);
            evaluator.announce(int(step));
            after = step;
        }
        FAILS(DTRAIN_ERR_TIMEOUT, next(table, after, 50 * ms, step));
        REQUIRE(says("newer than step 15"));
        OK(dtrain_table_destroy(table));
    });
    job.join();
}

void waits_are_logged(void **) {
    Folder folder;
    ranks::run_with_contexts(
        1, loud(folder), [&](int, dtrain_context_t *context, dtrain_comm_t *comm) {
            Lines lines;
            OK(dtrain_context_set_log(context, Lines::sink, &lines));
            dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
            uint64_t step = 0;
            // One wait, as seen by people, in short calls.
            while (!lines.has(" with table \"w\": 2 s"))
                FAILS(DTRAIN_ERR_TIMEOUT, next(table, DTRAIN_CHECKPOINT_NEWEST, 100 * ms, step));
            REQUIRE(lines.has("waiting for a checkpoint in "));
            OK(dtrain_context_set_log(context, nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        });
}

void what_is_wrong_is_named(void **) {
    ranks::run(1, {}, [](int, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        uint64_t step = 0;
        FAILS(DTRAIN_ERR_CONFIG, next(table, 1, ms, step));
        REQUIRE(says("checkpoint.directory"));
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_wait(&table, 0, 1, nullptr, &step));
        FAILS(DTRAIN_ERR_INVALID, dtrain_checkpoint_wait(&table, 1, 1, nullptr, nullptr));
        FAILS(DTRAIN_ERR_INVALID, dtrain_join_role(nullptr));
        OK(dtrain_table_destroy(table));
    });
}

void workers_say_that_they_wait_for_the_chief(void **) {
    Lines lines;
    ranks::run_with_contexts(2, {}, [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        dtrain_table_t *table = make(comm, "w", DTRAIN_ASYNC, DTRAIN_RULE_ADD);
        if (rank == 0) {
            lines.wait_for("table \"w\": waiting 2 s for a worker to mark it as initialized");
            OK(dtrain_table_set_ready(table, nullptr, nullptr));
        } else {
            OK(dtrain_context_set_log(context, Lines::sink, &lines));
            OK(dtrain_table_wait_ready(table, nullptr, nullptr));
            OK(dtrain_context_set_log(context, nullptr, nullptr));
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

// The environment of this process must not tell.
void roles(void **) {
    const std::pair<const char *, uint32_t> known[] = {{"worker", DTRAIN_ROLE_WORKER},
                                                       {"server", DTRAIN_ROLE_SERVER},
                                                       {"evaluator", DTRAIN_ROLE_EVALUATOR}};
    uint32_t role = 0;
    OK(dtrain_join_role(&role));
    REQUIRE(role == DTRAIN_ROLE_WORKER);
    setenv("DTRAIN_SIZE", "2", 1);
    setenv("DTRAIN_RANK", "1", 1);
    setenv("DTRAIN_SERVERS", "1", 1);
    setenv("DTRAIN_SERVER_INDEX", "0", 1);
    for (auto [name, number] : known) {
        setenv("DTRAIN_ROLE", name, 1);
        OK(dtrain_join_role(&role));
        REQUIRE(role == number);
    }
    dtrain_context_t *context = nullptr;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_context_create(DTRAIN_API_VERSION, nullptr, &context));
    FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_comm_create(context, nullptr, nullptr, &comm));
    REQUIRE(says("DTRAIN_ROLE: this is an evaluator") && says("dtrain_checkpoint_wait"));
    dtrain_comm_params_t alone;
    DTRAIN_INIT(&alone);
    alone.size = 1;
    OK(dtrain_comm_create(context, nullptr, &alone, &comm));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
    setenv("DTRAIN_ROLE", "king", 1);
    FAILS(DTRAIN_ERR_CONFIG, dtrain_join_role(&role));
    for (const char *name :
         {"DTRAIN_SIZE", "DTRAIN_RANK", "DTRAIN_SERVERS", "DTRAIN_SERVER_INDEX", "DTRAIN_ROLE"})
        unsetenv(name);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_is_seen),
        cmocka_unit_test(waits_are_logged),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(workers_say_that_they_wait_for_the_chief),
        cmocka_unit_test(roles),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
