// A relay between two TCP devices changes what they send. With protection nothing that was changed
// is ever received, and the connection ends with an error; without, the relay can do what it likes,
// which shows that this test would notice. DTRAIN_TEST_TRIALS: how many changes are tried.
// SPDX-License-Identifier: Apache-2.0
#include "cases_connect.h"
#include "relay.h"
#include "repeats.h"

#include <chrono>

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;

namespace dtrain::test {
namespace {

using protection::Least;
using protection::Level;

// Of the handshake, and of a record.
constexpr uint64_t onward_handshake = 100 + 32 + 4, back_handshake = 4 + 100 + 32 + 4;
constexpr size_t port_at = 24, overhead = 20;

class Random {
  public:
    explicit Random(uint64_t seed) : x_(seed * 0x9E3779B97F4A7C15u + 1) {}
    uint64_t below(uint64_t n) {
        x_ ^= x_ << 13, x_ ^= x_ >> 7, x_ ^= x_ << 17;
        return (x_ >> 11) % n;
    }

  private:
    uint64_t x_;
};

// Eager, announced, empty, and longer than a record.
constexpr size_t sizes[] = {8, 0, 1000, 70'000, 300'000};

struct Outcome {
    bool wrong = false;    // something was received that was not sent
    bool complete = false; // everything has arrived
    bool harmed = false;   // the relay got to make its change
    bool held = false;     // the relay waits for more, before it makes its change
    bool withheld = false; // a device waits for bytes that do not come
    dtrain_status_t a = DTRAIN_IN_PROGRESS, b = DTRAIN_IN_PROGRESS; // how the connection ended
    std::string text;                                               // the last words of a and b
};

// A connection from a to b through the relay, and messages both ways.
class Trial {
  public:
    Trial(const Least &least, const Change &change, const std::string &secret)
        : a_(secret), b_(secret), relay_(port_of(b_.address())), harm_(change.harm) {
        a_.host.demand = b_.host.demand = least;
        relay_.plan(change);
        b_.expect(a_);
    }
    Outcome run() {
        Bytes there = b_.address();
        const uint16_t port = htons(relay_.port());
        memcpy(there.data() + port_at, &port, sizeof port);
        to_b_ = a_.start_connect(there, 1);
        until([&] { return a_.take(DTRAIN_TP_CONNECT, 1, &done_); });
        if (done_.cookie == 1 && done_.status == DTRAIN_OK) exchange();
        if (done_.cookie == 1 && done_.status != DTRAIN_OK) out_.a = done_.status;
        out_.harmed = relay_.harmed();
        out_.held = relay_.holds();
        out_.text = a_.host.text() + "; " + b_.host.text();
        return out_;
    }
    uint64_t passed(bool onward) { return relay_.passed(onward); }
    uint32_t level() const { return a_.host.level == b_.host.level ? a_.host.level : UINT32_MAX; }

  private:
    static uint16_t port_of(const Bytes &address) {
        uint16_t port;
        memcpy(&port, address.data() + port_at, sizeof port);
        return ntohs(port);
    }
    // Drives all three until the condition holds, or nothing has happened for long: on a busy
    // machine the system may take a while to pass on what nobody withholds.
    template <class Condition> bool until(Condition &&condition) {
        using Clock = std::chrono::steady_clock;
        constexpr std::chrono::seconds patience(5);
        Clock::time_point since;
        for (int idle = 0; !condition();) {
            const size_t before = a_.done.size() + b_.done.size();
            const bool moved = relay_.work();
            a_.progress();
            b_.progress();
            idle = moved || before != a_.done.size() + b_.done.size() ? 0 : idle + 1;
            if (idle <= 500) continue;
            const bool must_come = !relay_.holds() && (!relay_.harmed() || harm_ == Harm::delay);
            if (idle == 501) since = Clock::now();
            if (!must_come || Clock::now() - since > patience) return false;
        }
        return true;
    }
    void exchange() {
        constexpr uint64_t lost = 2;
        dtrain_tp_ep_t *to_a = b_.start_connect(a_.address(), lost);
        std::vector<Bytes> at_a, at_b;
        for (size_t i = 0; i < std::size(sizes); i++) {
            at_a.emplace_back(sizes[i]);
            at_b.emplace_back(sizes[i]);
        }
        for (size_t i = 0; i < std::size(sizes); i++) {
            a_.recv(100 + i, at_a[i], 100 + i);
            b_.recv(100 + i, at_b[i], 100 + i);
            try_send(a_, to_b_, i, 1);
            try_send(b_, to_a, i, 2);
        }
        const auto received = [](const Node &node) { return node.count(DTRAIN_TP_RECV); };
        const auto ended = [&] {
            return a_.count(DTRAIN_TP_PEER_LOST) > 0 && b_.count(DTRAIN_TP_PEER_LOST) > 0;
        };
        const auto all = [&] {
            return received(a_) == std::size(sizes) && received(b_) == std::size(sizes);
        };
        out_.withheld = !until([&] { return ended() || all(); });
        check(a_, at_a, 2);
        check(b_, at_b, 1);
        out_.complete = complete_ == 2 * std::size(sizes);
        if (dtrain_tp_done_t end{}; a_.take(DTRAIN_TP_PEER_LOST, 1, &end)) out_.a = end.status;
        if (dtrain_tp_done_t end{}; b_.take(DTRAIN_TP_PEER_LOST, lost, &end)) out_.b = end.status;
        a_.close(); // before the memory of its receives goes
        b_.close();
    }
    // A lost connection takes no more.
    void try_send(Node &from, dtrain_tp_ep_t *to, size_t i, uint64_t seed) {
        sent_.push_back(pattern(sizes[i], seed + 10 * i));
        from.try_send(to, 100 + i, sent_.back().data(), sizes[i], 200 + i);
    }
    void check(Node &node, const std::vector<Bytes> &at, uint64_t seed) {
        for (const dtrain_tp_done_t &done : node.done) {
            if (done.kind != DTRAIN_TP_RECV || done.status != DTRAIN_OK) continue;
            const size_t i = done.cookie - 100;
            const bool good = done.bytes == sizes[i] && at[i] == pattern(sizes[i], seed + 10 * i);
            out_.wrong |= !good;
            complete_ += good;
        }
    }

