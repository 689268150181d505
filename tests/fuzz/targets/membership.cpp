// The control protocol's state machines: what members say to a coordinator, a coordinator to a
// member, newcomers to both, in any order and at any time.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the kind of job, then steps. A Received carries a flatbuffer as it comes from a
// connection, or a message of `likely` with a few fields from the input. From 128 on, it is about
// all processes of a simulated job, of which some may lie (simulated_job.h).
#include "tests/fuzz/likely_message.h"
#include "tests/fuzz/simulated_seeds.h"

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;
using fuzz::likely;
using fuzz::peer_of;
using fuzz::some_members;

namespace {

enum class Step : uint8_t {
    time,
    accepted,
    dialled,
    dial_failed,
    likely,
    raw,
    closed,
    turned_away,
    post,
    count
};
constexpr size_t most_actions = 100'000; // of one event

struct Rig {
    Rig(int32_t rank, bool elastic, bool newcomer)
        : settings(make(rank, elastic, newcomer)), node(settings) {
        take(node.start(now));
    }
    static Settings make(int32_t rank, bool elastic, bool newcomer) {
        Settings s;
        s.identity.index = rank;
        s.identity.workers = 3;
        s.identity.servers = 1;
        s.identity.elastic = s.elastic = elastic;
        s.identity.newcomer = newcomer && elastic && rank > 0;
        s.heartbeat_interval = 250 * ms;
        s.heartbeat_timeout = second;
        s.join_deadline = 10 * second;
        s.job = 42;
        s.self = peer_of(s.identity.index, 3);
        return s;
    }
    void step(Event event) { take(node.step(std::move(event), now)); }
    void take(Actions actions) {
        FUZZ_REQUIRE(actions.size() < most_actions);
        for (const Action &action : actions) {
            if (const auto *send = std::get_if<Send>(&action)) {
                FUZZ_REQUIRE(send->message != nullptr);
                if (send->message == last) continue; // to all
                last = send->message;
                // What is sent is what its receiver accepts.
                wire::Message message;
                FUZZ_REQUIRE(wire::decode(wire::encode(*send->message), message) == DTRAIN_OK);
            } else if (const auto *close = std::get_if<Close>(&action)) {
                links.erase(close->link);
            } else if (const auto *dial = std::get_if<Dial>(&action)) {
                dials.push_back(dial->link);
            }
        }
    }
    Link some_link(uint8_t number) const {
        if (links.empty()) return number;
        auto at = links.begin();
        std::advance(at, number % links.size());
        return *at;
    }

