// A whole job in virtual time for the target of the control protocol: the input chooses when its
// processes start, ask, stop and are lost, and which of their messages are others than they meant.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/fuzz.h"

#include "cluster/control/group_attempt.h"
#include "cluster/control/next_job.h"
#include "tests/unit/cluster/simulation.h"

#include <optional>

namespace dtrain::fuzz {

using namespace dtrain::cluster;

enum class Happens : uint8_t {
    time,
    start,
    crash,
    stop,
    resume,
    cut,
    heal,
    leave,
    group,
    reform,
    calls,
    relay,
    lie,
    come,
    restart,
    start_all,
    count
};

class SimulatedJob {
  public:
    static constexpr int most_nodes = 8, most_events = 60;
    static constexpr int64_t most_time = 60 * second;
    // Makes a message of the input, for a job with this number.
    using Lie = std::function<wire::Message(uint64_t job, Input &in)>;

    SimulatedJob(Input &in, Lie lie)
        : in_(in), lie_(std::move(lie)), shape_(in.byte()),
          net_(
              shape_, 1 + shape_ % 4, shape_ / 4 % 2,
              [this](int n, const wire::Message &message) { report(n, message); },
              [this](Settings &s) { s.identity.elastic = s.elastic = elastic(); }) {
        net_.open_door = [this](int n) { door_ = n; };
        net_.rendezvous = [this](int n) {
            return net_.settings(n).identity.newcomer && !net_.crashed(door_) ? door_ : 0;
        };
        net_.tamper = [this](int n, wire::Message &message) {
            if (n == liar_) message = *std::exchange(said_, std::nullopt), liar_ = -1;
        };
        for (int n = 0; n < net_.size(); n++) tags_.emplace_back();
    }
    void run() {
        for (int i = 0; i < most_events && !in_.empty() && net_.now() < most_time; i++) happen();
        for (int n = 0; n < net_.size(); n++) net_.leave(n);
        net_.run_until(net_.now() + 2 * second);
        FUZZ_REQUIRE(net_.broken_message.empty()); // what is sent is what its receiver accepts
    }

