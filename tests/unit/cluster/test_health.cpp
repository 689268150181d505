// Members that die, stop, or call the wrong thing: real processes, real signals.
// SPDX-License-Identifier: Apache-2.0
#include "job_harness.h"

#include <csignal>

using namespace harness;

namespace {

using Ranks = std::vector<std::unique_ptr<Rank>>;

// The others are here as threads.
struct Mixed {
    std::vector<pid_t> children;
    Ranks ranks;

    Mixed(int32_t workers, const std::vector<int32_t> &forked, const char *name) {
        std::string where = rendezvous_file(name);
        for (int32_t m : forked) children.push_back(fork_rank(params_for(m, workers, 0, where)));
        for (int32_t m = 0; m < workers; m++)
            if (std::find(forked.begin(), forked.end(), m) == forked.end()) {
                ranks.push_back(std::make_unique<Rank>());
                ranks.back()->params = params_for(m, workers, 0, where);
            }
        join_all(ranks);
        for (auto &rank : ranks) assert_string_equal(rank->text.c_str(), "");
    }
    ~Mixed() {
        ranks.clear();
        for (pid_t child : children) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    }
    // All members that are here see it.
    void expect(const std::string &line, int64_t within = 10 * second) {
        for (auto &rank : ranks) {
            bool seen = !rank->seen.wait_for(line, within).empty();
            if (!seen) print_error("member %d did not see: %s\n", rank->job->self(), line.c_str());
            assert_true(seen);
        }
    }
};

// All ranks here shrink the group; they must agree.
std::vector<int32_t> shrink_all(Ranks &ranks, uint64_t group, std::vector<int32_t> members) {
    std::vector<NewGroup> results(ranks.size());
    std::vector<TagIds> tags(ranks.size());
    std::vector<Status> status(ranks.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); i++)
        threads.emplace_back([&, i] {
            for (uint32_t tag = 0; tag < group_tags; tag++) // each has others in use
                if (tag % 5 == i) tags[i].take(tag);
            status[i] = ranks[i]->job->form_group({GroupKind::shrink, group, members}, tags[i],
                                                  10 * second, results[i]);
            if (status[i] != DTRAIN_OK) print_error("shrink: %s\n", error_text());
        });
    for (std::thread &t : threads) t.join();
    for (size_t i = 0; i < ranks.size(); i++) {
        assert_int_equal(status[i], DTRAIN_OK);
        assert_true(results[i].members == results[0].members);
        assert_true(results[i].uid == results[0].uid && results[i].uid != group);
        assert_int_equal(results[i].tag_id, results[0].tag_id);
        assert_true(results[i].tag_id % 5 >= ranks.size());
        assert_false(tags[i].take(results[i].tag_id));
    }
    return results[0].members;
}

void killed(void **) {
    Mixed job(4, {2}, "killed");
    int64_t start = monotonic_clock().now_ns();
    kill(job.children[0], SIGKILL);
    job.expect("lost 2 rank 2 (127.0.0.1:");
    int64_t took = monotonic_clock().now_ns() - start;
    print_message("killed: noticed by all after %.2f ms (noisy)\n", double(took) / 1e6);
    job.expect("lost: connection closed");
    for (auto &rank : job.ranks) {
        assert_int_equal(rank->job->member_status(2), DTRAIN_ERR_PEER);
        assert_int_equal(rank->job->member_status(1), DTRAIN_OK);
    }
    assert_true((shrink_all(job.ranks, 5, {3, 2, 1, 0}) == std::vector<int32_t>{3, 1, 0}));
}

void stopped_and_resumed(void **) {
    Mixed job(3, {2}, "stopped");
    kill(job.children[0], SIGSTOP);
    job.expect("lost: silent for");
    assert_true((shrink_all(job.ranks, 5, {0, 1, 2}) == std::vector<int32_t>{0, 1}));
}

// The stopped one is here, so that it can be asked what it learnt: its helper pauses.
void fenced(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("fenced"));
    join_all(ranks);
    for (auto &rank : ranks) assert_string_equal(rank->text.c_str(), "");
    ranks[2]->pause(true);
    for (size_t i : {0u, 1u})
        assert_string_not_equal(ranks[i]->seen.wait_for("lost 2").c_str(), "");
    ranks[2]->pause(false);
    assert_string_not_equal(ranks[2]->seen.wait_for("over DTRAIN_ERR_FENCED").c_str(), "");
    assert_int_equal(ranks[2]->job->status(), DTRAIN_ERR_FENCED);
    TagIds tags;
    NewGroup result;
    int32_t members[] = {0, 1, 2};
    assert_int_equal(
        ranks[2]->job->form_group({GroupKind::shrink, 5, members}, tags, second, result),
        DTRAIN_ERR_FENCED);
    assert_true(tags.used() == TagSet{});
    assert_int_equal(ranks[2]->job->abort(5, members, "x"), DTRAIN_ERR_STATE);
}

void coordinator_killed(void **) {
    Mixed job(4, {0}, "coordinator");
    kill(job.children[0], SIGKILL);
    job.expect("lost 0");
    assert_true((shrink_all(job.ranks, 5, {0, 1, 2, 3}) == std::vector<int32_t>{1, 2, 3}));
    job.ranks[0]->job->abort(9, std::vector<int32_t>{1, 2, 3}, "enough"); // and it works as before
    for (size_t i : {1u, 2u})
        assert_string_not_equal(
            job.ranks[i]->seen.wait_for("group 9 DTRAIN_ERR_ABORTED enough guilty 1").c_str(), "");
}

