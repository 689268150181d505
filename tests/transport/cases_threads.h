// Cases: devices and threads, and a randomised one against a model.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

#include <cstdlib>
#include <mutex>
#include <thread>

namespace dtrain::test {

inline void each_thread_has_its_device(void **) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    const auto play = [](Node &node, dtrain_tp_ep_t *ep) {
        for (uint64_t i = 0; i < 500; i++) {
            const size_t len = i % 50 == 0 ? 400'000 : i * 31 % 9000;
            const Bytes sent = pattern(len, i);
            Bytes got(len);
            node.recv(i, got, 1);
            node.send(ep, i, sent, 2);
            await_ok({&node}, node, DTRAIN_TP_RECV, 1);
            await_ok({&node}, node, DTRAIN_TP_SEND, 2);
            assert_true(sent == got);
        }
    };
    std::thread thread([&] { play(pair.b, to_a); });
    play(pair.a, pair.to_b);
    thread.join();
}

// Any thread may call, one at a time.
inline void a_device_moves_between_threads(void **) {
    Pair pair;
    std::mutex mutex;
    std::vector<uint8_t> got(400);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (uint64_t i = 0; i < 100; i++) {
                const std::lock_guard lock(mutex);
                const uint64_t tag = t * 100 + i;
                pair.b.recv(tag, exact, &got[tag], 1, tag);
                pair.a.send(pair.to_b, tag, {uint8_t(tag)}, tag);
                drive_rounds(pair.both(), 2);
            }
        });
    for (std::thread &thread : threads) thread.join();
    for (uint64_t tag = 0; tag < 400; tag++) {
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, tag);
        assert_int_equal(got[tag], uint8_t(tag));
    }
}

// The model: of one sender, the messages of each tag arrive in the order in which they were sent,
// each once, whole, at a receive that wants it. Everything else is left to chance.
class RandomTraffic {
  public:
    explicit RandomTraffic(uint64_t seed) : random_(seed) {
        dtrain_tp_ep_t *to_a = pair_.connect_back();
        sides_[0] = {&pair_.a, pair_.to_b, {}, {}, 0, 0};
        sides_[1] = {&pair_.b, to_a, {}, {}, 0, 0};
    }
    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            Side &from = sides_[random_() % 2];
            Side &to = &from == &sides_[0] ? sides_[1] : sides_[0];
            switch (random_() % 8) {
            case 0:
            case 1:
            case 2: send(from); break;
            case 3:
            case 4: receive(to, random_() % 4 == 0); break;
            case 5: cancel(to); break;
            default: turn();
            }
        }
        // Receives for all that was not received yet.
        for (Side &side : sides_)
            for (auto &[cookie, posted] : side.posted) ops().cancel(side.node->dev, cookie);
        assert_true(drive(pair_.both(), [&] {
            turn();
            return sides_[0].posted.empty() && sides_[1].posted.empty();
        }));
        for (size_t i = 0; i < 2; i++)
            while (sides_[i].received < sides_[1 - i].sent.size()) {
                receive(sides_[i], true);
                assert_true(drive(pair_.both(), [&] {
                    turn();
                    return sides_[i].posted.empty();
                }));
            }
        assert_true(drive(pair_.both(), [&] {
            turn();
            return sides_[0].unsent + sides_[1].unsent == 0;
        }));
        for (const Side &side : sides_) check_order(side);
    }

  private:
    struct Posted {
        uint64_t wanted, mask;
        Bytes into;
    };
    struct Sent {
        uint64_t tag;
        Bytes data;       // begins with its index in Side::sent
        uint64_t receive; // cookie of the receive that got it, which grows with the posting order
    };
    struct Side {
        Node *node;
        dtrain_tp_ep_t *ep;
        std::map<uint64_t, Posted> posted;
        std::deque<Sent> sent; // stable: sends point into it
        size_t received;
        size_t unsent;
    };

    void send(Side &side) {
        if (side.sent.size() > 400) return;
        const size_t lengths[] = {8, 20, 100, 5000, 70'000, 300'000};
        const size_t len = lengths[random_() % 6] + random_() % 16;
        const uint64_t index = side.sent.size();
        side.sent.push_back({random_tag(), pattern(len, random_()), 0});
        memcpy(side.sent.back().data.data(), &index, sizeof index);
        const Sent &sent = side.sent.back();
        const dtrain_status_t status =
            side.node->try_send(side.ep, sent.tag, sent.data.data(), len, next_cookie_++);
        if (status == DTRAIN_ERR_BUSY)
            side.sent.pop_back();
        else
            assert_int_equal(status, DTRAIN_OK), side.unsent++;
    }
    void receive(Side &side, bool any) {
        const uint64_t masks[] = {exact, 3, uint64_t{1} << 32, exact};
        const uint64_t mask = any ? 0 : masks[random_() % 4];
        const uint64_t cookie = next_cookie_++;
        Posted &posted = side.posted[cookie];
        posted = {random_tag(), mask, Bytes(300'100)};
        side.node->recv(posted.wanted, mask, posted.into.data(), posted.into.size(), cookie);
    }
    uint64_t random_tag() { return random_() % 4 | (random_() % 2) << 32; }
    void cancel(Side &side) {
        if (!side.posted.empty()) ops().cancel(side.node->dev, side.posted.begin()->first);
    }
    void turn() {
        for (size_t i = 0; i < 2; i++) {
            sides_[i].node->progress();
            for (const dtrain_tp_done_t &done : sides_[i].node->done)
                check(sides_[i], sides_[1 - i], done);
            sides_[i].node->done.clear();
        }
    }
    static void check(Side &side, Side &from, const dtrain_tp_done_t &done) {
        if (done.kind == DTRAIN_TP_SEND) {
            assert_int_equal(done.status, DTRAIN_OK);
            side.unsent--;
            return;
        }
        assert_int_equal(done.kind, DTRAIN_TP_RECV);
        const auto posted = side.posted.find(done.cookie);
        assert_true(posted != side.posted.end());
        if (done.status != DTRAIN_ERR_CANCELED) {
            assert_int_equal(done.status, DTRAIN_OK);
            assert_true(((done.tag ^ posted->second.wanted) & posted->second.mask) == 0);
            uint64_t index;
            memcpy(&index, posted->second.into.data(), sizeof index);
            assert_true(index < from.sent.size());
            Sent &sent = from.sent[index];
            assert_int_equal(sent.tag, done.tag);
            assert_int_equal(sent.data.size(), done.bytes);
            assert_int_equal(sent.receive, 0);
            assert_true(
                std::equal(sent.data.begin(), sent.data.end(), posted->second.into.begin()));
            sent.receive = done.cookie;
            side.received++;
        }
        side.posted.erase(posted);
    }

    static void check_order(const Side &side) {
        std::map<uint64_t, uint64_t> last; // by tag
        for (const Sent &sent : side.sent) {
            assert_true(sent.receive > last[sent.tag]);
            last[sent.tag] = sent.receive;
        }
    }

    std::mt19937_64 random_;
    uint64_t next_cookie_ = 1000;
    Pair pair_;
    Side sides_[2];
};

inline void random_traffic_follows_the_model(void **) {
    const uint64_t seed = choose_seed();
    for (uint64_t i = 0; i < 10; i++) RandomTraffic(seed + i).run(600);
}

inline const CMUnitTest thread_cases[] = {
    cmocka_unit_test(each_thread_has_its_device),
    cmocka_unit_test(a_device_moves_between_threads),
    cmocka_unit_test(random_traffic_follows_the_model),
};

} // namespace dtrain::test
