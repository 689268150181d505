// Creates and destroys communicators. See also communicator_group.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/names.h"
#include "collectives/communicator/communicator.h"
#include "collectives/communicator/rails.h"
#include "collectives/communicator/setup.h"
#include "collectives/communicator/tune.h"
#include "collectives/communicator/unmade.h"
#include "engine/tag.h"

#include <algorithm>
#include <optional>
#include <string>

namespace dtrain::collectives {
namespace {

uint64_t derived_uid(uint64_t parent, uint64_t seq) {
    uint64_t h = (parent * 0x9e3779b97f4a7c15u) ^ (seq + 0x7f4a7c15u);
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return (h ^ h >> 32) | 1u << 1; // never equals the world's
}

Status take_choices(const Setup &setup, std::optional<Algorithm> &forced) {
    if (Status s = check_rules(setup); s != DTRAIN_OK) return s;
    return find_forced(setup, forced);
}

} // namespace

Communicator::Communicator(std::shared_ptr<cluster::Session> session, Membership &&ranks)
    : session_(std::move(session)), agent_(session_->agent()), ranks_(std::move(ranks)),
      topology_(find_topology()), order_(ranks_.uid), faults_(*session_, ranks_, order_, times_),
      memory_(*session_, ranks_, faults_), ways_(ranks_, memory_),
      compared_(session_->options().number("verify") != 0
                    ? uint64_t(session_->options().number("verify.results"))
                    : 0) {}

Topology Communicator::find_topology() const {
    std::vector<std::string> hosts, locations;
    for (uint32_t member : ranks_.members) {
        hosts.push_back(session_->job().members()[member].host);
        locations.push_back(session_->job().members()[member].location);
    }
    return Topology::of(hosts, locations);
}

Communicator::~Communicator() {
    session_->remove_group(ranks_.uid, &faults_);
    faults_.cancel("the communicator was destroyed");
    // The transports withdraw pending operations, if necessary by dropping the connection.
    agent_.wait_until([&] { return faults_.is_idle(); }, INT64_MAX);
    if (times_.explainer != nullptr && memory_.window() != nullptr)
        times_.explainer->tell_distance(memory_.window()->writes());
    session_->drop_messages(ranks_.tag_id);
    agent_.locked([&] { memory_.close(); });
    session_->tags().free(ranks_.tag_id);
}

Status Communicator::make(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                          uint64_t uid, uint32_t tag_id, uint64_t breaks_before,
                          int64_t deadline_ns, std::unique_ptr<Communicator> &out,
                          const Faults *parent) {
    if (members.size() > engine::max_ranks) {
        session->tags().free(tag_id);
        return fail(DTRAIN_ERR_LIMIT,
                    "a communicator of %zu ranks is too large; the maximum is %u ranks",
                    members.size(), engine::max_ranks);
    }
    const uint32_t self = session->self();
    std::unique_ptr<Communicator> made(
        new Communicator(std::move(session), {std::move(members), self, uid, tag_id}));
    made->session_->add_group(uid, &made->faults_, breaks_before);
    made->faults_.set_parent(parent);
    if (Status s = made->set_up(deadline_ns); s != DTRAIN_OK) return s;
    made->faults_.set_parent(nullptr);
    out = std::move(made);
    return DTRAIN_OK;
}

Status Communicator::make_world(std::shared_ptr<cluster::Session> session, int64_t timeout_ns,
                                std::unique_ptr<Communicator> &out) {
    std::vector<uint32_t> workers(session->workers());
    for (uint32_t r = 0; r < workers.size(); r++) workers[r] = r;
    session->tags().take_world();
    const int64_t deadline_ns = session->deadline(timeout_ns);
    Status s = make(std::move(session), std::move(workers), world_uid, 0, 0, deadline_ns, out);
    if (s != DTRAIN_OK) return s;
    out->is_world_ = true;
    if (out->session_->identity().generation == 0 || out->size() == 1) return DTRAIN_OK;
    s = out->enter_generation(deadline_ns);
    if (s == DTRAIN_OK) return DTRAIN_OK;
    s = fail_within(s, "making a communicator of %d ranks", out->size());
    out.reset();
    return s;
}

// Of an elastic job's later generation. A member of the last one that has passed the first barrier
// does not go back to it, whatever comes. A newcomer is in this generation once it has passed the
// second one, as nobody else goes back then: without it, some might give up in the first barrier
// when their time is over, and the newcomers that had passed it would go on as a second job.
Status Communicator::enter_generation(int64_t deadline_ns) {
    if (Status s = run_until({.kind = Kind::barrier}, deadline_ns); s != DTRAIN_OK) return s;
    const Status s = run_until({.kind = Kind::barrier}, deadline_ns);
    const bool is_newcomer = session_->entry() != nullptr;
    return is_newcomer ? s : DTRAIN_OK; // the next call tells of a failure
}

// ---- set-up: rank 0 decides what must be equal on all ranks ----

// The error names ranks of this communicator, which its caller does not have yet, and may not know.
Status Communicator::set_up_failed(Status status) const {
    const std::string who =
        ranks_.uid == world_uid
            ? std::to_string(size()) + " ranks"
            : cluster::member_list(ranks_.ids, int32_t(session_->workers())) + " of the job";
    return fail_within(status, "making a communicator of %s", who.c_str());
}

Status Communicator::set_up(int64_t deadline_ns) {
    Setup setup = {};
    if (ranks_.rank == 0) {
        setup = offer(*session_, ranks_, topology_);
        memory_.offer(setup);
    }
    // With so many ranks any model chooses a tree for the broadcast; barriers need its connections,
    // too. With fewer ranks all need a connection to rank 0 anyway.
    if (uint32_t(size()) > max_window_ranks)
        set_choice({.latency_ns = 1, .overhead_ns = 1}, std::nullopt);
    if (size() > 1)
        if (Status s = run_until(
                {.kind = Kind::broadcast, .recv = &setup, .count = sizeof setup, .root = 0},
                deadline_ns);
            s != DTRAIN_OK)
            return set_up_failed(s);
    if (ranks_.uid == world_uid && size() > 1 && session_->has_rails())
        if (Status s = check_rails(*this, deadline_ns); s != DTRAIN_OK) return s;
    // A rank's own option wins; its devices already use it.
    if (ranks_.uid == world_uid && setup.eager_bytes != 0 &&
        session_->options().number("eager.bytes") < 0)
        limit_eager(*this, setup.eager_bytes);
    std::optional<Algorithm> forced;
    if (Status s = take_choices(setup, forced); s != DTRAIN_OK) {
        const std::string text = error_text();
        faults_.give_up(s, text.c_str());
        return fail(s, "%s", text.c_str());
    }
    set_limits({setup.exchange_bytes, setup.chunk_bytes, forced.has_value()});
    set_choice(setup.model, forced);
    if (size() > 1 && setup.window_bytes != 0)
        if (Status s = open_window(setup, deadline_ns); s != DTRAIN_OK) return set_up_failed(s);
    if (setup.adapts != 0 && size() > 1 && !forced)
        times_.adaptation = std::make_unique<Adaptation>(setup.model);
    if (ranks_.rank == 0 && session_->options().number("explain") != 0)
        times_.explainer = std::make_unique<Explainer>(
            agent_.log(),
            Explainer::Rules{size(), setup.chunk_bytes, setup.model, forced, &topology_});
    return DTRAIN_OK;
}

// All ranks use the window, or none does.
Status Communicator::open_window(const Setup &setup, int64_t deadline_ns) {
    uint8_t good = memory_.open(setup, deadline_ns) == DTRAIN_OK ? 1 : 0, all = 0;
    // These two calls still use messages, through rank 0, to which all ranks are connected by now.
    Status s = run_until({.kind = Kind::reduce,
                          .send = &good,
                          .recv = &all,
                          .count = 1,
                          .op = DTRAIN_MIN,
                          .root = 0},
                         deadline_ns);
    if (s == DTRAIN_OK)
        s = run_until({.kind = Kind::broadcast, .recv = &all, .count = 1, .root = 0}, deadline_ns);
    if (s != DTRAIN_OK || all != 1) {
        agent_.locked([&] { memory_.close(); });
        return s;
    }
    memory_.use();
    const Turn turn = order_.begin();
    ways_.forget(turn);
    return DTRAIN_OK;
}

// ---- from other communicators ----

// Finds a tag that is free on all ranks, and takes it on those that join. Another thread may be
// taking the same tag for another communicator that shares some of the ranks. Then neither gets it,
// and both retry, each in its own sequence of tags. It begins anywhere, since messages of the group
// that has used a tag last may still be on their way.
Status Communicator::take_common_tag(bool joins, int64_t deadline_ns, uint32_t &tag) {
    for (;;) {
        cluster::TagSet mine = session_->tags().used(), used{};
        std::vector<cluster::TagSet> all(ranks_.members.size());
        Status s = run_until(
            {.kind = Kind::allgather, .send = &mine, .recv = all.data(), .count = sizeof mine},
            deadline_ns);
        if (s != DTRAIN_OK) return s;
        for (const cluster::TagSet &tags : all)
            for (size_t i = 0; i < used.size(); i++) used[i] |= tags[i];
        const uint64_t first = derived_uid(ranks_.uid, order_.last()) >> 16;
        uint64_t tried = 0;
        auto taken = [&] { return (used[tag / 64] >> tag % 64 & 1) != 0; };
        do tag = uint32_t((first + tried++) % cluster::group_tags);
        while (taken() && tried < cluster::group_tags);
        if (taken())
            return fail(DTRAIN_ERR_LIMIT, "there are %zu communicators already; destroy some",
                        cluster::group_tags);
        bool have = joins && session_->tags().take(tag);
        int32_t good = have || !joins ? 1 : 0, all_good = 0;
        s = run_until({.kind = Kind::allreduce,
                       .send = &good,
                       .recv = &all_good,
                       .count = 1,
                       .dtype = DTRAIN_I32,
                       .op = DTRAIN_MIN},
                      deadline_ns);
        if (s == DTRAIN_OK && all_good == 1) return DTRAIN_OK;
        if (have) session_->tags().free(tag);
        if (s != DTRAIN_OK) return s;
    }
}

Status Communicator::split(int32_t color, int32_t key, std::unique_ptr<Communicator> &out) {
    return split_until(color, key, deadline(0), out);
}

Status Communicator::split_until(int32_t color, int32_t key, int64_t deadline_ns,
                                 std::unique_ptr<Communicator> &out) {
    struct Wish {
        int32_t color, key;
    };
    const uint64_t breaks_before = session_->breaks();
    Wish mine = {color, key};
    std::vector<Wish> all(ranks_.members.size());
    if (Status s = run_until(
            {.kind = Kind::allgather, .send = &mine, .recv = all.data(), .count = sizeof mine},
            deadline_ns);
        s != DTRAIN_OK)
        return fail_within(s, "split");
    const uint64_t seq = order_.last();
    std::vector<uint32_t> ranks;
    for (uint32_t r = 0; r < all.size(); r++)
        if (all[r].color == color) ranks.push_back(r);
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
    for (uint32_t &r : ranks) r = ranks_.members[r];
    const uint64_t uid = derived_uid(ranks_.uid, seq) ^ uint64_t(uint32_t(color)) << 20;
    std::optional<Unmade> unmade;
    if (color >= 0)
        unmade.emplace(*session_, uid, std::vector<int32_t>(ranks.begin(), ranks.end()));
    uint32_t tag = 0;
    if (Status s = take_common_tag(color >= 0, deadline_ns, tag); s != DTRAIN_OK)
        return fail_within(s, "split");
    out.reset();
    if (color < 0) return DTRAIN_OK;
    const Status s =
        make(session_, std::move(ranks), uid, tag, breaks_before, deadline_ns, out, &faults_);
    if (s == DTRAIN_OK) unmade->made();
    return s;
}

Status Communicator::duplicate(std::unique_ptr<Communicator> &out) {
    return duplicate_until(deadline(0), out);
}

Status Communicator::duplicate_until(int64_t deadline_ns, std::unique_ptr<Communicator> &out) {
    return split_until(0, int32_t(ranks_.rank), deadline_ns, out);
}

} // namespace dtrain::collectives
