// Creates and destroys communicators.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"
#include "collectives/communicator/plan_cache.h"
#include "collectives/window/window_exchange.h"
#include "engine/tag.h"

#include <algorithm>
#include <cstring>

namespace dtrain::collectives {
namespace {

constexpr uint64_t world_uid = 1;
// Limit of a window's size, because each rank maps all of it at the start.
constexpr uint64_t largest_window = 16 << 20;
// Piece size of transports that write into the peer's memory
constexpr uint64_t written_chunk = 1 << 20;
constexpr int64_t window_patience = 30 * second;

// A transport's latency and bandwidth for one message between two ranks with a core each.
struct Reach {
    double latency_ns = 0, ns_per_byte = 0;

    void slow_down_to(const dtrain_tp_attr_t &attr, bool is_remote, uint32_t rails) {
        slow_down(attr.latency_ns, attr.bandwidth_bps, rails);
        if (is_remote) slow_down(attr.remote_latency_ns, attr.remote_bandwidth_bps, rails);
    }
    void slow_down(uint64_t latency, uint64_t bandwidth_bps, uint32_t rails) {
        latency_ns = std::max(latency_ns, double(latency));
        if (bandwidth_bps > 0)
            ns_per_byte = std::max(ns_per_byte, 1e9 / double(bandwidth_bps) / rails);
    }
    double overhead_ns() const {
        return std::min(latency_ns * 3 / 8, 2500.0); // overhead is at most that of system calls
    }
};

NetworkModel network_model(const Reach &far, const Reach &near, uint32_t ranks_per_core) {
    // Processor work takes longer when ranks share cores; on one host that includes sending.
    const double shared = ranks_per_core;
    return {.latency_ns = far.latency_ns - 2 * far.overhead_ns(),
            .overhead_ns = far.overhead_ns() * shared,
            .ns_per_byte = far.ns_per_byte * shared,
            .reduce_ns_per_byte = 0.04 * shared,
            .copy_ns_per_byte = 0.03 * shared,
            .host_latency_ns = near.latency_ns - 2 * near.overhead_ns(),
            .host_overhead_ns = near.overhead_ns() * shared,
            .host_ns_per_byte = near.ns_per_byte * shared,
            .ranks_per_core = shared};
}

uint64_t derived_uid(uint64_t parent, uint64_t seq) {
    uint64_t h = (parent * 0x9e3779b97f4a7c15u) ^ (seq + 0x7f4a7c15u);
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return (h ^ h >> 32) | 1u << 1; // never equals world_uid
}

} // namespace

Communicator::Communicator(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                           uint64_t uid, uint32_t tag_id)
    : session_(std::move(session)), agent_(session_->agent()), members_(std::move(members)),
      member_ids_(members_.begin(), members_.end()), uid_(uid), tag_id_(tag_id),
      topology_(find_topology()),
      // Starts from uid, so that leftover messages of an earlier communicator with this tag do not
      // match.
      fingerprint_(uid), plans_(std::make_unique<PlanCache>()), gone_(members_.size()),
      failed_(members_.size()) {
    auto me = std::find(members_.begin(), members_.end(), session_->self());
    rank_ = uint32_t(me - members_.begin());
}

Topology Communicator::find_topology() const {
    std::vector<std::string> hosts, locations;
    for (uint32_t member : members_) {
        hosts.push_back(session_->job().members()[member].host);
        locations.push_back(session_->job().members()[member].location);
    }
    return Topology::of(hosts, locations);
}

Communicator::~Communicator() {
    session_->remove_group(uid_, this);
    auto empty = [&] {
        bool none = false;
        agent_.locked([&] { none = in_flight_.empty(); });
        return none;
    };
    agent_.locked(
        [&] { break_with(DTRAIN_ERR_CANCELED, -1, "the communicator was destroyed", 0); });
    // The transports withdraw pending operations, if necessary by dropping the connection.
    while (!empty())
        if (agent_.work() == 0) sched_yield();
    agent_.locked([&] {
        session_->mesh().purge(engine::make_tag(tag_id_, 0, engine::TagClass::collective, 0),
                               engine::group_mask);
        peer_memory_.reset();
        window_.reset();
        opening_.reset();
    });
    session_->free_tag(tag_id_);
}

Status Communicator::make(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                          uint64_t uid, uint32_t tag_id, int64_t deadline_ns,
                          std::unique_ptr<Communicator> &out) {
    if (members.size() > engine::max_ranks) {
        session->free_tag(tag_id);
        return fail(DTRAIN_ERR_LIMIT,
                    "a communicator of %zu ranks is too large; the maximum is %u ranks",
                    members.size(), engine::max_ranks);
    }
    std::unique_ptr<Communicator> made(
        new Communicator(std::move(session), std::move(members), uid, tag_id));
    made->session_->add_group(uid, made.get());
    if (Status s = made->set_up(deadline_ns); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

Status Communicator::make_world(std::shared_ptr<cluster::Session> session, int64_t timeout_ns,
                                std::unique_ptr<Communicator> &out) {
    std::vector<uint32_t> workers(session->workers());
    for (uint32_t r = 0; r < workers.size(); r++) workers[r] = r;
    session->take_tag(0); // the world is the first communicator
    const int64_t deadline_ns = session->deadline(timeout_ns);
    Status s = make(std::move(session), std::move(workers), world_uid, 0, deadline_ns, out);
    if (s == DTRAIN_OK) out->is_world_ = true;
    return s;
}

// ---- set-up: rank 0 decides what must be equal on all ranks ----

Status Communicator::set_up(int64_t deadline_ns) {
    Setup setup = {};
    if (rank_ == 0) offer(setup);
    // With so many ranks any model chooses a tree for the broadcast; barriers need its connections,
    // too. With fewer ranks all need a connection to rank 0 anyway.
    if (uint32_t(size()) > max_window_ranks)
        plans_->set_choice({.latency_ns = 1, .overhead_ns = 1}, std::nullopt);
    if (size() > 1)
        if (Status s = run_until(
                {.kind = Kind::broadcast, .recv = &setup, .count = sizeof setup, .root = 0},
                deadline_ns);
            s != DTRAIN_OK)
            return fail_within(s, "making a communicator of %d ranks", size());
    if (uid_ == world_uid && size() > 1 && session_->has_rails())
        if (Status s = check_rails(deadline_ns); s != DTRAIN_OK) return s;
    // A rank's own option wins; its devices already use it.
    if (uid_ == world_uid && setup.eager_bytes != 0 &&
        session_->options().number("eager.bytes") < 0)
        limit_eager(setup.eager_bytes);
    chunk_bytes_ = setup.chunk_bytes;
    agent_.locked([&] { session_->staging().widen(chunk_bytes_); });
    exchange_bytes_ = setup.exchange_bytes;
    allreduce_by_messages_ = setup.algorithm >= 0;
    std::optional<Algorithm> forced;
    if (allreduce_by_messages_) forced = Algorithm(setup.algorithm);
    plans_->set_choice(setup.model, forced);
    prepared_.is_valid = false;
    if (size() > 1 && setup.window_bytes != 0)
        if (Status s = open_window(setup, deadline_ns); s != DTRAIN_OK) return s;
    if (setup.adapts != 0 && size() > 1 && !forced)
        adaptation_ = std::make_unique<Adaptation>(setup.model);
    if (rank_ == 0 && session_->options().number("explain") != 0)
        explainer_ = std::make_unique<Explainer>(
            agent_.log(), Explainer::Rules{size(), chunk_bytes_, setup.model, forced, &topology_});
    return DTRAIN_OK;
}

void Communicator::offer(Setup &setup) {
    const Options &options = session_->options();
    engine::Mesh &mesh = session_->mesh();
    setup.chunk_bytes = usual_chunk;
    setup.algorithm = -1;
    setup.adapts = int32_t(options.number("tuning.adapt"));
    Algorithm algorithm; // "auto" and "window" parse to none: no algorithm over messages
    if (parse_algorithm(options.text("allreduce.algorithm"), algorithm))
        setup.algorithm = int32_t(algorithm);
    transport::Device *device = mesh.device(members_[0]);
    bool same = true;
    Reach far, near; // the slowest transport counts
    const std::string &own_host = session_->job().members()[session_->self()].host;
    for (size_t r = 0; r < members_.size(); r++) {
        const dtrain_tp_attr_t &attr = mesh.device(members_[r])->attr();
        same = same && mesh.device(members_[r]) == device;
        const bool is_remote = session_->job().members()[members_[r]].host != own_host;
        const uint32_t rails = mesh.rails(members_[r]);
        far.slow_down_to(attr, is_remote, rails);
        // Transports that write into the peer's memory wait for each message's target address, so
        // pieces are larger; but there must be pieces for all rails.
        if (mesh.device(members_[r])->has(DTRAIN_TP_CAP_PUT))
            setup.chunk_bytes = std::max(setup.chunk_bytes, written_chunk / rails);
        if (topology_.levels() > 0 && topology_.group(0, int32_t(r)) == topology_.group(0, 0))
            near.slow_down_to(attr, is_remote, rails);
    }
    setup.model = network_model(far, near, session_->ranks_per_core());
    setup.exchange_bytes = WindowExchange::default_allreduce_bytes;
    apply_tuning(setup);
    if (const int64_t chunk = options.number("chunk.bytes"); chunk > 0)
        setup.chunk_bytes = uint64_t(chunk);
    if (size() == 1 || uint32_t(size()) > max_window_ranks || !same ||
        !device->has(DTRAIN_TP_CAP_WINDOW) ||
        device->attr().window_handle_len > sizeof setup.handle)
        return;
    uint64_t bytes =
        std::min(uint64_t(options.number("window.bytes")), largest_window / uint64_t(size()));
    Status s = DTRAIN_OK;
    agent_.locked(
        [&] { s = Window::create(*device, uint32_t(size()), bytes, setup.handle, opening_); });
    if (s == DTRAIN_OK)
        setup.window_bytes = bytes;
    else
        agent_.log().write(DTRAIN_LOG_WARN,
                           "no shared memory for a communicator of %d ranks, "
                           "messages are used instead: %s",
                           size(), error_text());
}

Status Communicator::attach_window(const Setup &setup, int64_t deadline_ns) {
    transport::Device *device = session_->mesh().device(members_[0]);
    Status s = DTRAIN_ERR_BUSY;
    auto attached = [&] {
        if (is_broken()) return true;
        agent_.locked([&] {
            if (gone_[0].known) {
                s = fail(DTRAIN_ERR_PEER, "%s", gone_[0].why.c_str());
                return;
            }
            dtrain_tp_ep_t *creator = nullptr;
            s = session_->mesh().endpoint(members_[0], creator);
            if (s == DTRAIN_OK)
                s = Window::attach(*device, creator, setup.handle, uint32_t(size()), rank_,
                                   setup.window_bytes, opening_);
        });
        return s != DTRAIN_ERR_BUSY;
    };
    agent_.wait_until(attached, deadline_ns);
    if (s != DTRAIN_ERR_BUSY) return s;
    if (is_broken()) return faulty();
    return fail(DTRAIN_ERR_TIMEOUT, "rank 0 did not share its memory in time");
}

// All ranks use the window, or none does.
Status Communicator::open_window(const Setup &setup, int64_t deadline_ns) {
    Status mine = DTRAIN_OK;
    if (rank_ != 0) {
        // Messages work without a window. Waiting only half of the time leaves the other half for
        // agreeing on that.
        const int64_t now_ns = agent_.clock().now_ns();
        mine = attach_window(setup, now_ns + std::min(window_patience, (deadline_ns - now_ns) / 2));
    }
    if (mine != DTRAIN_OK)
        agent_.log().write(
            DTRAIN_LOG_WARN,
            "rank %u could not attach to the shared memory, messages are used instead: %s", rank_,
            error_text());
    engine::Mesh &mesh = session_->mesh();
    if (mine == DTRAIN_OK)
        peer_memory_ =
            std::make_unique<PeerMemory>(*mesh.device(members_[0]), mesh, members_, *opening_,
                                         rank_, session_->options().text("shm.copy") != "ring");
    uint8_t good = mine == DTRAIN_OK ? 1 : 0, all = 0;
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
        agent_.locked([&] {
            peer_memory_.reset();
            opening_.reset();
        });
        return s;
    }
    window_ = std::move(opening_);
    prepared_.is_valid = false;
    return DTRAIN_OK;
}

// ---- from other communicators ----

// Finds a tag that is free on all ranks, and takes it on those that join. Another thread may be
// taking the same tag for another communicator that shares some of the ranks. Then neither gets it,
// and both retry, each in its own sequence of tags.
Status Communicator::take_common_tag(bool joins, int64_t deadline_ns, uint32_t &tag) {
    for (uint64_t attempt = 0;; attempt++) {
        cluster::TagSet mine = session_->used_tags(), used{};
        std::vector<cluster::TagSet> all(members_.size());
        Status s = run_until(
            {.kind = Kind::allgather, .send = &mine, .recv = all.data(), .count = sizeof mine},
            deadline_ns);
        if (s != DTRAIN_OK) return s;
        for (const cluster::TagSet &tags : all)
            for (size_t i = 0; i < used.size(); i++) used[i] |= tags[i];
        uint64_t first = attempt == 0 ? 0 : derived_uid(uid_, attempt), tried = 0;
        auto taken = [&] { return (used[tag / 64] >> tag % 64 & 1) != 0; };
        do tag = uint32_t((first + tried++) % cluster::group_tags);
        while (taken() && tried < cluster::group_tags);
        if (taken())
            return fail(DTRAIN_ERR_LIMIT, "there are %zu communicators already; destroy some",
                        cluster::group_tags);
        bool have = joins && session_->take_tag(tag);
        int32_t good = have || !joins ? 1 : 0, all_good = 0;
        s = run_until({.kind = Kind::allreduce,
                       .send = &good,
                       .recv = &all_good,
                       .count = 1,
                       .dtype = DTRAIN_I32,
                       .op = DTRAIN_MIN},
                      deadline_ns);
        if (s == DTRAIN_OK && all_good == 1) return DTRAIN_OK;
        if (have) session_->free_tag(tag);
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
    Wish mine = {color, key};
    std::vector<Wish> all(members_.size());
    if (Status s = run_until(
            {.kind = Kind::allgather, .send = &mine, .recv = all.data(), .count = sizeof mine},
            deadline_ns);
        s != DTRAIN_OK)
        return fail_within(s, "split");
    uint64_t seq;
    {
        std::lock_guard order(order_);
        seq = seq_;
    }
    uint32_t tag = 0;
    if (Status s = take_common_tag(color >= 0, deadline_ns, tag); s != DTRAIN_OK)
        return fail_within(s, "split");
    out.reset();
    if (color < 0) return DTRAIN_OK;
    std::vector<uint32_t> ranks;
    for (uint32_t r = 0; r < all.size(); r++)
        if (all[r].color == color) ranks.push_back(r);
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](uint32_t a, uint32_t b) { return all[a].key < all[b].key; });
    for (uint32_t &r : ranks) r = members_[r];
    uint64_t uid = derived_uid(uid_, seq) ^ uint64_t(uint32_t(color)) << 20;
    return make(session_, std::move(ranks), uid, tag, deadline_ns, out);
}

Status Communicator::duplicate(std::unique_ptr<Communicator> &out) {
    return duplicate_until(deadline(0), out);
}

Status Communicator::duplicate_until(int64_t deadline_ns, std::unique_ptr<Communicator> &out) {
    return split_until(0, int32_t(rank_), deadline_ns, out);
}

Status Communicator::shrink(std::unique_ptr<Communicator> &out) {
    const int64_t deadline_ns = deadline(0);
    // Breaks the old communicator, so that no rank keeps waiting in it.
    agent_.locked([&] {
        const uint64_t open = first_open();
        if (break_with(DTRAIN_ERR_ABORTED, int32_t(rank_), "a rank shrinks the communicator", 0))
            tell_others(open);
    });
    cluster::ShrinkResult result;
    if (Status s = session_->job().shrink(uid_, member_ids_, session_->used_tags(),
                                          timeout_until(deadline_ns), result);
        s != DTRAIN_OK)
        return s;
    if (!session_->take_tag(result.tag_id))
        return fail(DTRAIN_ERR_BUSY, "shrink: another thread made a communicator at the same time");
    std::vector<uint32_t> members(result.survivors.begin(), result.survivors.end());
    return make(session_, std::move(members), result.group, result.tag_id, deadline_ns, out);
}

} // namespace dtrain::collectives
