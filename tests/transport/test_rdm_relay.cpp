// A relay between two devices of transports/rdm changes the packets that they send. With protection
// nothing that was changed is ever received, and the connection ends with an error; without, the
// relay can do what it likes, which shows that this test would notice. DTRAIN_TEST_TRIALS: how many
// changes are tried.
// SPDX-License-Identifier: Apache-2.0
#include "crossed_wire.h"
#include "rdm/protection.h"
#include "repeats.h"
#include "rig.h"

#include <random>

namespace dtrain::test {
namespace {

using protection::Least;
using protection::Level;
using rdm::Head;
using Packet = CrossedWire::Packet;

// Eager ones of one packet and of several, empty, and announced ones.
constexpr size_t sizes[] = {8, 0, 1000, 7000, 20'000, 300'000};
constexpr size_t messages = std::size(sizes);
// Packets of the handshake: hello, proof, confirmation; reply, verdict.
constexpr uint64_t onward_handshake = 3, back_handshake = 2;

enum class Harm { none, flip, cut, drop, repeat, swap, insert, reflect };
constexpr const char *harm_names[] = {"none",   "flip", "cut",    "drop",
                                      "repeat", "swap", "insert", "reflect"};

struct Change {
    Harm harm = Harm::none;
    bool onward = true;  // of what a sends
    uint64_t packet = 0; // the number of that packet
    uint64_t at = 0;     // flip: of a bit; cut: of bytes that remain; both modulo its length
};

// A device, its wire, and its part of an exchange.
struct End {
    static constexpr uint64_t lost = 1;
    FakeHost host;
    rdm::Device device{host.table(), "crossed"};
    CrossedWire *wire = nullptr;
    rdm::Endpoint *endpoint = nullptr;
    std::vector<Bytes> sent, got;
    Dones done;

    void open(bool by_processors = false) {
        auto made = std::make_unique<CrossedWire>(device.protocol());
        wire = made.get();
        wire->attributes().by_processors = by_processors;
        assert_int_equal(device.open(std::move(made), "crossed"), DTRAIN_OK);
    }
    ~End() {
        if (endpoint) device.disconnect(endpoint);
    }
    Bytes address() {
        Bytes bytes(rdm::Device::address_length);
        device.address(bytes.data());
        return bytes;
    }
    void connect(End &peer) {
        const Bytes to = peer.address();
        assert_int_equal(device.connect(to.data(), to.size(), lost, &endpoint), DTRAIN_OK);
    }
    void begin(uint64_t seed) {
        for (size_t i = 0; i < messages; i++) {
            sent.push_back(pattern(sizes[i], seed + 10 * i));
            got.emplace_back(sizes[i]);
        }
        for (size_t i = 0; i < messages; i++) {
            const dtrain_tp_iov_t into{got[i].data(), sizes[i], nullptr};
            const dtrain_tp_iov_t from{sent[i].data(), sizes[i], nullptr};
            device.recv(100 + i, exact, &into, sizes[i] ? 1 : 0, 100 + i);
            device.send(endpoint, 100 + i, &from, sizes[i] ? 1 : 0, 200 + i);
        }
    }
    bool progress() {
        dtrain_tp_done_t some[16];
        const int32_t n = device.progress(some, 16);
        assert_true(n >= 0);
        done.insert(done.end(), some, some + n);
        return n > 0;
    }
    // How it ended; DTRAIN_IN_PROGRESS: it did not.
    dtrain_status_t status() const {
        for (const dtrain_tp_done_t &d : done)
            if (d.kind == DTRAIN_TP_PEER_LOST || (d.kind == DTRAIN_TP_CONNECT && d.status))
                return d.status;
        return DTRAIN_IN_PROGRESS;
    }
    bool is_connected() const {
        return std::ranges::any_of(
            done, [](auto &d) { return d.kind == DTRAIN_TP_CONNECT && !d.status; });
    }
};

struct Outcome {
    bool wrong = false;      // something was received that was not sent
    bool complete = false;   // everything has arrived
    bool harmed = false;     // the relay got to make its change
    bool noticeable = false; // and the one to whom it was done must see it
    dtrain_status_t victim = DTRAIN_IN_PROGRESS, a = victim, b = victim;
};

class Trial {
  public:
    Trial(const Least &least, const Change &change, uint64_t seed)
        : change_(change), random_(seed) {
        for (End *end : {&a_, &b_}) {
            end->host.secret = "secret";
            end->host.demand = least;
            end->open();
        }
        lead(a_, b_, true);
        lead(b_, a_, false);
    }
    ~Trial() {
        for (End *end : {&a_, &b_}) end->wire->part();
    }
    Outcome run() {
        const Bytes from = a_.address();
        assert_int_equal(b_.device.reachable(from.data(), from.size()), DTRAIN_OK);
        a_.connect(b_);
        until_quiet();
        if (a_.is_connected()) {
            b_.connect(a_);
            a_.begin(1);
            b_.begin(2);
            until_quiet();
        }
        Outcome out;
        const size_t received = check(a_, b_, out) + check(b_, a_, out);
        out.complete = received == 2 * messages;
        out.harmed = harmed_;
        out.noticeable = noticeable_;
        out.a = a_.status();
        out.b = b_.status();
        out.victim = victim_ ? victim_->status() : DTRAIN_IN_PROGRESS;
        return out;
    }
    uint64_t passed(bool onward) const { return ways_[onward].passed; }
    uint32_t level() const { return a_.host.level == b_.host.level ? a_.host.level : UINT32_MAX; }

