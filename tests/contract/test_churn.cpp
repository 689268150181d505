// An elastic job whose workers are killed and started at random goes on, and never as two.
// SPDX-License-Identifier: Apache-2.0
//
// The seed is printed. DTRAIN_TEST_SEED repeats a run, DTRAIN_TEST_SECONDS says how long it is.
#include "contract/processes.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace {

uint32_t from_environment(const char *name, uint32_t otherwise) {
    const char *value = std::getenv(name);
    return value == nullptr ? otherwise : uint32_t(std::strtoul(value, nullptr, 10));
}

constexpr int first = 3, most = 5; // workers
constexpr int newcomer = -1;
constexpr int max_workers = 100'000; // one after another
constexpr uint64_t length = 1000;    // of the table

// What all processes see.
struct Board {
    std::atomic<bool> over{false};      // the workers are to end
    std::atomic<int64_t> steps{0};      // by all workers together
    std::atomic<int64_t> generation{0}; // the last one in which all have done a step
    std::atomic<int64_t> pushes{0};     // that were answered
    std::atomic<int64_t> killed{0};
    std::atomic<int64_t> wrong{0};    // steps of a generation after steps of a later one
    std::atomic<int64_t> shut_out{0}; // workers that missed a generation
    std::atomic<int64_t> largest{0}, reforms{0};
    std::atomic<bool> is_member[max_workers] = {}; // has been in the job
};

int64_t generation_of(dtrain_comm_t *comm) {
    char text[4096] = "";
    REQUIRE(dtrain_comm_changes(comm, text, sizeof text) < sizeof text);
    const char *at = std::strstr(text, "\"generation\": ");
    return at == nullptr ? 0 : std::atoll(at + std::strlen("\"generation\": "));
}

dtrain_table_t *open_table(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.length = length;
    params.rule = DTRAIN_RULE_ADD;
    dtrain_table_t *table = nullptr;
    const dtrain_status_t s = dtrain_table_create(comm, "count", &params, &table);
    return s == DTRAIN_OK ? table : nullptr;
}

// What a worker's call may end with when others are lost.
bool may_pass(dtrain_status_t s) {
    const bool good = s == DTRAIN_ERR_PEER || s == DTRAIN_ERR_ABORTED || s == DTRAIN_ERR_TIMEOUT;
    if (!good && s != DTRAIN_OK)
        std::fprintf(stderr, "%s: %s\n", dtrain_status_name(s), ranks::last_error().c_str());
    return good;
}

class Worker {
  public:
    Worker(dtrain_comm_t *comm, Board &board) : comm_(comm), board_(board) { look(); }
    ~Worker() {
        if (table_ != nullptr) (void)dtrain_table_destroy(table_);
        OK(dtrain_comm_destroy(comm_));
    }

    // Returns when the job is over, or this worker is shut out.
    void run() {
        for (;;) {
            bool over = false, changed = false;
            const dtrain_status_t s = step(over, changed);
            REQUIRE(s == DTRAIN_OK || may_pass(s));
            if (s == DTRAIN_OK && over) return;
            if ((s != DTRAIN_OK || changed) && !reform()) return;
        }
    }

  private:
    void look() {
        generation_ = generation_of(comm_);
        table_ = nullptr;
        is_fresh_ = true;
    }

    // A push by all, a sum of large and small vectors, and what all agree on.
    dtrain_status_t step(bool &over, bool &changed) {
        if (table_ == nullptr) table_ = open_table(comm_);
        if (table_ == nullptr) return DTRAIN_ERR_PEER;
        const std::vector<double> ones(length, 1);
        dtrain_status_t s = dtrain_table_push(table_, 0, length, ones.data(), nullptr, nullptr);
        if (s != DTRAIN_OK) return s;
        const int64_t before = ++board_.pushes;
        const int size = dtrain_comm_size(comm_);
        std::vector<int64_t> data(1 + size_t(generation_ % 2) * 50000, dtrain_comm_rank(comm_));
        s = dtrain_allreduce(comm_, data.data(), data.data(), data.size(), DTRAIN_I64, DTRAIN_SUM,
                             nullptr, nullptr);
        if (s != DTRAIN_OK) return s;
        for (int64_t x : data) REQUIRE(x == int64_t(size) * (size - 1) / 2);
        int32_t said[2] = {board_.over ? 1 : 0, size < most && dtrain_comm_newcomers(comm_) > 0};
        s = dtrain_allreduce(comm_, said, said, 2, DTRAIN_I32, DTRAIN_MAX, nullptr, nullptr);
        if (s != DTRAIN_OK) return s;
        // All of the generation have come as far as this, so they are in no later one.
        int64_t last = board_.generation;
        while (last < generation_ && !board_.generation.compare_exchange_weak(last, generation_)) {
        }
        if (last > generation_) board_.wrong++;
        board_.steps++;
        over = said[0] != 0;
        changed = said[1] != 0;
        // In the midst of the job the others go on to push.
        const double most_pushed = over ? double(board_.pushes + board_.killed) : INFINITY;
        return std::exchange(is_fresh_, false) || over ? check_table(double(before), most_pushed)
                                                       : DTRAIN_OK;
    }

