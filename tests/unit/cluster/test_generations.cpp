// Elastic jobs under thousands of random schedules in virtual time: processes come, leave and are
// killed, also at the worst moments, while the others form one generation after another.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed; DTRAIN_SEED=<n> runs just that one, DTRAIN_SEEDS=<n> that many.
#include "check.h"

#include "cluster/control/next_job.h"
#include "repeats.h"
#include "simulation.h"

#include <algorithm>
#include <cstdlib>

using namespace simulation;

namespace {

constexpr uint32_t last = 3; // generation; afterwards nobody asks for another one
constexpr int none = -1;

// A program: does what lib/elastic/reform.cpp and dtrain_server_wait() do.
struct Process {
    bool server = false, over = false;
    std::string why;
    int node = none;       // of the job that it is a member of, or at which it waits to be taken in
    int forming = none;    // of the next generation's job
    std::vector<int> olds; // of jobs that it has not left yet
    std::map<int, NextJob> olds_made_by;
    std::set<int> passed;  // of those in which all other members have come
    bool joined = false;   // node is a member of a job
    bool settled = false;  // and knows that all other members are
    bool gave_up = false;  // waiting for them: it asks for the next generation instead
    bool deciding = false; // whether to go back to the job before
    bool is_new = false;   // it was in no job before
    NextJob made_by;       // the agreement that has led to the job of node,
    NextJob next;          // and the one that leads to the job that is forming
    std::string place;     // where it would be found as rank 0 of the next generation
    uint64_t job = 0;
    std::set<uint64_t> reached; // the jobs of which it was a member
    uint32_t generation = 0;
    int64_t since = 0; // it is in this generation
    bool asking = false;
    uint32_t attempt = 0;
    std::map<std::pair<uint64_t, uint32_t>, wire::Moved> answers; // by job and attempt
};

class Game {
  public:
    explicit Game(uint32_t seed)
        : net_(seed, 0, 0, [this](int n, const wire::Message &m) { report(n, m); }) {
        net_.rendezvous = [this](int n) { return find(n); };
        net_.open_door = [this](int n) { door_ = n; };
    }

    // "" or what is wrong.
    std::string play() {
        const auto workers = int32_t(net_.draw(1, 6)), servers = int32_t(net_.draw(0, 2));
        for (int32_t m = 0; m < workers + servers; m++) start(m, workers, servers);
        const int64_t news = net_.draw(0, 5);
        for (int64_t i = 0; i < news; i++)
            net_.at(net_.draw(0, 8 * second), [this] { come(net_.draw(0, 5) == 0); });
        pauses_ = net_.draw(0, 2) == 0;
        const int64_t faults = net_.draw(0, 3);
        for (int64_t i = 0; i < faults; i++)
            net_.at(net_.draw(second, 8 * second), [this] { fault(); });
        murders_ = int(net_.draw(0, 2));
        net_.run_until(60 * second);
        check();
        return problem_;
    }
    size_t reached() const { return reached_; }   // processes in the last generation
    size_t taken_in() const { return taken_in_; } // newcomers
    size_t shut_out() const { return shut_out_; } // of those who did not hear of a generation
    size_t repeated() const { return repeated_; } // generations that did not form at once

  private:
    void wrong(const std::string &what) {
        if (problem_.empty()) problem_ = what;
    }
    Process &of(int n) { return processes_[size_t(process_of_[size_t(n)])]; }
    int number(const Process &p) const { return int(&p - processes_.data()); }

    // ---- processes ----