    std::deque<Bytes> sent_;
    Node a_, b_;
    Relay relay_;
    const Harm harm_;
    dtrain_tp_ep_t *to_b_ = nullptr;
    dtrain_tp_done_t done_{};
    Outcome out_;
    size_t complete_ = 0;
};

// How many bytes go each way when nobody interferes.
struct Lengths {
    uint64_t onward = 0, back = 0;
    explicit Lengths(Level level, const std::string &secret) {
        Trial trial(level, {}, secret);
        const Outcome outcome = trial.run();
        assert_true(outcome.complete && !outcome.wrong && !outcome.harmed);
        onward = trial.passed(true);
        back = trial.passed(false);
    }
};

Change choose(uint64_t seed, const Lengths &lengths) {
    Random random(seed);
    Change change;
    change.harm = Harm(1 + random.below(std::size(harm_names) - 1));
    change.onward = random.below(2) == 0;
    change.bit = uint8_t(random.below(8));
    change.seed = seed;
    const uint64_t handshake = change.onward ? onward_handshake : back_handshake;
    const uint64_t all = change.onward ? lengths.onward : lengths.back;
    switch (random.below(4)) {
    case 0: // in the handshake
        change.offset = random.below(handshake);
        change.length = uint32_t(1 + random.below(40));
        break;
    case 1: // about the first records, which are small
        change.offset = handshake + random.below(400);
        change.length = uint32_t(1 + random.below(100));
        break;
    case 2: // whole records: the first is a frame of 32 bytes and a message of 8
        change.offset = handshake;
        change.length = 40 + overhead;
        break;
    default:
        change.offset = handshake + random.below(all - handshake);
        change.length = uint32_t(1 + random.below(70'000));
    }
    return change;
}

std::string describe(const Change &change) {
    char text[160];
    snprintf(text, sizeof text, "%s of %u bytes at %llu (bit %u) of what %s sends",
             harm_names[size_t(change.harm)], change.length,
             static_cast<unsigned long long>(change.offset), change.bit, change.onward ? "a" : "b");
    return text;
}

uint64_t trials() {
    const char *given = getenv("DTRAIN_TEST_TRIALS");
    return given != nullptr ? strtoull(given, nullptr, 0) : repeats(1500);
}

// Every outcome of a change but these is a fault.
const char *fault_of(const Change &change, const Outcome &outcome) {
    const auto named = [](dtrain_status_t status) {
        return status == DTRAIN_ERR_AUTH || status == DTRAIN_ERR_CORRUPT ||
               status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_VERSION ||
               status == DTRAIN_IN_PROGRESS;
    };
    if (outcome.wrong) return "what was changed was received";
    if (!named(outcome.a) || !named(outcome.b)) return "the connection ended with a wrong status";
    if (!outcome.harmed || change.harm == Harm::delay)
        return outcome.complete || outcome.held
                   ? nullptr
                   : "nothing was changed, but messages did not arrive";
    const uint64_t handshake = change.onward ? onward_handshake : back_handshake;
    if (change.offset < handshake) return nullptr; // it failed, or got over a change that is none
    const bool over = outcome.a != DTRAIN_IN_PROGRESS || outcome.b != DTRAIN_IN_PROGRESS;
    if (change.harm == Harm::truncate || change.harm == Harm::drop)
        return nullptr; // the receiver waits for the rest, or it is the end
    // A length that became larger: the receiver waits for bytes that do not come.
    if (!over && !outcome.withheld && !outcome.complete) return "a change was not noticed";
    const dtrain_status_t receiver = change.onward ? outcome.b : outcome.a;
    if (change.harm == Harm::flip && over && receiver != DTRAIN_ERR_CORRUPT)
        return "the receiver does not say that it is corrupt";
    return nullptr;
}

void nothing_that_was_changed_is_received(Level level) {
    const uint64_t seed = choose_seed();
    const Lengths lengths(level, "secret");
    uint64_t harmed = 0, corrupt = 0;
    for (uint64_t i = 0; i < trials(); i++) {
        const Change change = choose(seed + i, lengths);
        Trial trial(level, change, "secret");
        const Outcome outcome = trial.run();
        harmed += outcome.harmed;
        corrupt += outcome.a == DTRAIN_ERR_CORRUPT || outcome.b == DTRAIN_ERR_CORRUPT;
        if (const char *fault = fault_of(change, outcome))
            fail_msg("trial %llu: %s: %s (a: %d, b: %d%s; %s)",
                     static_cast<unsigned long long>(seed + i), describe(change).c_str(), fault,
                     outcome.a, outcome.b, outcome.withheld ? ", withheld" : "",
                     outcome.text.c_str());
    }
    print_message("%llu trials, %llu changes, of which %llu ended as DTRAIN_ERR_CORRUPT\n",
                  static_cast<unsigned long long>(trials()),
                  static_cast<unsigned long long>(harmed),
                  static_cast<unsigned long long>(corrupt));
    assert_true(harmed > trials() / 2);
    assert_true(corrupt > trials() / 8);
}

void integrity(void **) { nothing_that_was_changed_is_received(Level::integrity); }
void encrypted(void **) { nothing_that_was_changed_is_received(Level::encrypted); }

// The planted fault: a secret alone keeps strangers out, not relays.
void without_protection_the_relay_makes_wrong_data(void **) {
    const uint64_t seed = choose_seed();
    const Lengths lengths(Level::none, "secret");
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 200; i++)
        wrong += Trial(Level::none, choose(seed + i, lengths), "secret").run().wrong;
    print_message("%llu of 200 changes went unnoticed\n", static_cast<unsigned long long>(wrong));
    assert_true(wrong > 10);
}

void connect_and_exchange(Node &one, Node &two) {
    two.expect(one);
    dtrain_tp_ep_t *ep = one.start_connect(two.address(), 1);
    await_ok({&one, &two}, one, DTRAIN_TP_CONNECT, 1);
    exchange({&one, &two}, one, ep, two, 1);
}

// As option protection=auto: a way that never leaves this kernel needs nothing, a relay on this
// host is found out, since the two ends see different ports, and who demands more gets it.
void only_what_may_leave_the_kernel_is_protected(void **) {
    const Least usual(Level::integrity, Level::none);
    Trial trial(usual, {}, "secret");
    assert_true(trial.run().complete);
    assert_int_equal(trial.level(), DTRAIN_TP_INTEGRITY);
    for (const auto &[demand, level] : {std::pair{usual, DTRAIN_TP_PLAIN},
                                        {Least(Level::integrity), DTRAIN_TP_INTEGRITY},
                                        {Least(Level::encrypted), DTRAIN_TP_ENCRYPTED}}) {
        Node one("secret"), two("secret");
        one.host.demand = usual;
        two.host.demand = demand;
        connect_and_exchange(one, two);
        assert_int_equal(one.host.level, level);
        assert_int_equal(two.host.level, level);
    }
}

// Two sides that demand different levels.
void levels_are_agreed(void **) {
    for (const auto &[a, b] : {std::pair{Level::none, Level::encrypted},
                               {Level::integrity, Level::encrypted},
                               {Level::none, Level::integrity}}) {
        Node one("secret"), two("secret");
        one.host.demand = a;
        two.host.demand = b;
        connect_and_exchange(one, two);
    }
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    subject.plugin = &dtrain_tp_plugin_tcp;
    const CMUnitTest tests[] = {
        cmocka_unit_test(integrity),
        cmocka_unit_test(encrypted),
        cmocka_unit_test(without_protection_the_relay_makes_wrong_data),
        cmocka_unit_test(only_what_may_leave_the_kernel_is_protected),
        cmocka_unit_test(levels_are_agreed),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
