// The checker is red for every fault planted into schedules that it accepts.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "collectives/check/check.h"
#include "every_rank.h"
#include "tested.h"

#include <algorithm>

using namespace dtrain;
using namespace dtrain::collectives;
using engine::Schedule;
using engine::Space;
using engine::Step;
using engine::StepKind;

namespace {

EveryRank good(Kind kind, Algorithm algorithm, int32_t size = 5, bool average = false) {
    CollectiveSpec call;
    call.kind = kind;
    call.size = size;
    call.count = kind == Kind::barrier ? 0 : 23;
    call.element_bytes = kind == Kind::barrier ? 1 : 4;
    call.average = average;
    EveryRank ranks(call);
    assert_int_equal(ranks.build(algorithm), DTRAIN_OK);
    assert_int_equal(check(ranks.specs, ranks.schedules, 1), DTRAIN_OK);
    return ranks;
}

void expect_red(const EveryRank &ranks, const char *text) {
    int32_t status = check(ranks.specs, ranks.schedules, 1);
    if (status != DTRAIN_ERR_INVALID || !strstr(error_text(), text))
        fail_msg("expected \"%s\", got %s: %s", text, status_name(status), error_text());
}

Step &first_of(Schedule &schedule, StepKind kind) {
    auto it = std::find_if(schedule.steps.begin(), schedule.steps.end(),
                           [&](const Step &step) { return step.kind == kind; });
    assert_true(it != schedule.steps.end());
    return *it;
}

void wrong_chunk(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::ring);
    first_of(ranks.schedules[2], StepKind::send).src.offset -= 4; // part of another block
    expect_red(ranks, "element");
}

void wrong_size(void **) {
    EveryRank ranks = good(Kind::allgather, Algorithm::ring);
    first_of(ranks.schedules[2], StepKind::send).bytes -= 4;
    expect_red(ranks, "bytes, 88 are sent");
}

void swapped_peer(void **) {
    EveryRank ranks = good(Kind::broadcast, Algorithm::binomial_tree);
    first_of(ranks.schedules[0], StepKind::send).peer = 3;
    expect_red(ranks, "is never");
    ranks = good(Kind::broadcast, Algorithm::binomial_tree);
    first_of(ranks.schedules[0], StepKind::send).message = 1;
    expect_red(ranks, "should have message number 0");
    ranks = good(Kind::broadcast, Algorithm::ring);
    first_of(ranks.schedules[1], StepKind::send).peer = 3;
    expect_red(ranks, "is never");
    first_of(ranks.schedules[1], StepKind::send).peer = 1;
    expect_red(ranks, "no such peer");
}

void swapped_messages(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::ring, 3);
    std::vector<Step *> sends;
    for (Step &step : ranks.schedules[1].steps)
        if (step.kind == StepKind::send) sends.push_back(&step);
    std::swap(sends[0]->src.offset, sends[1]->src.offset);
    std::swap(sends[0]->bytes, sends[1]->bytes);
    assert_true(check(ranks.specs, ranks.schedules, 1) < 0);
}

void missing_message(void **) {
    EveryRank ranks = good(Kind::reduce, Algorithm::binomial_tree);
    auto &steps = ranks.schedules[4].steps;
    assert_true(steps.back().kind == StepKind::send);
    steps.pop_back();
    expect_red(ranks, "rank 0, step 2 (recv_reduce from rank 4, message 0): is never sent");
}

// Without any of the dependencies two steps race.
void missing_dependency(void **) {
    for (Algorithm algorithm : tested_algorithms()) {
        if (!supports(Kind::allreduce, algorithm, 6)) continue;
        EveryRank ranks = good(Kind::allreduce, algorithm, 6);
        for (size_t rank = 0; rank < 6; rank++)
            for (Step &step : ranks.schedules[rank].steps) {
                if (step.deps_count != 1) continue;
                step.deps_count = 0;
                expect_red(ranks, "may run while step");
                step.deps_count = 1;
            }
    }
}

// The receive that overwrites what is being sent: a race, or a deadlock once it waits for the send.
void receive_into_what_is_sent(void **) {
    CollectiveSpec call;
    call.kind = Kind::alltoall;
    call.size = 2;
    call.count = 1;
    call.in_place = true;
    EveryRank ranks(call);
    for (int32_t rank = 0; rank < 2; rank++) {
        Step send, recv;
        send.kind = StepKind::send;
        recv.kind = StepKind::recv;
        send.peer = recv.peer = 1 - rank;
        send.bytes = recv.bytes = 1;
        send.src = recv.dst = {Space::output, uint64_t(1 - rank)};
        ranks.schedules[size_t(rank)].steps = {send, recv};
    }
    expect_red(ranks, "may run while step 0");
    for (Schedule &schedule : ranks.schedules) {
        schedule.deps = {0};
        schedule.steps[1].deps_count = 1;
    }
    expect_red(ranks, "rendezvous sends, seed 1: deadlock");
}

// Right with all messages in flight at once only: rank 1 takes rank 0's first message after what
// rank 2 makes of the second one.
void more_than_one_message_at_a_time(void **) {
    CollectiveSpec call;
    call.kind = Kind::broadcast;
    call.size = 3;
    call.count = 1;
    EveryRank ranks(call);
    auto step = [](StepKind kind, int32_t peer, uint32_t deps_count) {
        Step made;
        made.kind = kind;
        made.peer = peer;
        made.bytes = 1;
        made.deps_count = deps_count;
        return made;
    };
    ranks.schedules[0].steps = {step(StepKind::send, 1, 0), step(StepKind::send, 2, 0)};
    ranks.schedules[1].steps = {step(StepKind::recv, 2, 0), step(StepKind::recv, 0, 1)};
    ranks.schedules[2].steps = {step(StepKind::recv, 0, 0), step(StepKind::send, 1, 1)};
    for (Schedule &schedule : ranks.schedules) schedule.deps = {0};
    expect_red(ranks, "one message at a time");
    std::swap(ranks.schedules[0].steps[0], ranks.schedules[0].steps[1]);
    assert_int_equal(check(ranks.specs, ranks.schedules, 1), DTRAIN_OK);
}

