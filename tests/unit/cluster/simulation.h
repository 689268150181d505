// Nodes in virtual time on a simulated network: seeded delays, crashes, stops, one-way cuts.
// SPDX-License-Identifier: Apache-2.0
//
// Connections behave as TCP's do: in order, without loss; a cut holds what is sent until it heals;
// a crash closes them (unless the way is cut); nobody answers a dial over a cut way. A process may
// have several nodes, one for each job of which it is a member; whatever happens, happens to all of
// them.
#pragma once
#include "cluster/control/node.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <utility>

namespace simulation {

using namespace dtrain;
using namespace dtrain::cluster;

inline constexpr int64_t interval = 250 * ms, timeout = 1 * second, join_timeout = 10 * second;

class Network {
  public:
    // What a node reports, with the node's number.
    using Program = std::function<void(int, const wire::Message &)>;

    Network(
        uint32_t seed, int32_t workers, int32_t servers, Program program,
        const std::function<void(Settings &)> &change = [](Settings &) {})
        : random_(seed), program_(std::move(program)) {
        for (int32_t m = 0; m < workers + servers; m++) {
            Settings s;
            s.identity.role = m < workers ? Role::worker : Role::server;
            s.identity.index = m < workers ? m : m - workers;
            s.identity.workers = workers;
            s.identity.servers = servers;
            s.heartbeat_interval = interval;
            s.heartbeat_timeout = timeout;
            s.join_deadline = join_timeout;
            s.job = seed;
            s.self.role = uint8_t(s.identity.role);
            s.self.index = s.identity.index;
            change(s);
            add(s, int(m));
        }
    }
    // What is on its way refers to its wire, and lies there.
    ~Network() {
        for (auto &[id, c] : wires_)
            for (End &end : c->end) end.ahead.clear();
    }
    Network(const Network &) = delete;
    // Another node of the process, or the first of one with that number. Returns its number.
    int add(const Settings &settings, int process) {
        hosts_.emplace_back().settings = settings;
        hosts_.back().node = std::make_unique<Node>(settings);
        hosts_.back().process = process;
        each_of(process, [&](int n) { hosts_.back().stopped |= hosts_[size_t(n)].stopped; });
        return int(hosts_.size()) - 1;
    }

    // Where a node's rendezvous leads, the first node's if it is not set: to a node, to one that
    // will be there soon, or to nobody.
    static constexpr int soon = -1, nobody = -2;
    std::function<int(int)> rendezvous = [](int) { return 0; };
    std::function<void(int)> open_door = [](int) {}; // a node's action
    // Called for each message on its way from a node, which it may change.
    std::function<void(int, wire::Message &)> tamper = [](int, wire::Message &) {};

    int64_t now() const { return now_; }
    int size() const { return int(hosts_.size()); }
    bool crashed(int n) const { return hosts_[size_t(n)].crashed; }
    bool started(int n) const { return hosts_[size_t(n)].started; }
    bool stopped(int n) const { return hosts_[size_t(n)].stopped; }
    const Settings &settings(int n) const { return hosts_[size_t(n)].settings; }
    Node &node(int n) { return *hosts_[size_t(n)].node; }
    int64_t draw(int64_t least, int64_t most) {
        return std::uniform_int_distribution<int64_t>(least, most)(random_);
    }

    void at(int64_t when, std::function<void()> what) {
        queue_.push({std::max(when, now_), next_++, std::move(what)});
    }
    void run_until(int64_t end) {
        while (!queue_.empty() && queue_.top().when <= end) {
            Item item = queue_.top();
            queue_.pop();
            now_ = item.when;
            item.what();
        }
        now_ = end;
    }