  private:
    struct Way { // one direction of the relay
        End *to = nullptr;
        uint64_t passed = 0;   // packets that came
        uint32_t sequence = 0; // of the next one that goes
        std::vector<Packet> held;
        Head last;
    };

    void lead(End &from, End &to, bool onward) {
        from.wire->other = to.wire;
        ways_[onward].to = &to;
        from.wire->relay = [this, onward](Packet packet) { pass(onward, std::move(packet)); };
    }
    // Whoever sees packets knows what to write into their heads.
    void deliver(bool onward, Packet packet) {
        Way &way = ways_[onward];
        if (packet.bytes.size() >= Head::wire_length) {
            Head head;
            head.decode(packet.bytes.data());
            head.sequence = way.sequence++;
            head.encode(packet.bytes.data());
            way.last = head;
        }
        way.to->wire->arriving.push_back(std::move(packet));
    }
    void pass(bool onward, Packet packet) {
        Way &way = ways_[onward];
        const bool now = way.passed++ == change_.packet && onward == change_.onward;
        if (now && change_.harm != Harm::none)
            harm(std::move(packet));
        else
            deliver(onward, std::move(packet));
        if (now) return;
        for (Packet &held : std::exchange(way.held, {})) deliver(onward, std::move(held));
    }
    void harm(Packet packet) {
        Way &way = ways_[change_.onward];
        harmed_ = true;
        victim_ = way.to;
        const uint64_t handshake = change_.onward ? onward_handshake : back_handshake;
        const bool is_record = change_.packet >= handshake;
        noticeable_ = is_record && change_.harm != Harm::drop;
        switch (change_.harm) {
        case Harm::flip: {
            const uint64_t bit = change_.at % (8 * packet.bytes.size());
            packet.bytes[bit / 8] ^= uint8_t(1 << bit % 8);
            noticeable_ &= bit / 8 >= Head::wire_length; // others may lead it nowhere
            break;
        }
        case Harm::cut:
            packet.bytes.resize(change_.at % packet.bytes.size());
            noticeable_ &= packet.bytes.size() >= Head::wire_length;
            break;
        case Harm::drop: return;
        case Harm::repeat: deliver(change_.onward, packet); break;
        case Harm::swap: // until the next one has gone
            noticeable_ = false;
            way.held.push_back(std::move(packet));
            return;
        case Harm::insert: {
            Packet forged = packet;
            for (size_t i = Head::wire_length; i < forged.bytes.size(); i++)
                forged.bytes[i] = uint8_t(random_());
            noticeable_ &= forged.bytes.size() > Head::wire_length;
            deliver(change_.onward, std::move(forged));
            break;
        }
        default: reflect(packet);
        }
        deliver(change_.onward, std::move(packet));
    }
    void reflect(Packet packet) {
        const Head &last = ways_[!change_.onward].last;
        Head head;
        head.decode(packet.bytes.data());
        head.to = last.to;
        head.token = last.token;
        head.encode(packet.bytes.data());
        victim_ = ways_[!change_.onward].to;
        packet.bulk = nullptr;
        deliver(!change_.onward, std::move(packet));
    }
    // Until nothing has happened for long.
    void until_quiet() {
        for (int idle = 0; idle < 200; idle++) {
            const bool moved = !a_.wire->arriving.empty() || !b_.wire->arriving.empty();
            const bool a_told = a_.progress(), b_told = b_.progress();
            if (moved || a_told || b_told) idle = 0;
        }
    }
    static size_t check(const End &at, const End &from, Outcome &out) {
        size_t right = 0;
        for (const dtrain_tp_done_t &done : at.done) {
            if (done.kind != DTRAIN_TP_RECV || done.status != DTRAIN_OK) continue;
            const size_t i = done.cookie - 100;
            const bool good = done.bytes == sizes[i] && at.got[i] == from.sent[i];
            out.wrong |= !good;
            right += good;
        }
        return right;
    }