    int add_node(int process, const Identity &identity) {
        Settings s;
        s.identity = identity;
        s.elastic = true;
        s.heartbeat_interval = interval;
        s.heartbeat_timeout = timeout;
        const bool waits = identity.newcomer;
        s.join_deadline = waits ? INT64_MAX : net_.now() + join_timeout;
        s.job = ++jobs_;
        s.self.role = uint8_t(identity.role);
        s.self.index = identity.index;
        s.self.pid = process;
        const int n = net_.add(s, process);
        process_of_.push_back(process);
        return n;
    }
    Process &make_process() {
        processes_.reserve(64); // references stay
        return processes_.emplace_back();
    }
    void start(int32_t m, int32_t workers, int32_t servers) {
        Process &p = make_process();
        Identity id;
        id.elastic = true;
        id.workers = workers;
        id.servers = servers;
        p.server = m >= workers;
        id.role = p.server ? Role::server : Role::worker;
        id.index = p.server ? m - workers : m;
        p.node = add_node(number(p), id);
        if (m == 0) door_ = p.node;
        net_.at(net_.draw(0, 50 * ms), [this, n = p.node] { net_.start(n); });
    }
    void come(bool server) {
        Process &p = make_process();
        p.server = server;
        knock(p);
    }
    void knock(Process &p) {
        Identity id;
        id.elastic = id.newcomer = true;
        id.role = p.server ? Role::server : Role::worker;
        p.node = add_node(number(p), id);
        p.joined = p.settled = false;
        p.since = net_.now();
        net_.start(p.node);
    }
    void end(Process &p, const std::string &why) {
        if (p.over) return;
        p.over = true;
        p.why = why;
        p.olds.insert(p.olds.end(), {p.node, p.forming});
        for (int n : p.olds)
            if (n != none && !net_.crashed(n)) net_.leave(n);
    }

    // ---- where nodes find each other ----

    int find(int n) {
        const Identity &id = net_.settings(n).identity;
        if (id.generation == 0 && !id.newcomer) return 0;
        if (id.newcomer) return net_.crashed(door_) ? Network::nobody : door_;
        const std::string place = id.rendezvous.substr(3); // "at:"
        for (Process &p : processes_) {
            if (p.place != place) continue;
            if (p.over || net_.crashed(p.node)) return Network::nobody;
            const bool there = p.forming != none && net_.started(p.forming) &&
                               net_.settings(p.forming).identity.member() == 0;
            if (there) return p.forming;
            return listens_.contains(place) ? Network::soon : Network::nobody;
        }
        return Network::nobody;
    }

    // ---- what programs do ----

