// The control protocol under thousands of random schedules in virtual time.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed; DTRAIN_SEED=<n> runs just that one, DTRAIN_SEEDS=<n> that many.
#include "check.h"

#include "cluster/control/group_attempt.h"
#include "repeats.h"
#include "simulation.h"

#include <algorithm>
#include <cstdlib>

using namespace simulation;

namespace {

// A group that some members make without the others, at about the same time.
struct Plan {
    std::vector<int32_t> members;
    int32_t user_tag = 0;
    std::set<int32_t> absent; // members that never call
};

// One member's part in making a group.
struct Making {
    int32_t plan = -1; // -1: a shrink
    std::unique_ptr<GroupAttempt> attempt;
};

// A training program: joins; when a member is lost, shrinks its group, and again until it holds.
// Meanwhile it makes other groups.
struct Player {
    bool joined = false, over = false;
    Status status = DTRAIN_OK;
    std::string text;
    int64_t decided = 0; // when it joined, or that was over
    uint64_t group = 1, epoch = 0;
    std::vector<int32_t> members;
    std::set<int32_t> gone;
    bool shrinking = false;
    TagIds tags;
    std::map<uint32_t, Making> making;        // by the number of the request
    std::map<int32_t, wire::GroupReply> made; // by plan
    // Answers by the number of a request of the member that each names first.
    std::map<std::pair<int32_t, uint32_t>, wire::GroupReply> answers;
};

class Game {
  public:
    explicit Game(uint32_t seed)
        : net_(seed, int32_t(pick(seed, 1)), int32_t(pick(seed, 2)),
               [this](int n, const wire::Message &m) { report(n, m); }),
          players_(size_t(net_.size())) {}

    // "" or what is wrong.
    std::string play() {
        for (int n = 0; n < net_.size(); n++)
            net_.at(net_.draw(0, 50 * ms), [this, n] { net_.start(n); });
        gentle_ = net_.draw(0, 2) == 0;
        murders_ = net_.draw(0, 2) == 0 ? 2 : 0;
        int faults = int(net_.draw(0, 4));
        for (int i = 0; i < faults; i++) fault();
        for (Player &p : players_) // so that members often have to look for a common tag
            for (int i = 0; i < 200; i++) p.tags.take(uint32_t(net_.draw(0, group_tags - 1)));
        plans_.resize(size_t(net_.draw(0, 4)));
        for (size_t i = 0; i < plans_.size(); i++) plan(int32_t(i));
        net_.run_until(60 * second);
        check();
        return problem_;
    }
    size_t survivors() const { return survivors_; }
    size_t groups() const { return groups_; }

  private:
    static int64_t pick(uint32_t seed, uint32_t what) {
        uint32_t x = seed * 2654435761u ^ what * 40503u;
        x ^= x >> 15;
        return what == 1 ? 2 + x % 11 : x % 4;
    }
    void wrong(const std::string &what) {
        if (problem_.empty()) problem_ = what;
    }

    void fault() {
        bool early = !gentle_ && net_.draw(0, 3) == 0;
        int64_t when = early ? net_.draw(0, 200 * ms) : net_.draw(second, 6 * second);
        int a = int(net_.draw(0, net_.size() - 1)), b = int(net_.draw(0, net_.size() - 1));
        if (net_.draw(0, 2) == 0) a = 0; // the coordinator is the most interesting
        int64_t length = net_.draw(50 * ms, 5 * second);
        switch (net_.draw(0, gentle_ ? 2 : 5)) {
        case 0:
        case 1: net_.at(when, [this, a] { net_.crash(a); }); break;
        case 2: net_.at(when, [this, a] { net_.leave(a); }); break;
        case 3:
            net_.at(when, [this, a] { net_.stop(a); });
            net_.at(when + length, [this, a] { net_.resume(a); });
            break;
        case 4: // one way
            net_.at(when, [this, a, b] { net_.cut(a, b); });
            net_.at(when + length, [this, a, b] { net_.heal(a, b); });
            break;
        case 5:
            net_.at(when, [this, a] { isolate(a, true); });
            net_.at(when + length, [this, a] { isolate(a, false); });
            break;
        }
    }
    // Mostly, members call at about the same time.
    void plan(int32_t number) {
        Plan &plan = plans_[size_t(number)];
        for (int32_t m = 0; m < net_.size(); m++)
            if (net_.draw(0, 1) == 0) plan.members.push_back(m);
        if (plan.members.empty()) plan.members.push_back(0);
        for (size_t i = plan.members.size(); i-- > 1;)
            std::swap(plan.members[i], plan.members[size_t(net_.draw(0, int64_t(i)))]);
        const auto same = [&](const Plan &p) { return &p != &plan && p.members == plan.members; };
        plan.user_tag = std::ranges::any_of(plans_, same) ? number : -1;
        const bool whole = net_.draw(0, 3) != 0;
        const int64_t when = net_.draw(second, 6 * second);
        for (int32_t m : plan.members)
            if (!whole && net_.draw(0, 3) == 0)
                plan.absent.insert(m);
            else
                net_.at(when + net_.draw(0, 300 * ms), [this, m, number] { begin(m, number); });
    }
    void begin(int n, int32_t number) {
        wire::GroupRequest request;
        request.kind = wire::GroupKind::create;
        request.group = 1;
        request.members = plans_[size_t(number)].members;
        request.timeout_ns = 5 * second;
        request.user_tag = plans_[size_t(number)].user_tag;
        net_.call(n, [this, n, number, request](Node &node) {
            Player &p = players_[size_t(n)];
            if (!p.joined || p.over) return Actions{};
            return ask(n, node, {number, std::make_unique<GroupAttempt>(p.tags, request)});
        });
    }
    Actions ask(int n, Node &node, Making making) {
        Player &p = players_[size_t(n)];
        Actions actions;
        uint32_t serial = 0;
        if (node.ask(making.attempt->request(), serial, net_.now(), actions) != DTRAIN_OK)
            wrong("a request was refused");
        p.making[serial] = std::move(making);
        return actions;
    }
    void answered(int n, const wire::GroupReply &reply) {
        Player &p = players_[size_t(n)];
        const auto at = p.making.find(answered_serial(reply, n));
        if (at == p.making.end()) return wrong("an answer to nothing");
        auto making = std::make_shared<Making>(std::move(at->second));
        p.making.erase(at);
        if (reply.again) {
            making->attempt->again(reply);
            return net_.at(net_.now(), [this, n, making] {
                net_.call(n, [this, n, making](Node &node) {
                    if (players_[size_t(n)].over) return Actions{};
                    return ask(n, node, std::move(*making));
                });
            });
        }
        p.answers[{reply.members[0], reply.serials[0]}] = reply;
        if (reply.status == DTRAIN_OK) {
            if (making->attempt->request().held != int32_t(reply.tag_id))
                wrong("a group with a tag that a member does not hold");
            making->attempt->keep();
        }
        if (making->plan < 0)
            shrunk(n, reply);
        else
            p.made[making->plan] = reply;
    }