    void start(int n) {
        when_running(n, [this, n] {
            hosts_[size_t(n)].started = true;
            perform(n, node(n).start(now_));
        });
    }
    // The process of a crashed one again, for the next job.
    void restart(int n) {
        Host &host = hosts_[size_t(n)];
        host.life++;
        host.crashed = false;
        host.settings.job++;
        host.settings.join_deadline = now_ + join_timeout;
        host.tick_at = INT64_MAX;
        host.node = std::make_unique<Node>(host.settings);
        start(n);
    }
    // silenced: what it has sent and is not yet there is lost, too.
    void crash(int n, bool silenced = false) {
        hosts_[size_t(n)].listens = false;
        if (crashed(n)) return;
        hosts_[size_t(n)].crashed = true;
        hosts_[size_t(n)].ended = now_;
        hosts_[size_t(n)].dropped.clear();
        for (auto &[id, c] : wires_)
            for (int side : {0, 1})
                if (c->end[side].node == n) {
                    if (silenced) c->end[side].lost_from = now_;
                    hang_up(c, side, "connection closed");
                }
    }
    void stop(int n) { hosts_[size_t(n)].stopped = true; }
    // Calls f(node) for each of the process.
    template <class F> void each_of(int process, F &&f) {
        for (int n = 0; n < size(); n++)
            if (hosts_[size_t(n)].process == process) f(n);
    }
    void resume(int n) {
        Host &host = hosts_[size_t(n)];
        host.stopped = false;
        auto held = std::exchange(host.held, {});
        for (auto &what : held) at(now_, std::move(what));
        at(now_, [this, n] { tick(n); });
    }
    void cut(int from, int to) { cuts_.insert({from, to}); }
    void heal(int from, int to) {
        cuts_.erase({from, to});
        for (auto &[id, c] : wires_)
            for (int side : {0, 1})
                if (process(c->end[side].node) == from && process(c->end[1 - side].node) == to)
                    pump(c, side);
    }
    // Calls a function of the node, unless it is not running.
    void call(int n, const std::function<Actions(Node &)> &what) {
        when_running(n, [this, n, what] { perform(n, what(node(n))); });
    }
    // moved: for the next generation; its socket goes on listening, though nobody answers there.
    void leave(int n, bool moved = false) {
        if (moved && stopped(n)) return at(now_ + 5 * ms, [this, n] { leave(n, true); });
        call(n, [moved](Node &node) { return node.leave(moved); });
        at(now_, [this, n, moved] { // its process ends
            if (!moved) return crash(n);
            if (crashed(n)) return;
            crash(n);
            hosts_[size_t(n)].listens = true;
        });
    }

  private:
    struct Item {
        int64_t when;
        uint64_t order;
        std::function<void()> what;
        bool operator<(const Item &o) const {
            return when != o.when ? when > o.when : order > o.order;
        }
    };
    struct Host {
        Settings settings;
        std::unique_ptr<Node> node;
        int process = 0;
        int life = 0; // times it was restarted
        bool started = false, crashed = false, stopped = false;
        bool listens = false;                    // though it has crashed
        int64_t ended = 0;                       // when it crashed
        std::set<int> dropped;                   // whom the system had accepted for it at that time
        std::vector<std::function<void()>> held; // what came while it was stopped
        int64_t tick_at = INT64_MAX;
    };
    struct End {
        int node = -1;
        Link link = 0;
        bool open = true;                        // no Close yet from this side
        std::deque<std::function<void()>> ahead; // on the way from this side
        int64_t last = 0;                        // when the one before arrives
        int64_t lost_from = INT64_MAX;           // what would arrive later does not
    };
    struct Wire {
        End end[2];
    };
    using WirePtr = std::shared_ptr<Wire>;

    void when_running(int n, std::function<void()> what) {
        Host &host = hosts_[size_t(n)];
        if (host.crashed) return;
        if (host.stopped)
            host.held.push_back(std::move(what));
        else
            what();
    }

    void step(int n, Event event) {
        when_running(n, [this, n, event] { perform(n, node(n).step(event, now_)); });
    }

    void perform(int n, Actions actions) {
        for (Action &action : actions) {
            if (auto *dial = std::get_if<Dial>(&action))
                this->dial(n, *dial);
            else if (auto *send = std::get_if<Send>(&action))
                this->send(n, *send);
            else if (auto *close = std::get_if<Close>(&action))
                this->close(n, close->link);
            else if (auto *report = std::get_if<Report>(&action))
                program_(n, report->message);
            else if (std::holds_alternative<OpenDoor>(action))
                open_door(n);
        }
        schedule_tick(n);
    }

    void schedule_tick(int n) {
        Host &host = hosts_[size_t(n)];
        int64_t next = host.node->next_deadline();
        if (next >= host.tick_at || next == INT64_MAX) return;
        host.tick_at = std::max(next, now_) + draw(0, 2 * ms); // not always on time
        at(host.tick_at, [this, n, when = host.tick_at] {
            if (hosts_[size_t(n)].tick_at == when) tick(n);
        });
    }

    void tick(int n) {
        hosts_[size_t(n)].tick_at = INT64_MAX;
        if (crashed(n) || stopped(n)) return;
        if (now_ >= node(n).next_deadline())
            perform(n, node(n).step(Tick{}, now_));
        else
            schedule_tick(n);
    }

    int64_t delay() { return draw(0, 20) == 0 ? draw(0, 30 * ms) : draw(10 * us, 2 * ms); }