    void soon(Process &p, int64_t least, int64_t most) {
        net_.at(net_.now() + net_.draw(least, most), [this, p = number(p), since = p.since] {
            Process &it = processes_[size_t(p)];
            if (it.since == since) ask(it);
        });
    }
    void ask(Process &p) {
        if (p.over || !p.joined || p.server || p.asking || p.forming != none) return;
        if (p.deciding || (!p.settled && !p.gave_up)) return;
        if (p.generation >= last && p.settled && !others_ask(p)) return;
        p.asking = true;
        wire::ReformRequest request;
        request.group = 1;
        for (int32_t m = 0; m < net_.settings(p.node).identity.workers; m++)
            request.members.push_back(m);
        request.timeout_ns = 5 * second;
        request.place =
            text("place-%d-%llu", number(p), static_cast<unsigned long long>(++places_));
        request.smallest = net_.draw(0, 9) == 0 ? 2 : 1;
        request.leaves = net_.draw(0, 15) == 0;
        p.place = request.place;
        listens_.insert(p.place);
        net_.call(p.node, [this, n = p.node, request](Node &node) {
            Actions actions;
            (void)node.reform(request, of(n).attempt, net_.now(), actions); // or the job is over
            return actions;
        });
        for (Process &other : processes_) // their next operation with this one fails
            if (&other != &p && other.job == p.job) soon(other, 0, second);
    }
    bool others_ask(const Process &p) const {
        return std::ranges::any_of(processes_, [&](const Process &other) {
            return &other != &p && other.job == p.job && other.asking && !other.over;
        });
    }
    void moved(Process &p, int n, const wire::Moved &moved) {
        const Identity &own = net_.settings(n).identity;
        const bool newcomer = own.newcomer;
        if (!newcomer) p.answers[{net_.node(n).membership().job, moved.attempt}] = moved;
        if (!newcomer && !p.server) {
            if (!p.asking || moved.attempt != p.attempt) return;
            p.asking = false;
        }
        if (moved.status == DTRAIN_ERR_FENCED) {
            shut_out_++;
            return end(p, "shut out: " + moved.text);
        }
        if (moved.status != DTRAIN_OK) return p.server ? void() : soon(p, 0, 20 * ms);
        if (p.server && p.forming != none) return; // dtrain_server_wait() looks when it has failed
        if (p.server && n != p.node) { // the one that it was in has not formed on the workers
            net_.leave(std::exchange(p.node, n));
            std::erase(p.olds, n);
            repeated_++;
        }
        if (!p.server && !newcomer && !p.settled && one_has_not_joined(p)) {
            p.deciding = true;
            return net_.at(net_.now() + 500 * ms, [this, q = number(p), n, moved] {
                Process &it = processes_[size_t(q)];
                it.deciding = false;
                if (it.over) return;
                // Otherwise the member was lost there, too.
                one_has_not_joined(it) ? go_back(it) : go_on(it, n, moved);
            });
        }
        go_on(p, n, moved);
    }
    void go_on(Process &p, int n, const wire::Moved &moved) {
        p.next = next_job(net_.settings(n).identity, moved);
        if (!p.next.stays) return end(p, "left at a reform");
        p.forming = add_node(number(p), p.next.identity);
        net_.at(net_.now() + net_.draw(0, 5 * ms), [this, f = p.forming] {
            if (of(f).forming == f) net_.start(f);
        });
        murder(p, n);
    }
    void formed(Process &p, const wire::Roster &roster) {
        if (p.forming != none) {
            if (p.settled) p.passed.insert(p.node);
            p.gave_up = false;
            p.is_new = net_.settings(p.node).identity.newcomer;
            if (!p.is_new) p.olds.push_back(p.node);
            p.olds_made_by[p.node] = std::exchange(p.made_by, p.next);
            p.node = std::exchange(p.forming, none);
        }
        listens_.erase(p.place);
        p.joined = true;
        p.asking = false;
        p.job = roster.job;
        p.since = net_.now();
        p.generation = net_.settings(p.node).identity.generation;
        if (net_.settings(p.node).identity.member() == 0 && p.generation > 0) door_ = p.node;
        if (p.generation == last) reached_++;
        p.settled = p.generation == 0;
        if (p.settled) return soon(p, 200 * ms, 2 * second);
        p.reached.insert(p.job);
        again(p);
        murder(p, p.node);
    }
    // The barrier with which a generation's communicator is made.
    void settle(Process &p) {
        if (p.over || p.settled || p.gave_up || p.forming != none) return;
        if (net_.stopped(p.node)) return again(p);
        const Identity &id = net_.settings(p.node).identity;
        const Membership &state = net_.node(p.node).membership();
        int32_t there = 0;
        for (const Process &other : processes_)
            if (!other.server && other.reached.contains(p.job)) there++;
        p.settled = p.server || there == id.workers;
        if (p.settled) {
            if (p.is_new) taken_in_++;
            if (!p.server) leave_olds(p);
            return soon(p, 200 * ms, 2 * second);
        }
        bool lost = false;
        for (int32_t m = 0; m < id.workers; m++) lost = lost || !state.alive(m);
        if (!lost) return again(p);
        p.gave_up = !p.is_new;
        if (!p.is_new) return soon(p, 0, 20 * ms);
        net_.leave(p.node); // dtrain_comm_create() fails, and the process is started again
        knock(p);
    }
    // A member that is lost in this job and lives in the one before: it has not joined this one, so
    // nobody can have gone on in it.
    bool one_has_not_joined(const Process &p) {
        if (p.olds.empty()) return false;
        const Membership &now = net_.node(p.node).membership();
        const Membership &before = net_.node(p.olds.back()).membership();
        std::vector<int32_t> members = p.made_by.workers;
        members.insert(members.end(), p.made_by.servers.begin(), p.made_by.servers.end());
        for (size_t m = 0; m < members.size(); m++)
            if (members[m] >= 0 && !now.alive(int32_t(m)) &&
                (ended_.contains(p.olds.back()) || before.alive(members[m])))
                return true;
        return false;
    }
    void go_back(Process &p) {
        const auto ended = ended_.find(p.olds.back());
        if (ended != ended_.end()) return end(p, ended->second);
        net_.leave(std::exchange(p.node, p.olds.back()));
        p.olds.pop_back();
        listens_.erase(p.place);
        p.made_by = p.olds_made_by[p.node];
        p.settled = p.passed.contains(p.node);
        p.job = net_.node(p.node).membership().job;
        p.generation = net_.settings(p.node).identity.generation;
        p.since = net_.now();
        p.gave_up = true;
        p.asking = false;
        repeated_++;
        soon(p, 0, 20 * ms);
    }
    // The program destroys its old communicator.
    void leave_olds(Process &p) {
        for (int old : std::exchange(p.olds, {}))
            net_.at(net_.now() + net_.draw(0, 300 * ms), [this, old] { leave_old(old); });
    }
    void leave_old(int n) {
        if (!net_.crashed(n)) net_.leave(n, true);
    }
    void again(Process &p) {
        net_.at(net_.now() + net_.draw(0, 20 * ms), [this, p = number(p), since = p.since] {
            Process &it = processes_[size_t(p)];
            if (it.since == since) settle(it);
        });
    }
    // Its next generation has not formed.
    void not_formed(Process &p) {
        repeated_++;
        listens_.erase(p.place);
        net_.crash(std::exchange(p.forming, none));
        if (net_.settings(p.node).identity.newcomer) return knock(p);
        p.server ? lost(p, p.node) : soon(p, 0, 20 * ms);
    }
    bool deserted(int n) {
        const Membership &state = net_.node(n).membership();
        for (int32_t m = 0; m < net_.settings(n).identity.workers; m++)
            if (state.alive(m)) return false;
        return true;
    }
    void lost(Process &p, int n) {
        if (!p.joined) return;
        if (p.server)
            std::erase_if(p.olds, [this](int old) {
                const bool ends = deserted(old);
                if (ends) net_.leave(old, true);
                return ends;
            });
        if (n != p.node && !p.server) return;
        if (p.server && deserted(p.node) && p.forming == none && p.olds.empty())
            return end(p, "all workers have gone");
        if (p.settled) soon(p, 0, 20 * ms);
    }

