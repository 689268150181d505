// Jobs over real sockets, ranks as threads of this process.
// SPDX-License-Identifier: Apache-2.0
#include "job_harness.h"

#include <algorithm>

using namespace harness;

namespace {

void one_process(void **) {
    Rank rank;
    rank.params = params_for(0, 1, 0, "");
    assert_int_equal(rank.join(), DTRAIN_OK);
    assert_int_equal(rank.job->self(), 0);
    assert_int_equal(rank.job->members().size(), 1);
    int32_t self = 0;
    TagIds tags;
    for (GroupKind kind : {GroupKind::shrink, GroupKind::create}) {
        NewGroup group;
        assert_int_equal(rank.job->form_group({kind, 7, {&self, 1}}, tags, second, group),
                         DTRAIN_OK);
        assert_int_equal(group.members.size(), 1);
        assert_true(group.uid != 7);
        assert_false(tags.take(group.tag_id));
    }
}

void four_ranks_and_two_servers(void **) {
    size_t before = open_descriptors();
    {
        auto ranks = make_ranks(4, 2, rendezvous_file("six"));
        for (size_t i = 0; i < ranks.size(); i++)
            ranks[i]->params.transports = {{"tcp", {uint8_t(i), 2, 3}}};
        int64_t start = monotonic_clock().now_ns();
        join_all(ranks);
        print_message("6 members joined in %.2f ms (noisy)\n",
                      double(monotonic_clock().now_ns() - start) / 1e6);
        for (auto &rank : ranks) {
            assert_string_equal(rank->text.c_str(), "");
            const std::vector<Member> &members = rank->job->members();
            assert_int_equal(members.size(), 6);
            for (size_t m = 0; m < 6; m++) {
                assert_int_equal(members[m].index, m < 4 ? m : m - 4);
                assert_true(members[m].role == (m < 4 ? Role::worker : Role::server));
                assert_int_equal(members[m].transports.size(), 1);
                assert_int_equal(members[m].transports[0].bytes[0], m);
                assert_string_equal(members[m].host.c_str(), members[0].host.c_str());
            }
        }
        const char hello[] = "hello";
        auto bytes = std::span(reinterpret_cast<const uint8_t *>(hello), 5);
        assert_int_equal(ranks[1]->job->send(5, 42, bytes), DTRAIN_OK);
        assert_int_equal(ranks[0]->job->send(0, 43, bytes), DTRAIN_OK);
        assert_string_not_equal(ranks[5]->seen.wait_for("message 1 42 hello").c_str(), "");
        assert_string_not_equal(ranks[0]->seen.wait_for("message 0 43 hello").c_str(), "");
        ranks[2]->stop();
        for (size_t i : {0u, 1u, 3u, 4u, 5u})
            assert_string_not_equal(ranks[i]->seen.wait_for("left 2").c_str(), "");
    }
    assert_int_equal(open_descriptors(), before);
}

// The next job at the same address, which rank 1 joins before rank 0 has left the one before.
void one_job_after_another(void **) {
    int port = 0;
    close(listen_somewhere(port));
    auto ranks = make_ranks(2, 0, tcp_rendezvous(port));
    join_all(ranks);
    for (int i = 0; i < 10; i++) {
        auto next = make_ranks(2, 0, tcp_rendezvous(port));
        ranks[1]->stop();
        std::thread early([&] { next[1]->join(); });
        usleep(useconds_t(i * 2000));
        ranks[0]->stop();
        next[0]->join();
        early.join();
        for (auto &rank : next) assert_string_equal(rank->text.c_str(), "");
        ranks = std::move(next);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_process),
        cmocka_unit_test(four_ranks_and_two_servers),
        cmocka_unit_test(one_job_after_another),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