    void isolate(int a, bool on) {
        for (int b = 0; b < net_.size(); b++)
            if (b != a) {
                on ? net_.cut(a, b) : net_.heal(a, b);
                on ? net_.cut(b, a) : net_.heal(b, a);
            }
    }

    void report(int n, const wire::Message &message) {
        Player &p = players_[size_t(n)];
        if (p.over) return wrong("a report after the end");
        if (const auto *roster = std::get_if<wire::Roster>(&message)) {
            p.joined = true;
            p.decided = net_.now();
            for (int32_t m = 0; m < int32_t(roster->members.size()); m++) p.members.push_back(m);
        } else if (const auto *gone = std::get_if<wire::Gone>(&message)) {
            if (!p.gone.insert(gone->member).second) wrong("lost twice");
            if (gone->member == n) wrong("told of its own loss");
            soon(n);
        } else if (const auto *over = std::get_if<wire::Over>(&message)) {
            p.over = true;
            p.status = over->status;
            p.text = over->text;
            if (p.decided == 0) p.decided = net_.now();
        } else if (const auto *reply = std::get_if<wire::GroupReply>(&message)) {
            answered(n, *reply);
        }
        murder(n, message);
        uint64_t epoch = net_.node(n).membership().epoch;
        if (epoch < p.epoch) wrong("the epoch went back");
        p.epoch = epoch;
    }

    // Kills the coordinator at the worst time: when it has told one member, perhaps not yet all.
    void murder(int n, const wire::Message &message) {
        if (murders_ == 0 || net_.draw(0, 3) != 0) return;
        if (!std::holds_alternative<wire::GroupReply>(message) &&
            !std::holds_alternative<wire::Gone>(message))
            return;
        murders_--;
        int victim = net_.node(n).membership().coordinator;
        net_.at(net_.now(), [this, victim] { net_.crash(victim, true); });
    }

    bool broken(const Player &p) const {
        for (int32_t m : p.members)
            if (p.gone.contains(m)) return true;
        return false;
    }

    void soon(int n) {
        net_.at(net_.now() + net_.draw(0, 20 * ms),
                [this, n] { net_.call(n, [this, n](Node &node) { return shrink(n, node); }); });
    }

    Actions shrink(int n, Node &node) {
        Player &p = players_[size_t(n)];
        Actions actions;
        if (!p.joined || p.over || p.shrinking || !broken(p)) return actions;
        p.shrinking = true;
        wire::GroupRequest request{p.group, p.members, {}, 5 * second};
        return ask(n, node, {-1, std::make_unique<GroupAttempt>(p.tags, std::move(request))});
    }

    void shrunk(int n, const wire::GroupReply &reply) {
        Player &p = players_[size_t(n)];
        if (!p.shrinking || reply.group != p.group) return wrong("an answer to another shrink");
        p.shrinking = false;
        if (reply.status == DTRAIN_OK) {
            for (const int32_t m : p.members)
                if (std::ranges::count(reply.members, m) == 0 && !p.gone.contains(m))
                    wrong("a smaller group without a member of whose end nothing is known");
            p.group = reply.new_group;
            p.members = reply.members;
        }
        soon(n);
    }