    void report(int n, const wire::Message &message) {
        Process &p = of(n);
        if (const auto *over = std::get_if<wire::Over>(&message)) ended_[n] = over->text;
        const bool old = std::ranges::find(p.olds, n) != p.olds.end();
        if (p.over || (n != p.node && n != p.forming && !(old && p.server))) return;
        if (const auto *roster = std::get_if<wire::Roster>(&message))
            formed(p, *roster);
        else if (const auto *m = std::get_if<wire::Moved>(&message))
            moved(p, n, *m);
        else if (std::holds_alternative<wire::Gone>(message))
            lost(p, n);
        else if (const auto *over = std::get_if<wire::Over>(&message); over && n == p.forming)
            not_formed(p);
        else if (over && !old)
            end(p, over->text);
        else if (over) {
            std::erase(p.olds, n);
            lost(p, p.node);
        }
    }

    // ---- faults ----

    void fault() {
        std::vector<int> running;
        for (Process &p : processes_)
            if (!p.over && !net_.crashed(p.node)) running.push_back(number(p));
        if (running.empty()) return;
        const int process = running[size_t(net_.draw(0, int64_t(running.size()) - 1))];
        if (!pauses_) return kill(process, false);
        note_pair(process);
        net_.each_of(process, [&](int n) { net_.stop(n); });
        net_.at(net_.now() + net_.draw(50 * ms, 4 * second),
                [this, process] { net_.each_of(process, [&](int n) { net_.resume(n); }); });
    }
    void kill(int process, bool silenced) {
        Process &p = processes_[size_t(process)];
        if (p.over) return;
        p.over = true;
        p.why = "killed";
        net_.each_of(process, [&](int n) { net_.crash(n, silenced); });
    }
    // Kills the coordinator of the job, or of the next one, when it has told one member, perhaps
    // not yet all.
    void murder(const Process &p, int n) {
        if (murders_ == 0 || pauses_ || net_.draw(0, 5) != 0) return;
        murders_--;
        const Process *victim = nullptr;
        if (net_.draw(0, 1) == 0 && p.forming != none) { // of the next one
            for (const Process &other : processes_)
                if ("at:" + other.place == p.next.identity.rendezvous) victim = &other;
        } else if (!net_.settings(n).identity.newcomer) {
            const Membership &state = net_.node(n).membership();
            for (const Process &other : processes_)
                if (other.joined && other.job == state.job &&
                    net_.settings(other.node).identity.member() == state.coordinator)
                    victim = &other;
        }
        if (victim == nullptr) return;
        net_.at(net_.now(), [this, v = number(*victim)] { kill(v, true); });
    }
    // Of two, both go on when they lose each other.
    void note_pair(int process) {
        const Process &p = processes_[size_t(process)];
        if (p.joined && net_.node(p.node).membership().alive_count() <= 2) pair_ = true;
    }

