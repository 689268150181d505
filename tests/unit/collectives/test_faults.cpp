// Blame: which rank, and in which words, when a rank is gone that somebody still waits for.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "collectives/communicator/communicator.h"

#include <cstring>
#include <functional>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

constexpr uint32_t alone = 0; // the one member of the job

// A job of one rank.
struct Job {
    Options options;
    Log log;
    transport::Host host{options, log, monotonic_clock()};
    engine::Agent agent{monotonic_clock(), log};
    engine::Backgrounds backgrounds{monotonic_clock()};
    std::shared_ptr<cluster::Session> session;
    std::unique_ptr<Communicator> comm;

    Job() {
        assert_int_equal(agent.open(), DTRAIN_OK);
        agent.set_stall_check(1 * ms);
        std::vector<std::unique_ptr<transport::Device>> devices;
        assert_int_equal(transport::Device::open(host, "tcp", options, devices), DTRAIN_OK);
        assert_int_equal(agent.add_device(std::move(devices[0])), DTRAIN_OK);
        cluster::SessionParams params;
        params.transports = cluster::transport_addresses(agent);
        assert_int_equal(cluster::Session::join(agent, backgrounds, options, params, session),
                         DTRAIN_OK);
        assert_int_equal(Communicator::make_world(session, 0, comm), DTRAIN_OK);
    }
};

// A receive of what is never sent, and its error after `happens`; or, with `sent`, of what comes
// afterwards.
void check_receive(const std::function<void(Communicator &)> &happens, const char *text,
                   bool sent) {
    Job job;
    engine::Agent &agent = job.agent;
    std::unique_ptr<Communicator> &comm = job.comm;
    engine::Request request;
    int32_t value = 7;
    assert_int_equal(comm->post_recv(&value, sizeof value, 0, 0,
                                     {.request = &request, .timeout_ns = 60 * second}),
                     DTRAIN_OK);
    agent.locked([&] { happens(*comm); });
    if (sent) {
        const int32_t nine = 9;
        engine::Request sending;
        assert_int_equal(comm->post_send(&nine, sizeof nine, 0, 0, {.request = &sending}),
                         DTRAIN_OK);
        agent.wait(sending, INT64_MAX);
    }
    agent.wait(request, INT64_MAX);
    if (sent) {
        assert_int_equal(request.outcome().status, DTRAIN_OK);
        assert_int_equal(value, 9);
        assert_int_equal(comm->status(), DTRAIN_ERR_PEER);
        assert_non_null(std::strstr(error_text(), text));
        return;
    }
    assert_int_equal(request.outcome().status, DTRAIN_ERR_PEER);
    assert_int_equal(request.outcome().peer, 0);
    assert_non_null(std::strstr(request.error(), text));
    assert_int_equal(value, 7);
}

void check_blame(const std::function<void(Communicator &)> &happens, const char *text) {
    check_receive(happens, text, false);
}

void a_broken_connection(void **) {
    check_blame(
        [](Communicator &c) {
            c.faults().peer_broken(alone, DTRAIN_ERR_PEER, "connection broke", true);
        },
        "rank 0 connection broke");
}

void leaving_is_the_better_explanation(void **) {
    auto leaves_then_breaks = [](Communicator &c) {
        c.faults().member_left(alone);
        c.faults().peer_broken(alone, DTRAIN_ERR_PEER, "connection broke", true);
    };
    auto breaks_then_leaves = [](Communicator &c) {
        c.faults().peer_broken(alone, DTRAIN_ERR_PEER, "connection broke", true);
        c.faults().member_left(alone);
    };
    check_blame(leaves_then_breaks, "rank 0 has left the job");
    check_blame(breaks_then_leaves, "rank 0 has left the job");
}

// What the other rank sent before it left may not have come in.
void leaving_after_a_lack_of_memory(void **) {
    auto lacks_memory_then_leaves = [](Communicator &c) {
        c.faults().peer_broken(alone, DTRAIN_ERR_NO_MEMORY, "connection broke", true);
        c.faults().member_left(alone);
    };
    auto leaves_then_lacks_memory = [](Communicator &c) {
        c.faults().member_left(alone);
        c.faults().peer_broken(alone, DTRAIN_ERR_NO_MEMORY, "connection broke", true);
    };
    constexpr const char *text = "rank 0 has left the job, and the connection to it broke before: "
                                 "out of memory";
    check_blame(lacks_memory_then_leaves, text);
    check_blame(leaves_then_lacks_memory, text);
}

