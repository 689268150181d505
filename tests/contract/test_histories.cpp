// The modes of tables between processes that are killed and stopped: what the workers saw up to
// then, and the survivors after it, goes through the checker of histories.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"
#include "contract/recorder.h"

#include <cstdlib>
#include <random>

namespace {

using processes::Job;

constexpr int workers = 3;
constexpr uint64_t clocks = 6; // of each mode

enum class Event { none, worker_killed, server_killed, stops };

struct Run {
    std::vector<Epoch> modes;
    int servers = 1;
    Event event = Event::none;
    const char *transport = "tcp";
    uint64_t seed = 0;
    uint64_t length() const { return 48 * uint64_t(servers); }
};

void serve(Job &job, const Run &run, int index) {
    dtrain_context_t *context = ranks::make_context({{"transports", run.transport}});
    dtrain_server_params_t params;
    DTRAIN_INIT(&params);
    params.size = workers;
    params.servers = run.servers;
    params.index = index;
    dtrain_server_t *server = nullptr;
    OK(dtrain_server_create(context, job.rendezvous(), &params, &server));
    (void)dtrain_server_wait(server, -1); // a worker may have been lost
    OK(dtrain_server_destroy(server));
    OK(dtrain_context_destroy(context));
}

// Pulls, pushes and clocks in each mode, until something fails; returns what.
dtrain_status_t use(Recorder &recorder, const Run &run, int rank, dtrain_comm_t *comm,
                    dtrain_table_t *table, processes::Seen &seen) {
    std::mt19937_64 random(run.seed * workers + uint64_t(rank));
    auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random() % 400)); };
    uint64_t clock = 0;
    for (uint32_t epoch = 0; epoch < run.modes.size(); ++epoch) {
        for (uint64_t i = 0; i <= clocks; ++i, ++clock) {
            dtrain_status_t s = recorder.pull(rank, table, clock, epoch);
            for (uint64_t n = 1 + random() % 2; n > 0 && s == DTRAIN_OK; --n)
                s = recorder.push(rank, table, clock, epoch);
            pause();
            const bool changes = i == clocks && epoch + 1 < run.modes.size();
            if (s == DTRAIN_OK && changes)
                s = recorder.change(rank, comm, table, clock,
                                    params_of(run.modes[epoch + 1].mode, 0));
            else if (s == DTRAIN_OK)
                s = recorder.clock(rank, table, clock);
            seen.rounds++;
            if (s != DTRAIN_OK) return s;
        }
    }
    return DTRAIN_OK;
}

void work(Job &job, const Run &run, Recorder &recorder, int rank) {
    dtrain_context_t *context = ranks::make_context({{"transports", run.transport}});
    dtrain_comm_t *comm = processes::join(job, context, rank, workers, run.servers);
    const dtrain_table_params_t params = params_of(run.modes[0].mode, run.length());
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "t", &params, &table));
    processes::note_failure(job.seen(rank), use(recorder, run, rank, comm, table, job.seen(rank)));
    recorder.leaves();
    OK(dtrain_table_destroy(table));
    OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context));
}

void start(Job &job, const Run &run, Recorder &recorder) {
    job.start(workers + run.servers, [&](int process) {
        if (process < workers)
            work(job, run, recorder, process);
        else
            serve(job, run, process - workers);
    });
}

// Returns the process that was killed, or -1.
int disturb(Job &job, const Run &run, Recorder &recorder) {
    std::mt19937_64 random(run.seed);
    const auto rounds = int64_t(1 + random() % (run.modes.size() * clocks));
    if (run.event == Event::none) return -1;
    if (run.event == Event::stops) {
        for (int64_t i = 1; i < 5; ++i) {
            job.wait_for_rounds(workers, i);
            const int process = int(random() % uint64_t(workers + run.servers));
            job.signal(process, SIGSTOP);
            for (uint64_t naps = random() % 30; naps > 0; --naps) processes::nap();
            job.signal(process, SIGCONT);
        }
        return -1;
    }
    job.wait_for_rounds(workers, 1); // all have the table
    job.wait_for_rounds(1, rounds);
    const bool server = run.event == Event::server_killed;
    const int process = server ? workers + int(random() % uint64_t(run.servers))
                               : int(random() % uint64_t(workers));
    recorder.leaves();
    job.kill_now(process);
    return process;
}