  private:
    bool elastic() const { return shape_ >= 128; }
    int some_node() { return in_.byte() % net_.size(); }
    std::vector<int32_t> some_members() {
        std::vector<int32_t> members;
        const uint8_t bits = in_.byte();
        const int size = net_.settings(0).identity.members();
        for (int m = 0; m < size; m++)
            if (bits & (1 << m)) members.push_back(m);
        if (members.empty()) members.push_back(0);
        return members;
    }
    void happen() {
        const Happens what = Happens(in_.byte() % uint8_t(Happens::count));
        if (what == Happens::time) // milliseconds, or tenths of a second
            return net_.run_until(net_.now() + in_.byte() * (in_.byte() % 2 ? 100 * ms : ms));
        if (what == Happens::start_all) {
            for (int n = 0; n < net_.size(); n++) start(n);
            return;
        }
        const int n = some_node();
        switch (what) {
        case Happens::start: return start(n);
        case Happens::crash: return net_.crash(n, in_.byte() % 2 == 1);
        case Happens::stop: return net_.stop(n);
        case Happens::resume: return net_.resume(n);
        case Happens::cut: return net_.cut(n, some_node());
        case Happens::heal: return net_.heal(n, some_node());
        case Happens::leave: return net_.leave(n, in_.byte() % 2 == 1);
        case Happens::group: return ask_group(n);
        case Happens::reform: return ask_reform(n);
        case Happens::calls: {
            wire::Calls calls;
            calls.group = 1;
            calls.members = some_members();
            const uint8_t how = in_.byte();
            calls.stalled = how & 1, calls.stuck = how & 2;
            calls.calls = {{1, 8, 0}, {2, in_.byte(), int32_t(how % 8) - 1}};
            calls.calls[1].kind = wire::CallKind(how / 8 % 8);
            calls.calls[1].dtype = how % 8;
            return post(n, calls);
        }
        case Happens::relay: return post(n, wire::Relay{n, some_node(), in_.byte(), in_.bytes(8)});
        case Happens::lie: return lie(n);
        case Happens::come: return come();
        default:
            if (net_.crashed(n) && net_.started(n)) net_.restart(n);
        }
    }
    // The next message of the node is another one, if that is one at all.
    void lie(int n) {
        said_ = lie_(net_.settings(0).job, in_);
        wire::Message same;
        liar_ = wire::decode(wire::encode(*said_), same) == DTRAIN_OK ? n : -1;
    }
    void start(int n) {
        if (!net_.started(n)) net_.start(n);
    }
    void post(int n, const wire::Message &message) {
        if (!net_.started(n)) return;
        net_.call(n, [this, message](Node &node) {
            Actions actions;
            (void)node.post(message, net_.now(), actions);
            return actions;
        });
    }
    void ask_group(int n) {
        wire::GroupRequest request;
        request.kind = wire::GroupKind(in_.byte() % 2);
        request.group = 1;
        request.members = some_members();
        request.timeout_ns = in_.byte() * 20 * ms;
        request.user_tag = in_.byte() % 2;
        ask(n, std::make_shared<GroupAttempt>(tags_[size_t(n)], request));
    }
    void ask(int n, const std::shared_ptr<GroupAttempt> &attempt) {
        if (!net_.started(n)) return;
        net_.call(n, [this, n, attempt](Node &node) {
            Actions actions;
            uint32_t serial = 0;
            if (node.ask(attempt->request(), serial, net_.now(), actions) == DTRAIN_OK)
                attempts_[{n, serial}] = attempt;
            return actions;
        });
    }
    void ask_reform(int n) {
        wire::ReformRequest request;
        request.group = 1;
        request.members = some_members();
        request.timeout_ns = in_.byte() * 20 * ms;
        request.place = "sim:0:0";
        const uint8_t how = in_.byte();
        request.smallest = 1 + how % 3, request.largest = how / 4 % 8, request.leaves = how >= 128;
        if (request.largest > 0) request.largest = std::max(request.largest, request.smallest);
        if (!net_.started(n) || !elastic()) return;
        net_.call(n, [this, request](Node &node) {
            Actions actions;
            uint32_t number = 0;
            (void)node.reform(request, number, net_.now(), actions);
            return actions;
        });
    }
    void come() {
        if (net_.size() >= most_nodes || !elastic()) return;
        Settings s = net_.settings(0);
        s.identity = {};
        s.identity.elastic = s.identity.newcomer = true;
        s.identity.role = Role(in_.byte() % 2);
        s.join_deadline = INT64_MAX;
        s.self.role = uint8_t(s.identity.role);
        s.self.index = 0;
        const int n = net_.add(s, net_.size());
        tags_.emplace_back();
        net_.start(n);
    }
    // A program that goes on.
    void report(int n, const wire::Message &message) {
        if (const auto *reply = std::get_if<wire::GroupReply>(&message)) {
            const auto at = attempts_.find({n, answered_serial(*reply, n)});
            if (at == attempts_.end()) return;
            const std::shared_ptr<GroupAttempt> attempt = at->second;
            attempts_.erase(at);
            (void)attempt->fits(*reply);
            if (reply->status == DTRAIN_OK && !reply->again) attempt->keep();
            if (!reply->again) return;
            attempt->again(*reply);
            net_.at(net_.now(), [this, n, attempt] { ask(n, attempt); });
        } else if (const auto *moved = std::get_if<wire::Moved>(&message)) {
            if (moved->status != DTRAIN_OK) return;
            NextJob next = next_job(net_.settings(n).identity, *moved);
            if (last_.stays) add_changes(last_, next);
            last_ = next;
        } else if (const auto *wanted = std::get_if<wire::CallsWanted>(&message)) {
            const wire::Calls calls{wanted->group, {0, 1}, true, {{1, 8, 0}}, false};
            net_.at(net_.now(), [this, n, calls] { post(n, calls); });
        }
    }

    Input &in_;
    const Lie lie_;
    const uint8_t shape_;
    std::deque<TagIds> tags_; // by node; attempts that are on their way refer to them
    simulation::Network net_;
    std::map<std::pair<int, uint32_t>, std::shared_ptr<GroupAttempt>> attempts_;
    std::optional<wire::Message> said_; // what a node is about to say instead
    int liar_ = -1, door_ = 0;
    NextJob last_;
};

} // namespace dtrain::fuzz