// A communicator that is being made waits for one that may have given the call up.
void what_breaks_the_parent_ends_the_making(void **) {
    Job job;
    std::unique_ptr<Communicator> child;
    assert_int_equal(job.comm->duplicate(child), DTRAIN_OK);
    const auto receive = [&](engine::Request &request, int32_t &value) {
        assert_int_equal(child->post_recv(&value, sizeof value, 0, 0,
                                          {.request = &request, .timeout_ns = 60 * second}),
                         DTRAIN_OK);
    };
    engine::Request request;
    int32_t value = 7;
    receive(request, value);
    child->faults().set_parent(&job.comm->faults());
    job.agent.locked(
        [&] { job.comm->faults().failed(DTRAIN_ERR_PEER, "rank 4 lost: closed", -1, 1000); });
    job.agent.wait(request, INT64_MAX);
    assert_int_equal(request.outcome().status, DTRAIN_ERR_PEER);
    assert_non_null(std::strstr(request.error(), "rank 4 lost: closed"));
    assert_true(child->is_broken());
}

// It goes on without those of its parent that are lost.
void a_communicator_that_is_made_outlives_its_parent(void **) {
    Job job;
    std::unique_ptr<Communicator> child;
    assert_int_equal(job.comm->duplicate(child), DTRAIN_OK);
    engine::Request request;
    int32_t value = 7;
    assert_int_equal(child->post_recv(&value, sizeof value, 0, 0,
                                      {.request = &request, .timeout_ns = 2 * second}),
                     DTRAIN_OK);
    job.agent.locked(
        [&] { job.comm->faults().failed(DTRAIN_ERR_PEER, "rank 4 lost: closed", -1, 1000); });
    job.agent.wait(request, INT64_MAX);
    assert_int_equal(request.outcome().status, DTRAIN_ERR_TIMEOUT);
}

// Another rank may be done with making a communicator, and break it, before this one begins.
void a_failure_comes_before_the_group(void **) {
    Job job;
    constexpr uint64_t uid = 123457;
    constexpr int others = 200;
    std::vector<std::string> told;
    struct Listener final : cluster::Group {
        explicit Listener(std::vector<std::string> &all) : told(all) {}
        bool contains(uint32_t) const override { return false; }
        void member_lost(uint32_t, Status, const char *, bool) override {}
        void member_left(uint32_t) override {}
        void peer_broken(uint32_t, Status, const char *, bool) override {}
        void failed(Status, const char *text, int32_t, uint64_t from) override {
            told.push_back(text + std::to_string(from));
        }
        void calls_wanted() override {}
        void rank_behind(int32_t, uint64_t) override {}
        std::vector<std::string> &told;
    } group{told};
    const auto fail = [&](uint64_t which, const char *text) {
        job.session->group_failed(which, DTRAIN_ERR_ABORTED, text, 0, 5);
        job.agent.work();
    };
    fail(uid, "first ");
    fail(uid + 2, "another's ");
    job.session->add_group(uid, &group, 0);
    assert_true((told == std::vector<std::string>{"first 5"}));
    fail(uid, "second ");
    assert_true((told == std::vector<std::string>{"first 5", "second 5"}));
    job.session->remove_group(uid, &group);
    told.clear();
    // They take up so much room and no more.
    for (uint64_t i = 0; i < others; i++) fail(1000 + 2 * i, "");
    job.session->add_group(uid, &group, 0);
    assert_true(told.empty());
    job.session->remove_group(uid, &group);
}