    // Every answered push is in it; those of killed workers perhaps.
    dtrain_status_t check_table(double answered, double pushed) {
        std::vector<double> values(length);
        const dtrain_status_t s =
            dtrain_table_pull(table_, 0, length, values.data(), nullptr, nullptr);
        if (s != DTRAIN_OK) return s;
        const auto [low, high] = std::ranges::minmax(values);
        if (low < answered || high > pushed)
            std::fprintf(stderr,
                         "generation %lld: from %g to %g in the table, %g to %g were pushed\n",
                         static_cast<long long>(generation_), low, high, answered, pushed);
        REQUIRE(low >= answered && high <= pushed);
        return DTRAIN_OK;
    }

    bool reform() {
        for (;;) {
            dtrain_reform_params_t params;
            DTRAIN_INIT(&params);
            params.max_size = most;
            params.timeout_ns = 20'000'000'000;
            dtrain_comm_t *next = nullptr;
            const dtrain_status_t s = dtrain_comm_reform(comm_, &params, &next);
            if (s == DTRAIN_ERR_FENCED || s == DTRAIN_ERR_STATE) {
                board_.shut_out++;
                return false;
            }
            if (s != DTRAIN_OK) std::fprintf(stderr, "reform: %s\n", ranks::last_error().c_str());
            REQUIRE(s == DTRAIN_OK || may_pass(s));
            if (s != DTRAIN_OK) continue;
            if (table_ != nullptr) OK(dtrain_table_destroy(table_));
            OK(dtrain_comm_destroy(comm_));
            comm_ = next;
            look();
            board_.reforms++;
            board_.largest = std::max<int64_t>(board_.largest, dtrain_comm_size(comm_));
            return true;
        }
    }

    dtrain_comm_t *comm_;
    Board &board_;
    dtrain_table_t *table_ = nullptr;
    int64_t generation_ = 0;
    bool is_fresh_ = true; // no step of this generation has been done
};

class Churn {
  public:
    Churn(uint32_t seed, ranks::Options options) : random_(seed), options_(std::move(options)) {
        options_.emplace_back("elastic", "yes");
        options_.emplace_back("heartbeat.timeout", "3s"); // as long for one that does not come
        options_.emplace_back("op.timeout", "60s");
        options_.emplace_back("join.timeout", "120s");
        void *page =
            mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(page != MAP_FAILED);
        board_ = new (page) Board;
    }
    ~Churn() {
        for (const Started &worker : workers_)
            kill(worker.pid, SIGKILL), waitpid(worker.pid, nullptr, 0);
        if (server_ > 0) kill(server_, SIGKILL), waitpid(server_, nullptr, 0);
        munmap(board_, sizeof(Board));
    }

    void play(int64_t seconds) {
        server_ = start([&] { serve(); });
        for (int rank = 0; rank < first; rank++) start_worker(rank);
        wait_for_steps(first);
        for (const int64_t end = processes::now_ns() + seconds * 1'000'000'000;
             processes::now_ns() < end;) {
            sleep_ms(random_() % 200);
            // Mostly in the midst of changes: a kill right after a start, or two at once.
            if (workers_.size() > most || random_() % 2 == 0)
                kill_one();
            else
                start_worker(newcomer);
            if (random_() % 4 == 0) wait_for_steps(20);
        }
        wait_for_steps(20); // it still goes on
        board_->over = true;
        end_all();
        REQUIRE(board_->wrong == 0);
        std::printf("%lld killed, %lld reforms, %lld steps, %lld workers at most, %lld shut out\n",
                    static_cast<long long>(board_->killed), static_cast<long long>(board_->reforms),
                    static_cast<long long>(board_->steps), static_cast<long long>(board_->largest),
                    static_cast<long long>(board_->shut_out));
    }
    Board &board() { return *board_; }

