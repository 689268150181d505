// A server's tables over the generations of an elastic job, whose workers are lost at any moment:
// values stay, and values that are lost do not come back as others.
// SPDX-License-Identifier: Apache-2.0
//
// DTRAIN_TEST_SEED repeats one schedule, DTRAIN_TEST_ROUNDS says how many there are.
#include "ps/server/server.h"
#include "ps/table/table_wire.h"

#include "check.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>

using namespace dtrain::ps;

namespace {

// The part in one job that the only server has.
class Generation {
  public:
    explicit Generation(uint32_t workers, std::map<std::string, LegacyPart> parts = {})
        : workers_(workers), server_({.workers = workers}) {
        server_.inherit(std::move(parts));
    }

    // among: 1 if the workers know that the table was there. Whether all are answered.
    bool create(uint32_t worker, uint32_t among, double rate = 0) {
        TableParams params;
        params.length = 4;
        params.dtype = DTRAIN_F32;
        params.rule = DTRAIN_RULE_ADD;
        params.placement.among = among;
        if (rate != 0) params.learning_rate = rate;
        const std::string payload = encode_table(params, "t");
        send(header(RequestKind::create, worker), payload.data(), payload.size());
        return !out_.empty();
    }
    bool create_all(uint32_t among, double rate = 0) {
        bool all = false;
        for (uint32_t worker = 0; worker < workers_; worker++) all = create(worker, among, rate);
        return all;
    }
    bool is_made() const { return out_.at(0).header.reason == Reason::none; }
    bool is_inherited() const {
        return is_made() && (out_.at(0).header.numbers[0] & created_inherited) != 0;
    }
    void destroy(uint32_t worker, bool failed) {
        RequestHeader h = header(RequestKind::destroy, worker);
        h.flags = failed ? gives_up : 0;
        send(h);
    }
    void lose(uint32_t worker) {
        out_.clear();
        server_.on_worker_lost(worker, out_);
    }
    void push(uint32_t worker) {
        const float one = 1;
        RequestHeader h = header(RequestKind::push, worker);
        h.count = 1;
        h.flags = begins_push;
        send(h, &one, sizeof one);
        assert_int_equal(out_.at(0).header.reason, Reason::none);
    }
    float value(uint32_t worker) {
        RequestHeader h = header(RequestKind::pull, worker);
        h.count = 1;
        send(h);
        assert_int_equal(out_.at(0).header.reason, Reason::none);
        float result;
        std::memcpy(&result, out_.at(0).payload, sizeof result);
        return result;
    }
    std::map<std::string, LegacyPart> legacy() const { return server_.legacy(); }

  private:
    RequestHeader header(RequestKind kind, uint32_t worker) {
        RequestHeader h;
        h.kind = kind;
        h.worker = worker;
        h.sequence = kind == RequestKind::create ? 0 : ++sequence_;
        return h;
    }
    void send(const RequestHeader &h, const void *payload = nullptr, uint64_t bytes = 0) {
        out_.clear();
        server_.on_request(h.worker, h, payload, bytes, out_);
    }

    const uint32_t workers_;
    Server server_;
    Responses out_;
    uint64_t sequence_ = 0;
};

// Made by two workers, with the value 1.
std::map<std::string, LegacyPart> one() {
    Generation first(2);
    assert_true(first.create_all(0));
    first.push(0);
    return first.legacy();
}

void values_survive_a_worker_that_is_lost_while_they_are_opened(void **) {
    Generation second(2, one());
    second.create(0, 1);
    second.lose(1); // worker 0 is refused, and has not given up yet
    assert_false(second.is_made());
    Generation third(1, second.legacy());
    assert_true(third.create_all(1) && third.is_inherited());
    assert_true(third.value(0) == 1);
}

void values_survive_an_opening_with_other_parameters(void **) {
    Generation second(1, one());
    assert_true(second.create_all(1, 0.5) && second.is_made() && !second.is_inherited());
    Generation third(1, second.legacy()); // before the worker has given up
    assert_true(third.create_all(1) && third.is_inherited());
    assert_true(third.value(0) == 1);
    third.destroy(0, false);
    assert_true(third.legacy().empty());
}

void lost_values_do_not_come_back_as_others(void **) {
    std::map<std::string, LegacyPart> parts = one();
    parts.at("t").image = nullptr; // there was no memory
    for (int generation = 0; generation < 3; generation++) {
        Generation next(1, std::move(parts));
        assert_true(next.create_all(1) && next.is_made() && !next.is_inherited());
        if (generation == 1) next.destroy(0, true);
        parts = next.legacy();
    }
    // Without knowing of the old one, workers make a new table.
    Generation last(1, std::move(parts));
    assert_true(last.create_all(0) && last.is_made() && !last.is_inherited());
    last.push(0);
    Generation after(1, last.legacy());
    assert_true(after.create_all(1) && after.is_inherited());
    assert_true(after.value(0) == 1);
}

// Workers are lost or give up at any point; no memory is lacking, so nothing may be lost.
void play(uint32_t seed) {
    std::mt19937 random(seed);
    auto chance = [&](uint32_t of) { return random() % of == 0; };
    float pushed = 0;
    std::map<std::string, LegacyPart> parts;
    for (uint32_t generation = 0; generation < 12; generation++) {
        const uint32_t workers = 1 + random() % 4;
        Generation now(workers, std::move(parts));
        bool open = false, broken = false;
        for (uint32_t w = 0; w < workers && !broken; w++) {
            if (generation > 0 && chance(8)) {
                now.lose(w);
                broken = true;
            } else {
                open = now.create(w, generation > 0);
            }
        }
        if (open && !broken) {
            const bool right = now.is_made() && now.is_inherited() == (generation > 0);
            if (!right || now.value(0) != pushed)
                fail_msg("seed %u: the table is lost in generation %u", seed, generation);
            for (uint32_t pushes = random() % 3; pushes > 0; pushes--, pushed++)
                now.push(random() % workers);
            // One whose opening failed in the end, and others that destroy what they have opened.
            const uint32_t one = random() % workers;
            const bool gives_up = generation > 0 && chance(4);
            for (uint32_t w = 0; gives_up && w < workers; w++) now.destroy(w, w == one);
        }
        for (uint32_t w = 0; broken && w < workers; w++) // some have not noticed yet
            if (chance(2)) now.destroy(w, true);
        parts = now.legacy();
    }
}

void random_generations(void **) {
    const char *seed = std::getenv("DTRAIN_TEST_SEED"), *rounds = std::getenv("DTRAIN_TEST_ROUNDS");
    const uint32_t first = seed != nullptr ? uint32_t(std::strtoul(seed, nullptr, 10)) : 0;
    const uint32_t count = rounds != nullptr ? uint32_t(std::strtoul(rounds, nullptr, 10)) : 2000;
    for (uint32_t i = 0; i < (seed != nullptr && rounds == nullptr ? 1 : count); i++)
        play(first + i);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_a_worker_that_is_lost_while_they_are_opened),
        cmocka_unit_test(values_survive_an_opening_with_other_parameters),
        cmocka_unit_test(lost_values_do_not_come_back_as_others),
        cmocka_unit_test(random_generations),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
