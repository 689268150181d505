// Makes calls on a communicator: keeps their order, chooses the way and posts them. See also
// communicator_create.cpp and faults.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"
#include "dtrain.h"

#include "base/uncancelled.h"

#include "collectives/communicator/scaled_call.h"
#include "collectives/communicator/wide_average.h"
#include "collectives/schedule/comparison.h"
#include "collectives/window/window_allreduce.h"
#include "collectives/window/window_exchange.h"
#include "collectives/window/window_transfer.h"
#include "engine/tag.h"

#include <algorithm>
#include <new>
#include <utility>

namespace dtrain::collectives {
namespace {

// Factor on the time to wait in the caller's thread. In shared memory the other ranks finish sooner
// than a sleeping thread would wake up. Over messages, a yielding thread would take more time from
// them than that.
constexpr int64_t inline_patience = 4;

} // namespace

int64_t Communicator::deadline(int64_t timeout_ns) const { return session_->deadline(timeout_ns); }

int64_t Communicator::timeout_until(int64_t deadline_ns) const {
    return session_->timeout_until(deadline_ns);
}

inline Status Communicator::ticket(const Turn &turn, const cluster::CallRecord &record,
                                   Ticket &out) {
    if (faults_.fails(order_.next(turn))) return faults_.error();
    out = order_.take(turn, record);
    return DTRAIN_OK;
}

Status Communicator::note_call(cluster::CallRecord record) {
    const Turn turn = order_.begin();
    Ticket ignored;
    return ticket(turn, record, ignored);
}

void Communicator::set_limits(const Limits &limits) {
    agent_.locked([&] { session_->staging().widen(limits.chunk_bytes); });
    const Turn turn = order_.begin();
    ways_.set_limits(turn, limits);
}

void Communicator::set_choice(const NetworkModel &model, std::optional<Algorithm> forced) {
    const Turn turn = order_.begin();
    ways_.set_choice(turn, model, forced);
}

// For calls that read their input at once.
Status Communicator::pass_gate(const CallOptions &options) const {
    engine::Gate *gate = std::exchange(options.request->gate, nullptr);
    return gate == nullptr ? Status{DTRAIN_OK} : gate->wait(deadline(options.timeout_ns));
}

Status Communicator::post(const Call &call, const CallOptions &options) {
    if (options.scaling != nullptr) [[unlikely]] {
        const Status s = pass_gate(options);
        return s == DTRAIN_OK ? post_scaled(*this, call, options) : s;
    }
    Turn turn = order_.begin();
    Prepared &prepared = ways_.last(turn);
    if (Status s = ways_.prepare(turn, call, prepared); s != DTRAIN_OK) return s;
    return post_prepared(prepared, options, turn);
}

Status Communicator::post_prepared(Prepared &prepared, const CallOptions &options, Turn &turn) {
    if (times_.adaptation == nullptr || !agrees_first(prepared)) [[likely]]
        return post_ticketed(prepared, options, turn);
    const int64_t deadline_ns = deadline(options.timeout_ns);
    if (Status s = adapt(prepared, deadline_ns, turn); s != DTRAIN_OK) return s;
    CallOptions rest = options;
    rest.timeout_ns = timeout_until(deadline_ns);
    return post_ticketed(prepared, rest, turn);
}

Status Communicator::post_ticketed(Prepared &prepared, const CallOptions &options, Turn &turn) {
    if (prepared.way == Way::wide_average) [[unlikely]] {
        // A copy, because posting the sum may replace it.
        const Prepared average = prepared; // NOLINT(performance-unnecessary-copy-initialization)
        turn.end();
        return post_wide_average(*this, average, options);
    }
    Ticket mine;
    if (Status s = ticket(turn, prepared.record, mine); s != DTRAIN_OK) return s;
    if (prepared.way == Way::schedule) return post_schedule(prepared, options, mine, turn);
    return post_window(prepared, options, mine, turn);
}

Status Communicator::prepare_persistent(const Call &call, Prepared &out) {
    out.call = call;
    const uint64_t **arrays[] = {&out.call.counts, &out.call.displs, &out.call.recv_counts,
                                 &out.call.recv_displs};
    out.arrays.reserve(ranks_.members.size() * std::size(arrays)); // so that no array moves
    for (const uint64_t **array : arrays) {
        if (!call.ragged || *array == nullptr) continue;
        size_t first = out.arrays.size();
        out.arrays.insert(out.arrays.end(), *array, *array + ranks_.members.size());
        *array = out.arrays.data() + first;
    }
    const Call kept = out.call;
    const Turn turn = order_.begin();
    if (Status s = ways_.prepare(turn, kept, out); s != DTRAIN_OK) return s;
    out.is_valid = true;
    return DTRAIN_OK;
}

Status Communicator::post(Prepared &prepared, const CallOptions &options) {
    if (options.scaling != nullptr) {
        const Status s = pass_gate(options);
        return s == DTRAIN_OK ? post_scaled(*this, prepared.call, options) : s;
    }
    Turn turn = order_.begin();
    return post_prepared(prepared, options, turn);
}

void Communicator::hand_over(engine::Operation *operation, const CallOptions &options) {
    const Uncancelled uncancelled;
    operation->priority = options.priority;
    operation->due_ns = options.due_ns;
    if (options.inside) return agent_.post_inside(operation);
    agent_.post(operation, options.blocking || options.awaited);
    if (options.blocking) agent_.wait(*options.request, INT64_MAX);
}

// ---- in shared memory ----

Status Communicator::post_window(const Prepared &prepared, const CallOptions &options,
                                 const Ticket &mine, Turn &turn) {
    const Way way = prepared.way;
    const Call &call = prepared.call;
    const WindowCall w = {.window = memory_.window(),
                          .spec = prepared.spec,
                          .send = call.send,
                          .recv = call.recv,
                          .dtype = call.dtype,
                          .op = call.op,
                          .fingerprint = mine.fingerprint,
                          .number = memory_.next_call(turn),
                          .position =
                              memory_.window()->reserve(prepared.block_bytes, prepared.blocks),
                          .ring_bytes = prepared.block_bytes * prepared.blocks,
                          .result_bytes = prepared.result_bytes,
                          .group = ranks_.tag_id};
    turn.end();
    switch (way) {
    case Way::exchange: return run_window<WindowExchange>(w, options, mine);
    case Way::allreduce: return run_bulk<WindowAllreduce>(w, options, mine);
    default: return run_bulk<WindowTransfer>(w, options, mine);
    }
}

template <class Bulk>
Status Communicator::run_bulk(const WindowCall &w, const CallOptions &options, const Ticket &mine) {
    SharedBuffers shared;
    if (options.registry != nullptr)
        shared = Bulk::find_shared(*options.registry, memory_.peers().device(), w.spec, w.send,
                                   w.recv, *options.request);
    return run_window<Bulk>(w, options, mine, shared, memory_.peers());
}

template <class Operation, class... Args>
Status Communicator::run_window(const WindowCall &w, const CallOptions &options, const Ticket &mine,
                                Args &...args) {
    auto go = [&](Operation &operation) {
        operation.sequence = mine.seq;
        operation.begun_ns = begun();
        if ((options.blocking || options.awaited) && run_inline(operation)) {
            if (operation.begun_ns != 0) note_end(operation);
            operation.dispose();
            options.request->complete({.bytes = w.result_bytes});
            return DTRAIN_OK;
        }
        operation.time_limit_ns = session_->time_limit(options.timeout_ns);
        hand_over(&operation, options);
        return DTRAIN_OK;
    };
    if (!options.blocking)
        return go(*new (*options.request) Operation(options.request, w, args..., faults_, false));
    // A blocking call needs no heap memory: it is over when this function returns.
    Operation operation(options.request, w, args..., faults_, true);
    return go(operation);
}

// Records a window operation that its caller has run to the end without the agent.
void Communicator::note_end(const WindowOperation &operation) {
    agent_.record(operation, {});
    if (times_.explainer != nullptr)
        times_.explainer->ended(operation, agent_.clock().now_ns() - operation.begun_ns);
}

// The fast path: takes no lock and involves no other thread while the other ranks are about as
// fast.
bool Communicator::run_inline(WindowOperation &operation) {
    if (operation.gate != nullptr) [[unlikely]]
        return false;
    engine::WaitPolicy policy = agent_.policy();
    policy.yield_ns *= inline_patience;
    engine::Idle idle(policy);
    for (;;) {
        switch (operation.step()) {
        case WindowOperation::Step::done: return true;
        case WindowOperation::Step::mismatch:
        case WindowOperation::Step::needs_lock:
        case WindowOperation::Step::broken: return false;
        case WindowOperation::Step::moved: idle.reset(); break;
        case WindowOperation::Step::idle:
            if (faults_.fails(operation.sequence, std::memory_order_relaxed) || !idle.pass())
                return false;
        }
    }
}

// ---- over messages ----

// True when a shape's algorithms have been tried often enough, so that the ranks must agree on the
// times first. It is true before the same call on all ranks.
bool Communicator::agrees_first(const Prepared &prepared) {
    return prepared.way == Way::schedule && !prepared.call.ragged && !agreeing_ &&
           times_.adaptation->due(ways_.spec_of(prepared));
}

Status Communicator::adapt(Prepared &prepared, int64_t deadline_ns, Turn &turn) {
    const Call call = prepared.call;
    const CollectiveSpec spec = ways_.spec_of(prepared);
    agreeing_ = true;
    turn.end();
    Adaptation::Times times = times_.adaptation->measured(spec), slowest{};
    Call agree;
    agree.kind = Kind::allreduce;
    agree.send = times.data();
    agree.recv = slowest.data();
    agree.count = times.size();
    agree.dtype = DTRAIN_F64;
    agree.op = DTRAIN_MAX;
    Status s = run_until(agree, deadline_ns);
    turn.resume();
    agreeing_ = false;
    if (s != DTRAIN_OK) return s;
    Algorithm algorithm = times_.adaptation->decide(spec, slowest);
    if (times_.explainer != nullptr)
        agent_.log().tell("explain: %s of %llu bytes over %d ranks: %s from now on, as measured",
                          kind_name(spec.kind),
                          static_cast<unsigned long long>(typical_bytes(spec)), size(),
                          algorithm_name(algorithm));
    return ways_.prepare(turn, call,
                         prepared); // prepared may have been replaced by the agreement's call
}

Status Communicator::post_schedule(Prepared &prepared, const CallOptions &options,
                                   const Ticket &mine, Turn &turn) {
    const Call call = prepared.call; // a copy: another thread may replace it once order is unlocked
    CollectiveSpec spec = ways_.spec_of(prepared);
    if (topology_.levels() > 0) spec.topology = &topology_;
    engine::RunParams params;
    std::optional<Algorithm> wanted;
    if (times_.adaptation != nullptr && !call.ragged && !agreeing_)
        wanted = times_.adaptation->next(spec, mine.seq);
    if (prepared.plan == nullptr || wanted)
        if (Status s = ways_.find_plan(turn, spec, call.ragged, wanted, prepared.plan);
            s != DTRAIN_OK)
            return s;
    params.plan = prepared.plan;
    if (compared_ != 0 && mine.seq % compared_ == 0 && can_compare(spec)) [[unlikely]]
        params.plan = with_comparison(spec, *params.plan);
    if (!prepared.is_valid || wanted) prepared.plan.reset();
    turn.end();
    params.mesh = &session_->mesh();
    params.staging = &session_->staging();
    params.listener = &faults_;
    params.members = ranks_.members;
    params.rank = ranks_.rank;
    params.group = ranks_.tag_id;
    params.bits = engine::collective_bits(uint32_t(mine.seq), uint32_t(mine.fingerprint));
    params.input = call.kind == Kind::broadcast ? call.recv : call.send;
    params.output = call.recv;
    params.dtype = call.dtype;
    params.op =
        // For AVG, the schedule divides in an extra step.
        call.op == DTRAIN_AVG ? uint32_t{DTRAIN_SUM} : call.op;
    params.result_bytes = output_bytes(spec);
    params.name = kind_name(spec.kind);
    params.bytes = typical_bytes(spec);
    auto go = [&](engine::ScheduleRun &run) {
        run.sequence = mine.seq;
        run.begun_ns = begun();
        run.time_limit_ns = session_->time_limit(options.timeout_ns);
        hand_over(&run, options);
        return DTRAIN_OK;
    };
    if (!options.blocking)
        return go(*new (*options.request) engine::ScheduleRun(options.request, std::move(params)));
    engine::ScheduleRun run(options.request, std::move(params), true);
    return go(run);
}

// ---- point to point ----

Status Communicator::post_message(MessageOperation::Params &&params, const CallOptions &options) {
    auto go = [&](MessageOperation &message) {
        message.time_limit_ns = session_->time_limit(options.timeout_ns);
        hand_over(&message, options);
        return DTRAIN_OK;
    };
    if (options.blocking) {
        MessageOperation message(options.request, std::move(params), true);
        return message.run(agent_) ? DTRAIN_OK : go(message);
    }
    auto *message = new (*options.request) MessageOperation(options.request, std::move(params));
    return options.awaited && message->run(agent_) ? DTRAIN_OK : go(*message);
}

Status Communicator::post_send(const void *buffer, uint64_t bytes, int32_t peer, uint32_t tag,
                               const CallOptions &options) {
    if (peer < 0 || peer >= size())
        return fail(DTRAIN_ERR_INVALID, "send: rank %d is not in this communicator (0 to %d)", peer,
                    size() - 1);
    if (buffer == nullptr && bytes > 0) return fail(DTRAIN_ERR_INVALID, "send: the buffer is NULL");
    if (Status s = faults_.error(); s != DTRAIN_OK) return s;
    MessageOperation::Params params;
    params.direction = MessageOperation::Direction::send;
    params.mesh = &session_->mesh();
    params.listener = &faults_;
    params.rank = peer;
    params.member = ranks_.members[uint32_t(peer)];
    params.tag =
        engine::make_tag(ranks_.tag_id, ranks_.rank, engine::TagClass::point_to_point, tag);
    params.buffer = const_cast<void *>(buffer); // sends only read the buffer
    params.bytes = bytes;
    return post_message(std::move(params), options);
}

// One member for each transport that leads to some rank but not to rank 0.
std::vector<uint32_t> Communicator::other_transports() const {
    engine::Mesh &mesh = session_->mesh();
    std::vector<transport::Device *> seen = {mesh.device(ranks_.members[0])};
    std::vector<uint32_t> others;
    for (uint32_t member : ranks_.members) {
        transport::Device *device = mesh.device(member);
        if (std::find(seen.begin(), seen.end(), device) != seen.end()) continue;
        seen.push_back(device);
        others.push_back(member);
    }
    return others;
}

Status Communicator::post_recv(void *buffer, uint64_t bytes, int32_t peer, uint32_t tag,
                               const CallOptions &options) {
    bool any = peer == DTRAIN_ANY_RANK;
    if (!any && (peer < 0 || peer >= size()))
        return fail(DTRAIN_ERR_INVALID, "recv: rank %d is not in this communicator (0 to %d)", peer,
                    size() - 1);
    if (buffer == nullptr && bytes > 0) return fail(DTRAIN_ERR_INVALID, "recv: the buffer is NULL");
    if (Status s = faults_.error(); s != DTRAIN_OK) return s;
    MessageOperation::Params params;
    params.direction = MessageOperation::Direction::receive;
    params.mesh = &session_->mesh();
    params.listener = &faults_;
    params.rank = peer;
    params.member = ranks_.members[any ? 0 : uint32_t(peer)];
    if (any) params.elsewhere = other_transports();
    params.tag = engine::make_tag(ranks_.tag_id, any ? 0 : uint32_t(peer),
                                  engine::TagClass::point_to_point, tag);
    params.mask = any ? engine::exact & ~engine::source_mask : engine::exact;
    params.buffer = buffer;
    params.bytes = bytes;
    return post_message(std::move(params), options);
}

Status Communicator::run(const Call &call, int64_t timeout_ns, const std::atomic<int64_t> *due_ns) {
    engine::Request request;
    Status s = post(
        call, {.request = &request, .timeout_ns = timeout_ns, .due_ns = due_ns, .blocking = true});
    if (s != DTRAIN_OK) return s;
    if (request.outcome().status != DTRAIN_OK) set_error_text(request.error());
    return request.outcome().status;
}

Status Communicator::run_until(const Call &call, int64_t deadline_ns) {
    return run(call, timeout_until(deadline_ns));
}

} // namespace dtrain::collectives
