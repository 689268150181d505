// Flow control of eager messages: two sides that send at random, and peers that lie.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "common/eager_window.h"
#include "rig.h"

#include <deque>
#include <random>

namespace {

using dtrain::tp::EagerWindow;
constexpr uint64_t size = 64 << 10, cost = dtrain::tp::Matcher::message_cost;

// One side; its frames arrive at the other one in order, late.
struct Side {
    struct Frame {
        bool message;
        uint64_t length;
        uint32_t credit;
    };
    EagerWindow window{size};
    std::deque<Frame> wire;    // on the way from here
    std::deque<uint64_t> kept; // lengths of messages that came
    uint64_t kept_bytes = 0;
    bool credit_is_due = false;

    void send(bool message, uint64_t length) {
        if (message) window.sent(length);
        wire.push_back({message, length, window.due()});
        window.told();
        credit_is_due = false;
    }
    void receive(Side &from) {
        const Frame frame = from.wire.front();
        from.wire.pop_front();
        assert_true(window.refill(frame.credit));
        if (!frame.message) return;
        assert_true(window.take(frame.length));
        kept.push_back(frame.length);
        kept_bytes += frame.length + cost;
        assert_true(kept_bytes <= size);
    }
    void give_back() {
        const uint64_t length = kept.front();
        kept.pop_front();
        kept_bytes -= length + cost;
        credit_is_due |= window.give_back(length);
    }
};

// However frames are delayed, no side keeps more than the window, or takes the other for a liar;
// and when all is taken, each may send a message of half the window again.
void honest_sides_never_exceed_it(void **) {
    std::mt19937_64 random(dtrain::test::choose_seed());
    for (int run = 0; run < 200; run++) {
        Side sides[2];
        for (int step = 0; step < 2000; step++) {
            Side &me = sides[random() % 2], &other = sides[&me == &sides[0]];
            const uint64_t length = random() % 4 ? random() % 500 : random() % size;
            switch (random() % 4) {
            case 0:
                if (me.window.has_room(length)) me.send(true, length);
                break;
            case 1:
                if (!other.wire.empty()) me.receive(other);
                break;
            case 2:
                if (!me.kept.empty()) me.give_back();
                break;
            default:
                if (me.credit_is_due) me.send(false, 0);
            }
        }
        for (Side &me : sides) {
            Side &other = sides[&me == &sides[0]];
            while (!other.wire.empty()) me.receive(other);
            while (!me.kept.empty()) me.give_back();
            if (me.credit_is_due) me.send(false, 0);
            while (!me.wire.empty()) other.receive(me);
            while (!other.kept.empty()) other.give_back();
        }
        for (Side &me : sides) assert_true(me.window.has_room(size / 2 - cost));
    }
}

void liars_are_found_out(void **) {
    EagerWindow window(size);
    assert_false(window.take(size - cost + 1));
    assert_false(window.take(UINT64_MAX));
    assert_false(window.take(UINT64_MAX - cost + 1)); // its cost would be none
    assert_true(window.take(size - cost));
    assert_false(window.take(0));
    assert_true(window.give_back(size - cost));
    assert_false(window.take(0)); // the peer does not know yet
    window.told();
    assert_true(window.take(0));

    assert_true(window.refill(0));
    assert_false(window.refill(1)); // nothing was sent
    EagerWindow used(size);
    used.sent(1000);
    assert_true(used.refill(1000 + cost));
    assert_false(used.refill(UINT32_MAX));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(honest_sides_never_exceed_it),
                                cmocka_unit_test(liars_are_found_out)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