    // ---- what must hold at the end ----

    void check() {
        if (!net_.broken_message.empty()) wrong("message: " + net_.broken_message);
        std::set<uint64_t> jobs; // of the processes that run
        std::set<std::pair<uint64_t, int32_t>> seats;
        for (const Process &p : processes_) {
            const std::string who = "process " + std::to_string(number(p)) + ": ";
            if (p.over && p.why.empty()) wrong(who + "no reason given");
            if (p.over) {
                const bool meant = p.why == "killed" || p.why.starts_with("left") ||
                                   p.why.starts_with("shut out") || p.why.starts_with("isolated") ||
                                   p.why.starts_with("no other coordinator") ||
                                   p.why.starts_with("all workers");
                if (!pauses_ && !meant && p.generation + joining(p) > 0) wrong(who + p.why);
                continue;
            }
            if (p.joined && !seats.insert({p.job, net_.settings(p.node).identity.member()}).second)
                wrong(who + "has another's number");
            if (p.forming != none) wrong(who + "joining the next generation never ended");
            if (!p.joined) continue; // it waits to be taken in
            jobs.insert(p.job);
            compare(p);
            if (p.asking) wrong(who + "its request was never answered");
            if (p.generation < last && !pauses_)
                wrong(who + text("stayed in generation %u", p.generation));
        }
        if (jobs.size() > 1 && !pair_) wrong("the job was split");
    }
    // All members get the same answer. Those that are fenced later may have got another one, from a
    // coordinator that did not know yet that it was deposed.
    void compare(const Process &p) {
        for (const auto &[request, moved] : p.answers) {
            const wire::Moved &first = answers_.emplace(request, moved).first->second;
            if (first.status != moved.status || first.workers != moved.workers ||
                first.servers != moved.servers || first.place != moved.place)
                wrong("two answers to one request");
        }
    }
    // A process that could not join the first generation has ended with it.
    static uint32_t joining(const Process &p) { return p.joined ? 1 : 0; }

    Network net_;
    std::vector<Process> processes_;
    std::vector<int> process_of_;      // by node
    std::set<std::string> listens_;    // places where a socket is open
    std::map<int, std::string> ended_; // nodes for which their job is over, and why
    std::map<std::pair<uint64_t, uint32_t>, wire::Moved> answers_;
    std::string problem_;
    int door_ = 0;
    bool pauses_ = false, pair_ = false;
    int murders_ = 0;
    uint64_t jobs_ = 0, places_ = 0;
    size_t reached_ = 0, taken_in_ = 0, shut_out_ = 0, repeated_ = 0;
};

uint32_t from_environment(const char *name, uint32_t otherwise) {
    const char *value = std::getenv(name);
    return value == nullptr ? otherwise : uint32_t(std::strtoul(value, nullptr, 10));
}

void random_schedules(void **) {
    const uint32_t first = from_environment("DTRAIN_SEED", 1);
    const uint32_t count = from_environment(
        "DTRAIN_SEEDS",
        std::getenv("DTRAIN_SEED") != nullptr ? 1 : uint32_t(dtrain::test::repeats(1500)));
    size_t reached = 0, taken_in = 0, shut_out = 0, repeated = 0, failures = 0;
    for (uint32_t seed = first; seed < first + count; seed++) {
        Game game(seed);
        const std::string problem = game.play();
        if (!problem.empty() && failures++ < 10)
            print_error("seed %u: %s\n", seed, problem.c_str());
        reached += game.reached();
        taken_in += game.taken_in();
        shut_out += game.shut_out();
        repeated += game.repeated();
    }
    print_message(
        "%u schedules: %zu processes in the last generation, %zu newcomers, %zu shut out, "
        "%zu times a generation did not form\n",
        count, reached, taken_in, shut_out, repeated);
    assert_int_equal(failures, 0);
    assert_true(reached > count); // it is no test if everybody is always shut out
    assert_true(count < 100 || (taken_in > count / 2 && repeated > count / 100));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(random_schedules)};
    return cmocka_run_group_tests_name("generations", tests, nullptr, nullptr);
}