  private:
    template <class F> pid_t start(F &&body) {
        const pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid != 0) return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, SIG_DFL);
        body();
        _exit(0);
    }
    void work(int rank, int number) {
        dtrain_context_t *context = ranks::make_context(options_);
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = rank == newcomer ? DTRAIN_NEWCOMER : first;
        params.rank = rank;
        params.servers = rank == newcomer ? 0 : 1;
        // Those who take a newcomer in may be killed meanwhile.
        for (;;) {
            dtrain_comm_t *comm = nullptr;
            const dtrain_status_t s =
                dtrain_comm_create(context, rendezvous_.c_str(), &params, &comm);
            if (s == DTRAIN_OK) {
                board_->is_member[number] = true;
                Worker(comm, *board_).run();
                break;
            }
            if (board_->over) break;
            REQUIRE(rank == newcomer && may_pass(s));
        }
        OK(dtrain_context_destroy(context));
    }
    void serve() {
        dtrain_context_t *context = ranks::make_context(options_);
        dtrain_server_params_t params;
        DTRAIN_INIT(&params);
        params.size = first;
        params.servers = 1;
        dtrain_server_t *server = nullptr;
        OK(dtrain_server_create(context, rendezvous_.c_str(), &params, &server));
        OK(dtrain_server_wait(server, -1));
        OK(dtrain_server_destroy(server));
        OK(dtrain_context_destroy(context));
    }
    void start_worker(int rank) {
        REQUIRE(started_ < max_workers);
        const int number = started_++;
        workers_.push_back({start([&] { work(rank, number); }), number});
    }
    // Somebody must remain who has the tables and the weights.
    void kill_one() {
        const size_t which = random_() % workers_.size();
        size_t members = 0;
        for (const Started &worker : workers_)
            members += &worker != &workers_[which] && board_->is_member[worker.number];
        if (members < 2) return;
        kill(workers_[which].pid, SIGKILL);
        REQUIRE(waitpid(workers_[which].pid, nullptr, 0) == workers_[which].pid);
        workers_.erase(workers_.begin() + ptrdiff_t(which));
        board_->killed++;
    }
    static void require_good_end(int status) {
        if (status != 0)
            std::fprintf(stderr, "a worker ended with %s %d\n",
                         WIFSIGNALED(status) ? "signal" : "status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        REQUIRE(status == 0);
    }
    // A worker that was shut out is replaced, as a launcher would.
    void look_after() {
        const size_t ended = std::erase_if(workers_, [](const Started &worker) {
            int status = 0;
            if (waitpid(worker.pid, &status, WNOHANG) == 0) return false;
            require_good_end(status);
            return true;
        });
        for (size_t i = 0; i < ended; i++) start_worker(newcomer);
    }
    void wait_for_steps(int64_t count) {
        const int64_t before = board_->steps, since = processes::now_ns();
        while (board_->steps < before + count) {
            processes::nap();
            look_after();
            if (processes::now_ns() - since < 120'000'000'000) continue;
            std::fprintf(stderr, "no step for 120 s; %zu workers\n", workers_.size());
            REQUIRE(false);
        }
    }
    // Newcomers that nobody takes in any more are killed; all others end by themselves.
    void end_all() {
        for (;;) {
            std::erase_if(workers_, [](const Started &worker) {
                int status = 0;
                if (waitpid(worker.pid, &status, WNOHANG) == 0) return false;
                require_good_end(status);
                return true;
            });
            if (std::ranges::none_of(workers_, [this](const Started &worker) {
                    return board_->is_member[worker.number].load();
                }))
                break;
            processes::nap();
        }
        for (const Started &worker : workers_)
            kill(worker.pid, SIGKILL), waitpid(worker.pid, nullptr, 0);
        workers_.clear();
        int status = 0;
        REQUIRE(waitpid(std::exchange(server_, 0), &status, 0) > 0 && status == 0);
    }
    static void sleep_ms(int64_t ms) {
        const timespec t = {ms / 1000, ms % 1000 * 1'000'000};
        nanosleep(&t, nullptr);
    }

    std::mt19937 random_;
    ranks::Options options_;
    TemporaryFolder folder_;
    const std::string rendezvous_ = "file://" + folder_.file("job");
    Board *board_ = nullptr;
    struct Started {
        pid_t pid;
        int number;
    };
    std::vector<Started> workers_;
    int started_ = 0;
    pid_t server_ = 0;
};

void play(const char *what, const ranks::Options &options) {
    const uint32_t seed = from_environment("DTRAIN_TEST_SEED", 1);
    std::printf("%s: seed %u: ", what, seed);
    std::fflush(stdout);
    Churn churn(seed, options);
    churn.play(from_environment("DTRAIN_TEST_SECONDS", 8));
    REQUIRE(churn.board().reforms > 0);
}
void over_tcp(void **) { play("over tcp", {{"transports", "tcp"}}); }
void over_shm(void **) { play("over shm", {}); }

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(over_tcp), cmocka_unit_test(over_shm)};
    return cmocka_run_group_tests_name("churn", tests, nullptr, nullptr);
}