// What another rank has sent for a group, or may have, before the connection broke.
void a_connection_that_broke_before(void **) {
    Job job;
    cluster::Session &session = *job.session;
    const auto receive = [&](const std::function<Status(std::unique_ptr<Communicator> &)> &make,
                             std::string &error) {
        std::unique_ptr<Communicator> made;
        assert_int_equal(make(made), DTRAIN_OK);
        engine::Request request;
        int32_t value = 7;
        assert_int_equal(made->post_recv(&value, sizeof value, 0, 0,
                                         {.request = &request, .timeout_ns = 2 * second}),
                         DTRAIN_OK);
        job.agent.wait(request, INT64_MAX);
        error = request.error();
        return request.outcome().status;
    };
    job.comm.reset();
    job.agent.locked([&] { session.peer_broken(alone, DTRAIN_ERR_PEER, "connection broke"); });
    assert_int_equal(session.breaks(), 1);
    std::string error;
    const auto world = [&](auto &out) { return Communicator::make_world(job.session, 0, out); };
    assert_int_equal(receive(world, error), DTRAIN_ERR_PEER);
    assert_non_null(std::strstr(error.c_str(), "cannot be reached: connection broke"));
    // Nobody can have sent anything for this one.
    std::unique_ptr<Communicator> parent;
    assert_int_equal(Communicator::make_world(job.session, 0, parent), DTRAIN_OK);
    const auto copy = [&](auto &out) { return parent->duplicate(out); };
    assert_int_equal(receive(copy, error), DTRAIN_ERR_TIMEOUT);
}

// Until this process shrinks it, too, or has no use for it any more.
void others_wait_in_a_shrink(void **) {
    Job job;
    cluster::Session &session = *job.session;
    const auto tell = [&](uint64_t uid, uint64_t from) {
        session.group_failed(uid, DTRAIN_ERR_ABORTED, "rank 1 shrinks the communicator", 1, from);
        job.agent.work();
    };
    const auto others_wait = [&] {
        bool out = false;
        job.agent.locked([&] { out = session.others_wait(); });
        return out;
    };
    const uint64_t world = job.comm->uid();
    tell(world + 2, wire::no_calls); // of no group here
    assert_false(others_wait());
    for (int i = 0; i < 2; i++) {
        tell(world, wire::no_calls);
        assert_true(others_wait());
        assert_int_equal(job.comm->status(), DTRAIN_OK);
        session.has_come(world);
        assert_false(others_wait());
    }
    tell(world, wire::no_calls);
    job.comm.reset();
    assert_false(others_wait());
}

// Others may wait for it in calls of any of them, also where the lost rank is no member.
void a_rank_that_reforms_abandons_its_groups(void **) {
    Job job;
    cluster::Session &session = *job.session;
    std::unique_ptr<Communicator> child;
    assert_int_equal(job.comm->duplicate(child), DTRAIN_OK);
    const auto lose = [&] {
        session.member_lost(5, DTRAIN_ERR_PEER, "rank 5 lost: closed", false);
        job.agent.work();
    };
    {
        const cluster::Session::Reforming reforming(session, job.comm->uid());
        assert_int_equal(job.comm->status(), DTRAIN_OK);
    }
    lose();
    assert_int_equal(job.comm->status(), DTRAIN_OK);
    {
        const cluster::Session::Reforming reforming(session, job.comm->uid());
        lose();
    }
    for (Communicator *comm : {job.comm.get(), child.get()}) {
        assert_int_equal(comm->status(), DTRAIN_ERR_PEER);
        assert_non_null(std::strstr(error_text(), "rank 5 lost: closed; rank 0 waits in reform()"));
    }
}

// Nothing more comes, or what is on its way still does.
void a_lost_rank(void **) {
    auto ends = [](Communicator &c) {
        c.faults().member_lost(alone, DTRAIN_ERR_PEER, "rank 0 lost: closed", false);
    };
    auto is_silent = [](Communicator &c) {
        c.faults().member_lost(alone, DTRAIN_ERR_PEER, "rank 0 lost: silent", true);
    };
    check_blame(ends, "rank 0 lost: closed");
    check_blame(is_silent, "rank 0 lost: silent");
    check_receive(ends, "rank 0 lost: closed", true);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_connection),
        cmocka_unit_test(leaving_is_the_better_explanation),
        cmocka_unit_test(leaving_after_a_lack_of_memory),
        cmocka_unit_test(what_breaks_the_parent_ends_the_making),
        cmocka_unit_test(a_communicator_that_is_made_outlives_its_parent),
        cmocka_unit_test(a_failure_comes_before_the_group),
        cmocka_unit_test(a_connection_that_broke_before),
        cmocka_unit_test(others_wait_in_a_shrink),
        cmocka_unit_test(a_rank_that_reforms_abandons_its_groups),
        cmocka_unit_test(a_lost_rank),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