void wrong_sums(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::direct);
    Step &reduce = first_of(ranks.schedules[3], StepKind::reduce);
    reduce.kind = StepKind::copy; // loses what was there
    expect_red(ranks, "rank 3: element 0 of the output lacks rank 0's part");
    reduce.kind = StepKind::reduce;
    auto &steps = ranks.schedules[3].steps;
    Step twice = reduce;
    steps.push_back(twice);
    auto &deps = ranks.schedules[3].deps;
    steps.back().first_dep = uint32_t(deps.size());
    steps.back().deps_count = 1;
    deps.push_back(uint32_t(steps.size()) - 2);
    expect_red(ranks, "part twice");
}

// Another order of additions is a correct sum that differs in its last bits.
void another_order(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::direct);
    std::vector<Step *> reduces;
    for (Step &step : ranks.schedules[4].steps)
        if (step.kind == StepKind::reduce) reduces.push_back(&step);
    std::swap(reduces[0]->src, reduces[1]->src);
    for (Step *step : reduces) { // wait for everything, so that nothing but the order is wrong
        auto &deps = ranks.schedules[4].deps;
        auto before = uint32_t(step - ranks.schedules[4].steps.data());
        step->first_dep = uint32_t(deps.size());
        step->deps_count = before;
        for (uint32_t i = 0; i < before; i++) deps.push_back(i);
    }
    expect_red(ranks, "another order");
}

void average_once(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::ring, 4, true);
    Step &scale = first_of(ranks.schedules[1], StepKind::scale);
    StepKind kinds[] = {StepKind::copy, StepKind::scale};
    scale.kind = kinds[0];
    scale.src = scale.dst;
    expect_red(ranks, "element");
    ranks = good(Kind::reduce, Algorithm::direct, 3, true);
    for (CollectiveSpec &spec : ranks.specs) spec.average = false;
    expect_red(ranks, "rank 0: element 0");
}

void out_of_bounds(void **) {
    EveryRank ranks = good(Kind::gather, Algorithm::binomial_tree);
    ranks.schedules[2].scratch_bytes = 64;
    expect_red(ranks, "out of bounds");
    ranks = good(Kind::scatter, Algorithm::direct);
    ranks.schedules[1].steps[0].dst.offset = 2;
    expect_red(ranks, "target out of bounds");
    ranks = good(Kind::allreduce, Algorithm::direct);
    first_of(ranks.schedules[0], StepKind::recv_reduce).dst.space = Space::input;
    expect_red(ranks, "writes the input");
    ranks = good(Kind::allreduce, Algorithm::direct);
    first_of(ranks.schedules[1], StepKind::reduce).bytes = 0;
    expect_red(ranks, "not a number of elements");
}

void undefined_reads(void **) {
    EveryRank ranks = good(Kind::broadcast, Algorithm::direct);
    for (CollectiveSpec &spec : ranks.specs) spec.root = 1; // whose data nobody has
    expect_red(ranks, "reads memory that was never written");
}

void writes_outside_of_the_result(void **) {
    EveryRank ranks = good(Kind::allgather, Algorithm::direct, 3);
    uint64_t displs[] = {0, 23, 47}, counts[] = {23, 23, 23};
    for (CollectiveSpec &spec : ranks.specs) spec.displs = displs, spec.counts = counts;
    expect_red(ranks, "outside of the result was written");
}

void early_barrier(void **) {
    EveryRank ranks = good(Kind::barrier, Algorithm::recursive_doubling, 7);
    for (Schedule &schedule : ranks.schedules) // forget what was heard
        for (Step &step : schedule.steps)
            if (step.kind == StepKind::send) step.deps_count = 0;
    expect_red(ranks, "may run while");
    for (Schedule &schedule : ranks.schedules) {
        schedule.scratch_bytes = 64;
        for (uint32_t i = 0; i < schedule.steps.size(); i++) schedule.steps[i].dst.offset = 20 + i;
    }
    expect_red(ranks, "can leave before rank");
}

void bad_dependencies(void **) {
    EveryRank ranks = good(Kind::allreduce, Algorithm::ring);
    Schedule &schedule = ranks.schedules[0];
    assert_false(schedule.deps.empty());
    schedule.deps[0] = uint32_t(schedule.steps.size());
    expect_red(ranks, "which is not before it");
    schedule.steps.back().deps_count = 1000000;
    schedule.deps[0] = 0;
    expect_red(ranks, "out of range");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(wrong_chunk),
        cmocka_unit_test(wrong_size),
        cmocka_unit_test(swapped_peer),
        cmocka_unit_test(swapped_messages),
        cmocka_unit_test(missing_message),
        cmocka_unit_test(missing_dependency),
        cmocka_unit_test(receive_into_what_is_sent),
        cmocka_unit_test(more_than_one_message_at_a_time),
        cmocka_unit_test(wrong_sums),
        cmocka_unit_test(another_order),
        cmocka_unit_test(average_once),
        cmocka_unit_test(out_of_bounds),
        cmocka_unit_test(undefined_reads),
        cmocka_unit_test(writes_outside_of_the_result),
        cmocka_unit_test(early_barrier),
        cmocka_unit_test(bad_dependencies),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