void coordinator_stopped(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("deposed"));
    join_all(ranks);
    ranks[0]->pause(true);
    for (size_t i : {1u, 2u})
        assert_string_not_equal(ranks[i]->seen.wait_for("lost 0").c_str(), "");
    Ranks others;
    others.push_back(std::move(ranks[1]));
    others.push_back(std::move(ranks[2]));
    assert_true((shrink_all(others, 5, {0, 1, 2}) == std::vector<int32_t>{1, 2}));
    ranks[0]->pause(false);
    assert_string_not_equal(ranks[0]->seen.wait_for("over DTRAIN_ERR_FENCED").c_str(), "");
    assert_false(others[0]->seen.has("over"));
}

void all_but_one_killed(void **) {
    Mixed job(4, {0, 1, 3}, "last");
    for (pid_t child : job.children) kill(child, SIGKILL);
    for (const char *line : {"lost 0", "lost 1", "lost 3"}) job.expect(line);
    assert_true((shrink_all(job.ranks, 5, {0, 1, 2, 3}) == std::vector<int32_t>{2}));
}

// The thread that is told of the loss, and of the answer with it, is slow to pass it on.
void who_has_shrunk_knows_who_was_lost(void **) {
    Mixed job(3, {2}, "knows");
    for (auto &rank : job.ranks) rank->seen.on_lost = [] { usleep(200'000); };
    std::vector<std::thread> threads;
    std::atomic<int> calling{0}, knowing{0};
    for (auto &rank : job.ranks)
        threads.emplace_back([&] {
            const int32_t members[] = {0, 1, 2};
            TagIds tags;
            NewGroup result;
            calling++;
            const Status s =
                rank->job->form_group({GroupKind::shrink, 5, members}, tags, 10 * second, result);
            knowing += s == DTRAIN_OK && rank->seen.has("lost 2");
        });
    while (calling < 2) usleep(1000);
    usleep(50'000); // both wait now
    kill(job.children[0], SIGKILL);
    for (std::thread &thread : threads) thread.join();
    assert_int_equal(knowing, 2);
}

void everybody_leaves(void **) {
    auto ranks = make_ranks(4, 0, rendezvous_file("leave"));
    join_all(ranks);
    int64_t start = monotonic_clock().now_ns();
    for (auto &rank : ranks) rank->stop(); // rank 0, the coordinator, first
    assert_true(monotonic_clock().now_ns() - start < 2 * second);
    for (auto &rank : ranks) assert_false(rank->seen.has("lost") || rank->seen.has("over"));
}

void shrink_without_one(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("missing"));
    join_all(ranks);
    int32_t members[] = {0, 1, 2};
    TagIds tags;
    NewGroup result;
    assert_int_equal(
        ranks[1]->job->form_group({GroupKind::shrink, 5, members}, tags, 2 * second, result),
        DTRAIN_ERR_TIMEOUT);
    assert_non_null(strstr(error_text(), "ranks 0,2"));
    assert_true(tags.used() == TagSet{});
}

CallRecord call(uint64_t seq, CallKind kind, uint64_t count, uint8_t op, int32_t root) {
    return {seq, count, root, kind, DTRAIN_F32, op};
}

void mismatch(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("mismatch"));
    join_all(ranks);
    const int32_t members[] = {2, 1, 0}; // ranks of the group are not those of the job
    CallRecord same = call(16, CallKind::barrier, 0, 0, -1);
    const CallRecord ours[] = {same, call(17, CallKind::all_reduce, 100, DTRAIN_SUM, -1)};
    const CallRecord theirs[] = {same, call(17, CallKind::broadcast, 10, 0, 0)};
    for (auto &rank : ranks) {
        std::span<const CallRecord> calls = rank->job->self() == 2 ? theirs : ours;
        rank->seen.on_calls_wanted = [&rank, &members, calls](uint64_t group) {
            rank->job->report_calls(group, members, false, calls);
        };
    }
    ranks[1]->job->report_calls(8, members, true, ours);
    for (auto &rank : ranks) {
        std::string line = rank->seen.wait_for("group 8 DTRAIN_ERR_MISMATCH");
        assert_non_null(strstr(line.c_str(), "call 17: rank "));
        assert_non_null(strstr(line.c_str(), "rank 0 broadcast f32[10] root 0"));
        assert_non_null(strstr(line.c_str(), "all_reduce f32[100] sum"));
    }
}

void one_is_behind(void **) {
    auto ranks = make_ranks(2, 0, rendezvous_file("behind"));
    join_all(ranks);
    const int32_t members[] = {0, 1};
    const CallRecord calls[] = {call(16, CallKind::barrier, 0, 0, -1),
                                call(17, CallKind::barrier, 0, 0, -1)};
    ranks[0]->seen.on_calls_wanted = [&](uint64_t group) {
        ranks[0]->job->report_calls(group, members, false, std::span(calls).first(1));
    };
    ranks[1]->job->report_calls(8, members, true, calls);
    assert_string_not_equal(ranks[1]->seen.wait_for("behind 8 rank 0 at 16").c_str(), "");
    assert_false(ranks[1]->seen.has("MISMATCH"));
}

} // namespace

int main() {
    size_t before = open_descriptors();
    const CMUnitTest tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(stopped_and_resumed),
        cmocka_unit_test(fenced),
        cmocka_unit_test(coordinator_killed),
        cmocka_unit_test(coordinator_stopped),
        cmocka_unit_test(all_but_one_killed),
        cmocka_unit_test(who_has_shrunk_knows_who_was_lost),
        cmocka_unit_test(everybody_leaves),
        cmocka_unit_test(shrink_without_one),
        cmocka_unit_test(mismatch),
        cmocka_unit_test(one_is_behind),
    };
    int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
    if (open_descriptors() != before) return std::fprintf(stderr, "descriptors leaked\n"), 1;
    return failed;
}