    void dial(int n, const Dial &dial) {
        dials++;
        int to = 0, life = -1;
        if (dial.address.empty())
            to = rendezvous(n);
        else
            std::sscanf(dial.address.c_str(), "sim:%d:%d", &to, &life);
        if (to == nobody)
            return at(now_ + delay(), [this, n, own = this->life(n), link = dial.link] {
                if (own == this->life(n))
                    step(n, DialFailed{link, DTRAIN_ERR_NOT_FOUND, true, "connection refused"});
            });
        if (to == soon || is_cut(n, to) || is_cut(to, n))
            return at(now_ + (to == soon ? 5 * ms : wire::handshake_timeout),
                      [this, n, own = this->life(n), again = to == soon, dial] {
                          if (own != this->life(n) || crashed(n)) return;
                          if (again) return this->dial(n, dial); // the system has accepted it
                          step(n, DialFailed{dial.link, DTRAIN_ERR_TIMEOUT, false, "no answer"});
                      });
        at(now_ + delay(), [this, n, own = this->life(n), to, life, link = dial.link] {
            if (own == this->life(n)) connect(n, to, life, link);
        });
    }

    int process(int n) const { return hosts_[size_t(n)].process; }
    bool is_cut(int from, int to) const { return cuts_.contains({process(from), process(to)}); }
    int life(int n) const { return hosts_[size_t(n)].life; }

    // life: of the process meant, or -1: at the rendezvous
    void connect(int n, int to, int life, Link link) {
        Host &host = hosts_[size_t(to)];
        if (host.listens)
            return at(now_ + wire::handshake_timeout, [this, n, own = this->life(n), link] {
                if (own == this->life(n))
                    step(n, DialFailed{link, DTRAIN_ERR_TIMEOUT, false, "no answer"});
            });
        // The system had accepted it for a process that ends.
        if (host.crashed && now_ - host.ended < 30 * ms && draw(0, 1) == 0 &&
            host.dropped.insert(n).second)
            return step(n, DialFailed{link, DTRAIN_ERR_PEER, false, "closed by it"});
        if (host.crashed || !host.started || (life >= 0 && life != host.life))
            return step(n, DialFailed{link, DTRAIN_ERR_NOT_FOUND, true, "connection refused"});
        if (crashed(n)) return;
        auto c = std::make_shared<Wire>();
        c->end[0].node = n;
        c->end[0].link = link;
        c->end[1].node = to;
        c->end[1].link = next_accepted_ += 2;
        wires_[next_accepted_] = c;
        step(to, Accepted{c->end[1].link, hosts_[size_t(n)].settings.identity.member(),
                          "10.0.0." + std::to_string(process(n)), "10.0.0.0"});
        step(n, Dialled{link, text("sim:%d:%d", n, this->life(n))});
    }

    WirePtr find(int n, Link link, int &side) {
        for (auto &[id, c] : wires_)
            for (side = 0; side < 2; side++)
                if (c->end[side].node == n && c->end[side].link == link && c->end[side].open)
                    return c;
        return nullptr;
    }

    void send(int n, const Send &send) {
        int side = 0;
        WirePtr c = find(n, send.link, side);
        if (c == nullptr) return;
        wire::Message message; // through its bytes, as over a real wire
        if (wire::decode(wire::encode(*send.message), message) != DTRAIN_OK) {
            broken_message = error_text();
            return;
        }
        tamper(n, message);
        End &peer = c->end[1 - side];
        c->end[side].ahead.push_back([this, c, from = &c->end[side], to = &peer, message] {
            if (to->open && now_ <= from->lost_from) step(to->node, Received{to->link, message});
        });
        pump(c, side);
    }

    void close(int n, Link link) {
        int side = 0;
        WirePtr c = find(n, link, side);
        if (c != nullptr) hang_up(c, side, "connection closed");
    }

    void hang_up(const WirePtr &c, int side, const char *why) {
        if (!c->end[side].open) return;
        c->end[side].open = false;
        End &peer = c->end[1 - side];
        c->end[side].ahead.push_back([this, c, to = &peer, why] {
            if (!to->open) return;
            to->open = false;
            step(to->node, Closed{to->link, why});
        });
        pump(c, side);
    }

    // Sends what is ahead on its way, in order.
    void pump(const WirePtr &c, int side) {
        End &from = c->end[side];
        if (is_cut(from.node, c->end[1 - side].node)) return;
        while (!from.ahead.empty()) {
            from.last = std::max(from.last, now_ + delay());
            at(from.last, std::move(from.ahead.front()));
            from.ahead.pop_front();
        }
    }

  public:
    std::string broken_message; // a message that did not survive its bytes
    int dials = 0;              // so far, of all nodes

  private:
    std::mt19937 random_;
    Program program_;
    int64_t now_ = 0;
    uint64_t next_ = 0;
    Link next_accepted_ = 0;
    std::priority_queue<Item> queue_;
    std::deque<Host> hosts_; // whose places in memory stay
    std::map<Link, WirePtr> wires_;
    std::set<std::pair<int, int>> cuts_;
};

} // namespace simulation