    const Change change_;
    std::mt19937_64 random_;
    End a_, b_;
    Way ways_[2];
    bool harmed_ = false, noticeable_ = false;
    End *victim_ = nullptr;
};

// How many packets go each way when nobody interferes.
struct Lengths {
    uint64_t onward = 0, back = 0;
    explicit Lengths(Level level) {
        Trial trial(level, {}, 0);
        const Outcome out = trial.run();
        assert_true(out.complete && !out.wrong && !out.harmed);
        assert_int_equal(out.a, DTRAIN_IN_PROGRESS);
        assert_int_equal(out.b, DTRAIN_IN_PROGRESS);
        assert_int_equal(trial.level(), level);
        onward = trial.passed(true);
        back = trial.passed(false);
    }
};

Change choose(uint64_t seed, const Lengths &lengths) {
    std::mt19937_64 random(seed);
    Change change;
    change.harm = Harm(1 + random() % (std::size(harm_names) - 1));
    change.onward = random() % 2 == 0;
    const uint64_t all = change.onward ? lengths.onward : lengths.back;
    change.packet = random() % (random() % 3 == 0 ? 12 : all);
    change.at = random();
    return change;
}

uint64_t trials() {
    const char *given = getenv("DTRAIN_TEST_TRIALS");
    return given != nullptr ? strtoull(given, nullptr, 0) : repeats(1500);
}

// Every outcome of a change but these is a fault.
const char *fault_of(const Outcome &out) {
    const auto named = [](dtrain_status_t status) {
        return status == DTRAIN_ERR_AUTH || status == DTRAIN_ERR_CORRUPT ||
               status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_VERSION ||
               status == DTRAIN_IN_PROGRESS;
    };
    if (out.wrong) return "what was changed was received";
    if (!named(out.a) || !named(out.b)) return "the connection ended with a wrong status";
    if (!out.harmed && !out.complete) return "nothing was changed, but messages did not arrive";
    if (out.noticeable && out.victim != DTRAIN_ERR_CORRUPT) return "a change was not noticed";
    return nullptr;
}

void nothing_that_was_changed_is_received(Level level) {
    const uint64_t seed = choose_seed();
    const Lengths lengths(level);
    uint64_t harmed = 0, corrupt = 0;
    for (uint64_t i = 0; i < trials(); i++) {
        const Change change = choose(seed + i, lengths);
        const Outcome out = Trial(level, change, seed + i).run();
        harmed += out.harmed;
        corrupt += out.a == DTRAIN_ERR_CORRUPT || out.b == DTRAIN_ERR_CORRUPT;
        if (const char *fault = fault_of(out))
            fail_msg("trial %llu: %s of packet %llu of what %s sends: %s (a: %d, b: %d)",
                     static_cast<unsigned long long>(seed + i), harm_names[size_t(change.harm)],
                     static_cast<unsigned long long>(change.packet), change.onward ? "a" : "b",
                     fault, out.a, out.b);
    }
    print_message("%llu trials, %llu changes, of which %llu ended as DTRAIN_ERR_CORRUPT\n",
                  static_cast<unsigned long long>(trials()),
                  static_cast<unsigned long long>(harmed),
                  static_cast<unsigned long long>(corrupt));
    assert_true(harmed > trials() / 2);
    assert_true(corrupt > trials() / 4);
}

void integrity(void **) { nothing_that_was_changed_is_received(Level::integrity); }
void encrypted(void **) { nothing_that_was_changed_is_received(Level::encrypted); }

// The planted fault: a secret alone keeps strangers out, not relays.
void without_protection_the_relay_makes_wrong_data(void **) {
    const uint64_t seed = choose_seed();
    const Lengths lengths(Level::none);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 600; i++)
        wrong += Trial(Level::none, choose(seed + i, lengths), seed + i).run().wrong;
    print_message("%llu of 600 changes went unnoticed\n", static_cast<unsigned long long>(wrong));
    assert_true(wrong > 15);
}

// Two devices without a relay.
struct Two {
    End a, b;
    Two() {
        for (End *end : {&a, &b}) end->host.secret = "secret";
    }
    ~Two() {
        for (End *end : {&a, &b})
            if (end->wire) end->wire->part();
    }
    void open(bool a_by_processors = false, bool b_by_processors = false) {
        a.open(a_by_processors);
        b.open(b_by_processors);
        a.wire->other = b.wire;
        b.wire->other = a.wire;
        a.wire->relay = [this](Packet packet) { b.wire->arriving.push_back(std::move(packet)); };
        b.wire->relay = [this](Packet packet) { a.wire->arriving.push_back(std::move(packet)); };
    }
    // The status with which they are connected.
    dtrain_status_t connect() {
        a.connect(b);
        for (int i = 0; i < 1000 && !a.is_connected() && a.status() == DTRAIN_IN_PROGRESS; i++) {
            a.progress();
            b.progress();
        }
        return a.is_connected() ? DTRAIN_OK : a.status();
    }
};

void the_higher_demand_counts(void **) {
    for (const Level one : {Level::none, Level::integrity, Level::encrypted})
        for (const Level other : {Level::none, Level::integrity, Level::encrypted}) {
            Two two;
            two.a.host.demand = one;
            two.b.host.demand = other;
            two.open();
            assert_int_equal(two.connect(), DTRAIN_OK);
            const auto level = uint32_t(std::max(one, other));
            assert_int_equal(two.a.host.level, level);
            assert_int_equal(two.b.host.level, level);
        }
}

// As option protection=auto: cards carry unprotected bytes, and so does a machine to itself.
void by_default_what_processors_send_to_other_machines_is_protected(void **) {
    for (const bool by_processors : {false, true}) {
        Two two;
        two.a.host.demand = two.b.host.demand = {Level::integrity, Level::none};
        two.open(by_processors, by_processors);
        assert_int_equal(two.connect(), DTRAIN_OK);
        assert_int_equal(two.a.host.level, DTRAIN_TP_PLAIN);

        const tp::Host host(two.a.host.table());
        assert_true(rdm::path_of(host, by_processors, 1) == rdm::path_of(host, by_processors, 1));
        assert_int_equal(rdm::path_of(host, by_processors, 1) ==
                             rdm::path_of(host, by_processors, 2),
                         !by_processors);
        assert_true(rdm::path_of(host, by_processors, 1) != tp::Path{});
    }
    Two two; // only one of them has cards
    for (End *end : {&two.a, &two.b}) end->host.demand = {Level::integrity, Level::none};
    two.open(false, true);
    assert_int_equal(two.connect(), DTRAIN_OK);
    assert_int_equal(two.a.host.level, DTRAIN_TP_INTEGRITY);
}

// A core, or a transport, of a time when there were no records.
void who_cannot_protect_is_refused_by_name(void **) {
    for (const bool old_connects : {true, false}) {
        FakeHost old;
        old.secret = "secret";
        dtrain_tp_host_t table = *old.table();
        table.struct_size = offsetof(dtrain_tp_host_t, guard_new);
        rdm::Device device(&table, "crossed");
        auto made = std::make_unique<CrossedWire>(device.protocol());
        CrossedWire *wire = made.get();
        assert_int_equal(device.open(std::move(made), "crossed"), DTRAIN_OK);
        End own;
        own.host.secret = "secret";
        own.open();
        wire->other = own.wire;
        own.wire->other = wire;
        wire->relay = [&](Packet packet) { own.wire->arriving.push_back(std::move(packet)); };
        own.wire->relay = [&](Packet packet) { wire->arriving.push_back(std::move(packet)); };
        Bytes address(rdm::Device::address_length);
        device.address(address.data());
        rdm::Endpoint *endpoint = nullptr;
        if (old_connects) {
            const Bytes to = own.address();
            assert_int_equal(device.connect(to.data(), to.size(), 1, &endpoint), DTRAIN_OK);
        } else {
            assert_int_equal(own.device.connect(address.data(), address.size(), 1, &own.endpoint),
                             DTRAIN_OK);
        }
        Dones done;
        for (int i = 0; i < 1000 && done.empty(); i++) {
            dtrain_tp_done_t some[4];
            const int32_t n = device.progress(some, 4);
            if (old_connects) done.assign(some, some + n);
            own.progress();
            if (!old_connects) done = own.done;
        }
        assert_int_equal(find(done, DTRAIN_TP_CONNECT, 1).status, DTRAIN_ERR_AUTH);
        const std::string text = old_connects ? old.text() : own.host.text();
        assert_non_null(strstr(text.c_str(), "option protection"));
        if (endpoint) device.disconnect(endpoint);
        wire->part();
        own.wire->part();
    }
}

void no_card_reads_or_writes_past_the_records(void **) {
    for (const Level level : {Level::none, Level::integrity}) {
        Two two;
        two.a.host.demand = two.b.host.demand = level;
        two.open();
        assert_int_equal(two.connect(), DTRAIN_OK);
        uint8_t byte = 0, key[8] = {};
        const dtrain_tp_iov_t iov{&byte, 1, nullptr};
        rdm::Endpoint *ep = two.a.endpoint;
        const dtrain_status_t expected =
            level == Level::none ? DTRAIN_OK : dtrain_status_t{DTRAIN_ERR_UNSUPPORTED};
        assert_int_equal(two.a.device.put(ep, &iov, 1, {0, key}, 0, 5), expected);
        assert_int_equal(two.a.device.get(ep, &iov, 1, {0, key}, 6), expected);
    }
    FakeHost host;
    host.secret = "secret";
    host.options["protection"] = "integrity";
    rdm::Device device(host.table(), "crossed");
    assert_int_equal(device.open(std::make_unique<CrossedWire>(device.protocol()), "crossed"),
                     DTRAIN_OK);
    dtrain_tp_attr_t attr{};
    attr.struct_size = sizeof attr;
    assert_int_equal(device.query(&attr), DTRAIN_OK);
    assert_int_equal(attr.caps & (DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET | DTRAIN_TP_CAP_GUARDED),
                     DTRAIN_TP_CAP_GUARDED);
}

} // namespace
} // namespace dtrain::test

int main() {
    using namespace dtrain::test;
    const CMUnitTest tests[] = {
        cmocka_unit_test(integrity),
        cmocka_unit_test(encrypted),
        cmocka_unit_test(without_protection_the_relay_makes_wrong_data),
        cmocka_unit_test(the_higher_demand_counts),
        cmocka_unit_test(by_default_what_processors_send_to_other_machines_is_protected),
        cmocka_unit_test(who_cannot_protect_is_refused_by_name),
        cmocka_unit_test(no_card_reads_or_writes_past_the_records),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