    void check() {
        if (!net_.broken_message.empty()) wrong("message: " + net_.broken_message);
        std::map<uint64_t, std::set<int>> groups; // that are whole, of those still running
        for (int n = 0; n < net_.size(); n++) {
            const Player &p = players_[size_t(n)];
            if (net_.crashed(n)) continue;
            std::string who = "member " + std::to_string(n) + ": ";
            if (!p.joined && !p.over) wrong(who + "joining never ended");
            // A fault lasts up to 11 s; after it everything is quick.
            if (!p.joined && p.decided > join_timeout + 12 * second) wrong(who + "joined too late");
            if (p.over && p.text.empty()) wrong(who + "no reason given");
            // When processes only end, nobody else is shut out.
            if (p.over && gentle_) wrong(who + "fenced: " + p.text);
            if (p.over || !p.joined) continue;
            if (p.shrinking) wrong(who + "shrink never ended");
            if (!p.making.empty()) wrong(who + "making a group never ended");
            check_answers(p);
            if (broken(p)) wrong(who + "its group is still broken");
            groups[p.group].insert(n);
            survivors_++;
        }
        for (size_t i = 0; i < plans_.size(); i++) check_plan(int32_t(i));
        // Those that run are together, but for the last two of a job, which both go on when cut
        // apart.
        bool two = groups.size() == 2 && survivors_ == 2;
        if (groups.size() > 1 && !two) wrong("the job was split");
        for (const auto &[group, members] : groups)
            for (int n : members) {
                const auto &own = players_[size_t(n)].members;
                if (std::set<int>(own.begin(), own.end()) != members) wrong("survivors differ");
            }
    }

    // Those that are fenced later may have been told something else by the side that lost.
    void check_answers(const Player &p) {
        for (const auto &[key, reply] : p.answers) {
            const wire::GroupReply &first = answers_.emplace(key, reply).first->second;
            if (first.status != reply.status || first.members != reply.members ||
                first.new_group != reply.new_group || first.tag_id != reply.tag_id)
                wrong("two answers to one request");
        }
    }

    bool runs(int32_t n) const {
        const Player &p = players_[size_t(n)];
        return !net_.crashed(n) && p.joined && !p.over;
    }
    // A group is made on all members or on none of those that run; if it need not fail, it is made.
    void check_plan(int32_t number) {
        const Plan &plan = plans_[size_t(number)];
        std::map<uint64_t, int> made; // 0: no group
        bool all_run = true;
        for (int32_t m : plan.members) {
            all_run = all_run && runs(m);
            if (!runs(m) || plan.absent.contains(m)) continue;
            const auto at = players_[size_t(m)].made.find(number);
            if (at == players_[size_t(m)].made.end()) {
                if (gentle_) wrong("a member was not answered");
                continue; // it was not running when it should have begun
            }
            const wire::GroupReply &reply = at->second;
            const bool good = reply.status == DTRAIN_OK;
            if (good && reply.members != plan.members) wrong("a group of others than planned");
            if (!good && reply.text.empty()) wrong("no reason given");
            made[good ? reply.new_group : 0]++;
        }
        if (made.size() > 1) wrong("a group was not made by all of its members");
        const bool exists = !made.empty() && !made.contains(0);
        if (exists && !plan.absent.empty()) wrong("a group with a member that did not call");
        if (gentle_ && all_run && plan.absent.empty() && !exists) wrong("a group was not made");
        if (exists) groups_++;
    }

    Network net_;
    std::vector<Player> players_;
    std::vector<Plan> plans_;
    std::map<std::pair<int32_t, uint32_t>, wire::GroupReply> answers_;
    std::string problem_;
    bool gentle_ = false; // processes end, and only once all have joined
    int murders_ = 0;
    size_t survivors_ = 0, groups_ = 0;
};

uint32_t from_environment(const char *name, uint32_t otherwise) {
    const char *value = std::getenv(name);
    return value == nullptr ? otherwise : uint32_t(std::strtoul(value, nullptr, 10));
}

void random_schedules(void **) {
    uint32_t first = from_environment("DTRAIN_SEED", 1);
    uint32_t count = from_environment("DTRAIN_SEEDS", std::getenv("DTRAIN_SEED") != nullptr
                                                          ? 1
                                                          : uint32_t(dtrain::test::repeats(1500)));
    size_t survivors = 0, groups = 0, failures = 0;
    for (uint32_t seed = first; seed < first + count; seed++) {
        Game game(seed);
        std::string problem = game.play();
        if (!problem.empty() && failures++ < 10)
            print_error("seed %u: %s\n", seed, problem.c_str());
        survivors += game.survivors();
        groups += game.groups();
    }
    print_message("%u schedules, %zu survivors, %zu groups\n", count, survivors, groups);
    assert_int_equal(failures, 0);
    assert_true(survivors > count); // it is no test if everybody is always fenced
    assert_true(groups > count / 2 || count < 100);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(random_schedules)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