    int64_t now = second;
    Settings settings;
    Node node;
    std::shared_ptr<const wire::Message> last;
    std::set<Link> links; // open
    std::vector<Link> dials;
    Link next_accepted = 2;
};

void act(Rig &rig, fuzz::Input &in) {
    const Step step = Step(in.byte() % uint8_t(Step::count));
    switch (step) {
    case Step::time: {
        const uint8_t how = in.byte();
        const int64_t due = rig.node.next_deadline();
        FUZZ_REQUIRE(due > 0);
        if (how < 128 && due != INT64_MAX)
            rig.now = std::max(rig.now, due);
        else
            rig.now += how * 10 * ms;
        return rig.step(Tick{});
    }
    case Step::accepted: {
        const Link link = std::exchange(rig.next_accepted, rig.next_accepted + 2);
        rig.links.insert(link);
        const uint8_t member = in.byte();
        return rig.step(Accepted{link, member < 240 ? member % 5 : Identity::newcomer_number,
                                 "10.0.0.9", "10.0.0.1"});
    }
    case Step::dialled:
    case Step::dial_failed: {
        if (rig.dials.empty()) return;
        const uint8_t how = in.byte();
        const Link link = rig.dials.back();
        rig.dials.pop_back();
        if (step == Step::dialled) {
            rig.links.insert(link);
            return rig.step(Dialled{link, "10.0.0.1:7000"});
        }
        return rig.step(DialFailed{link, how % 4 ? DTRAIN_ERR_PEER : DTRAIN_ERR_AUTH, how % 2 == 1,
                                   "cannot be reached"});
    }
    case Step::likely:
    case Step::raw: {
        const Link link = rig.some_link(in.byte());
        wire::Message message;
        if (step == Step::likely) {
            if (wire::decode(wire::encode(likely(rig.settings.job, in)), message) != DTRAIN_OK)
                return;
        } else if (wire::decode(in.bytes(in.take<uint16_t>() % 1024), message) != DTRAIN_OK) {
            return;
        }
        if (!rig.links.contains(link)) return; // a connection that is closed says nothing
        return rig.step(Received{link, std::move(message)});
    }
    case Step::closed: {
        const Link link = rig.some_link(in.byte());
        if (rig.links.erase(link) == 0) return;
        return rig.step(
            Closed{link, "closed", in.byte() % 2 ? DTRAIN_ERR_PEER : DTRAIN_ERR_CORRUPT});
    }
    case Step::turned_away:
        return rig.step(TurnedAway{in.byte() % 6 - 1, "10.0.0.9", "wrong secret"});
    default: {
        Actions actions;
        const uint8_t what = in.byte();
        uint32_t number = 0;
        if (what % 4 == 0) {
            wire::GroupRequest request;
            request.members = some_members(in);
            request.timeout_ns = second;
            (void)rig.node.ask(std::move(request), number, rig.now, actions);
        } else if (what % 4 == 1) {
            wire::ReformRequest request;
            request.members = some_members(in);
            request.timeout_ns = second;
            (void)rig.node.reform(std::move(request), number, rig.now, actions);
        } else if (what % 4 == 2) {
            (void)rig.node.post(wire::Relay{1, in.byte() % 4, 0, {1}}, rig.now, actions);
        } else {
            rig.take(rig.node.leave(what >= 128));
        }
        return rig.take(std::move(actions));
    }
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t kind = in.byte();
    if (kind >= 128) {
        fuzz::SimulatedJob(in, likely).run();
        return 0;
    }
    const int32_t rank = (kind & 1) != 0 ? 0 : (kind & 8) != 0 ? 2 : 1;
    Rig rig(rank, (kind & 2) != 0, (kind & 4) != 0);
    for (int steps = 0; !in.empty() && steps < 200; steps++) act(rig, in);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto say = [](Made &made, uint8_t link, uint8_t group, uint8_t kind,
                        std::initializer_list<uint8_t> fields = {}) {
        made.byte(uint8_t(Step::likely)).byte(link).byte(group).byte(kind).all(fields);
    };
    const auto tick = [](Made &made, uint8_t how = 0) { made.byte(uint8_t(Step::time)).byte(how); };
    std::vector<Bytes> out;
    for (const uint8_t elastic : {0, 2}) {
        Made joining; // three join rank 0; then all kinds of messages, a lost member, the end
        joining.byte(uint8_t(1 | elastic));
        for (uint8_t member = 1; member < 4; member++) {
            joining.byte(uint8_t(Step::accepted)).byte(member);
            say(joining, uint8_t(member - 1), 0, 0, {member, 0, 0});
        }
        tick(joining);
        say(joining, 0, 0, 3, {1});
        say(joining, 0, 1, 12, {15, 0, 100, 0, 0, 1, 0});
        say(joining, 1, 1, 7, {7, 1, 2});
        say(joining, 1, 1, 8, {7, 1, 3, 0});
        say(joining, 0, 1, 11, {1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8});
        say(joining, 0, 1, 17, {7, 0, 100, 1, 0, 0});
        joining.byte(uint8_t(Step::post)).byte(0).byte(15);
        joining.byte(uint8_t(Step::post)).byte(1).byte(7);
        joining.byte(uint8_t(Step::closed)).byte(1).byte(1);
        for (int i = 0; i < 5; i++) tick(joining, 100);
        say(joining, 0, 0, 4);
        out.push_back(joining);

        Made member; // rank 1 joins, loses rank 0, and seeks another coordinator
        member.byte(elastic).byte(uint8_t(Step::dialled)).byte(0);
        say(member, 0, 0, 1);
        say(member, 0, 3, 2, {0});
        say(member, 0, 0, 3, {1});
        say(member, 0, 0, 6, {1, 2, 0, 0, 0});
        say(member, 0, 0, 13, {7, 1, 0, 0});
        member.byte(uint8_t(Step::closed)).byte(0).byte(1);
        tick(member);
        member.byte(uint8_t(Step::dial_failed)).byte(1);
        tick(member);
        member.byte(uint8_t(Step::accepted)).byte(2);
        say(member, 0, 1, 14, {1, 2, 1, 0, 0, 0, 0});
        for (int i = 0; i < 5; i++) tick(member, 200);
        out.push_back(member);
    }
    Made newcomer;
    newcomer.byte(6).byte(uint8_t(Step::dialled)).byte(0);
    say(newcomer, 0, 0, 1);
    say(newcomer, 0, 0, 18, {1, 3, 1, 1});
    tick(newcomer);
    out.push_back(newcomer);
    Made refused;
    refused.byte(0).byte(uint8_t(Step::dial_failed)).byte(1);
    tick(refused);
    refused.byte(uint8_t(Step::dialled)).byte(0);
    say(refused, 0, 1, 5);
    tick(refused);
    refused.byte(uint8_t(Step::dialled)).byte(0);
    say(refused, 0, 0, 5);
    out.push_back(refused);
    const auto wait = [&](Made &made, int times) {
        while (times-- > 0) tick(made, 255); // 2.5 s
    };
    const auto accept = [](Made &made, uint8_t member) {
        made.byte(uint8_t(Step::accepted)).byte(member);
    };
    for (const uint8_t odd : {0, 1, 2, 3, 9}) { // refused ones, while the others do not come
        Made joining;
        joining.byte(1);
        accept(joining, 1);
        say(joining, 0, 0, 0, {1, 0, 0});
        accept(joining, 2);
        if (odd == 9)
            say(joining, 1, 0, 0, {242, 0, 7, 0}); // other numbers of processes
        else
            say(joining, 1, 0, 0, {uint8_t(odd == 0 ? 3 : 2), 0, odd});
        accept(joining, 1);
        say(joining, 1, 0, 0, {1, 0, 0}); // a number twice
        joining.byte(uint8_t(Step::turned_away)).byte(3).byte(uint8_t(Step::turned_away)).byte(0);
        accept(joining, 3);
        say(joining, 1, 0, 3, {1}); // not a request to join
        accept(joining, 3);         // nothing at all
        wait(joining, 5);
        out.push_back(joining);
    }
    for (const uint8_t kind : {2, 4, 5, 14, 16}) { // said by a member of a job that runs
        Made running;
        running.byte(1);
        for (uint8_t member = 1; member < 4; member++) {
            accept(running, member);
            say(running, uint8_t(member - 1), 0, 0, {member, 0, 0});
        }
        say(running, 0, 1, kind, {1, 0, 0, 0});
        accept(running, 1);
        say(running, 2, 0, 0, {1, 0, 0});
        accept(running, 2);
        say(running, 3, 1, 14, {1, 2, 1, 0, 0, 0, 0});
        wait(running, 3);
        out.push_back(running);
    }
    for (const uint8_t how : {1, 2, 4, 6, 255}) { // a member that looks for another coordinator
        Made seeking;
        seeking.byte(0).byte(uint8_t(Step::dialled)).byte(0);
        say(seeking, 0, 3, 2, {0});
        seeking.byte(uint8_t(Step::closed)).byte(0).byte(how == 6 ? 0 : 1);
        for (int i = 0; i < 4; i++) {
            if (how == 255)
                seeking.byte(uint8_t(Step::dialled)).byte(0);
            else
                seeking.byte(uint8_t(Step::dial_failed)).byte(how);
            tick(seeking);
            if (how == 255) wait(seeking, 1);
        }
        accept(seeking, 3);
        say(seeking, 0, 1, 14, {1, 3, 1, 0, 0, 0, 0});
        wait(seeking, 4);
        out.push_back(seeking);
    }
    fuzz::add_simulated(out);
    // Rank 2 loses rank 0, and calls rank 1: which is not there, is silent, or answers.
    enum class Rank1 : uint8_t { refuses, cannot_be_reached, differs, is_silent, ends, answers };
    using enum Rank1;
    for (const bool elastic : {false, true})
        for (const bool leaves : {false, true})
            for (const Rank1 next :
                 {refuses, cannot_be_reached, differs, is_silent, ends, answers}) {
                Made seeking;
                seeking.byte(elastic ? 10 : 8).byte(uint8_t(Step::dialled)).byte(0);
                say(seeking, 0, 3, 2, {0});
                if (leaves) say(seeking, 0, 0, 4);
                seeking.byte(uint8_t(Step::closed)).byte(0).byte(1);
                if (leaves) tick(seeking); // it pauses then
                if (next == is_silent || next == ends || next == answers)
                    seeking.byte(uint8_t(Step::dialled)).byte(0);
                else
                    for (int i = 0; i < 2; i++) // it dials once more
                        seeking.byte(uint8_t(Step::dial_failed))
                            .byte(next == refuses   ? 1
                                  : next == differs ? 4
                                                    : 2);
                if (next == ends) seeking.byte(uint8_t(Step::closed)).byte(0).byte(1);
                if (next == answers) say(seeking, 0, 0, 15, {2, 1, 3, 0, 1, 0});
                for (int i = 0; i < 6; i++) tick(seeking);
                wait(seeking, 3);
                out.push_back(seeking);
            }
    return out;
}