void run_recorded(const Run &run) {
    Recorder recorder(workers, uint32_t(run.servers), run.length());
    int killed = -1;
    {
        Job job;
        start(job, run, recorder);
        killed = disturb(job, run, recorder);
        job.expect_good_ends();
        for (int rank = 0; rank < workers; ++rank) {
            const dtrain_status_t status = job.seen(rank).status;
            const bool refused = status == DTRAIN_ERR_STATE && run.modes.size() > 1;
            const bool fine = status == DTRAIN_OK || rank == killed ||
                              (killed >= 0 && (status == DTRAIN_ERR_PEER || refused));
            if (!fine)
                fail_msg("seed %llu: worker %d: %s", static_cast<unsigned long long>(run.seed),
                         rank, job.seen(rank).text);
        }
    }
    const std::string error = recorder.check(run.modes);
    if (!error.empty())
        fail_msg("seed %llu, %s, %d servers, mode %u(%u, %u), event %d: %s",
                 static_cast<unsigned long long>(run.seed), run.transport, run.servers,
                 run.modes[0].mode.consistency, run.modes[0].mode.staleness,
                 run.modes[0].mode.quorum, int(run.event), error.c_str());
}

void run_many(Event event, const std::vector<std::vector<Epoch>> &all, uint64_t rounds) {
    const char *given = std::getenv("DTRAIN_TEST_SEED");
    uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20250101;
    print_message("seeds from %llu\n", static_cast<unsigned long long>(seed));
    for (uint64_t round = 0; round < rounds; ++round)
        for (const std::vector<Epoch> &modes : all) {
            run_recorded({.modes = modes,
                          .servers = 1 + int(seed % 2),
                          .event = event,
                          .transport = seed / 2 % 2 == 0 ? "tcp" : "shm",
                          .seed = seed});
            ++seed;
        }
}

const std::vector<std::vector<Epoch>> single = {
    {{{DTRAIN_ASYNC}}}, {{{DTRAIN_BSP}}}, {{{DTRAIN_SSP, 1}}}, {{{DTRAIN_QUORUM, 0, 2}}}};
const std::vector<std::vector<Epoch>> changing = {
    {{{DTRAIN_ASYNC}}, {{DTRAIN_BSP}, clocks + 1}},
    {{{DTRAIN_BSP}}, {{DTRAIN_QUORUM, 0, workers}, clocks + 1}},
    {{{DTRAIN_QUORUM, 0, workers}}, {{DTRAIN_SSP, 0}, clocks + 1}},
    {{{DTRAIN_SSP, 2}}, {{DTRAIN_ASYNC}, clocks + 1}}};

void between_processes(void **) {
    run_many(Event::none, single, 1);
    run_many(Event::none, changing, 1);
}
void a_worker_is_killed(void **) { run_many(Event::worker_killed, single, 4); }
void a_server_is_killed(void **) { run_many(Event::server_killed, single, 4); }
void processes_stop_for_a_while(void **) { run_many(Event::stops, single, 2); }
void somebody_is_killed_near_a_change_of_mode(void **) {
    run_many(Event::worker_killed, changing, 4);
    run_many(Event::server_killed, changing, 2);
    run_many(Event::stops, changing, 1);
}

// Real histories under a mode that promises more than they were made in.
void a_wrong_mode_is_found(void **) {
    bool found = false;
    for (uint64_t seed = 1; seed < 30 && !found; ++seed) {
        const Run run = {.modes = {{{DTRAIN_ASYNC}}}, .servers = 2, .seed = seed};
        Recorder recorder(workers, uint32_t(run.servers), run.length());
        Job job;
        start(job, run, recorder);
        job.expect_good_ends();
        assert_string_equal(recorder.check(run.modes).c_str(), "");
        found = !recorder.check(Definition{DTRAIN_BSP}).empty() &&
                !recorder.check(Definition{DTRAIN_SSP, 0}).empty();
    }
    assert_true(found);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(between_processes),
        cmocka_unit_test(a_worker_is_killed),
        cmocka_unit_test(a_server_is_killed),
        cmocka_unit_test(processes_stop_for_a_while),
        cmocka_unit_test(somebody_is_killed_near_a_change_of_mode),
        cmocka_unit_test(a_wrong_mode_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
