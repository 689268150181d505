// Checks each request, answers repeated ones, and calls the handler of its kind.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include <array>
#include <type_traits>
#include <utility>

namespace dtrain::ps {

struct ServerTable::Handlers {
    using Handler = void (*)(ServerTable &, const RequestHeader &, const void *, Answered::Entry &,
                             Responses &);
    struct Row {
        RequestKind kind;
        Handler handle;
    };
    static const std::array<Handler, last_request_kind + 1> by_kind;

    template <auto handle>
    static void call(ServerTable &table, const RequestHeader &header, const void *payload,
                     Answered::Entry &entry, Responses &out) {
        if constexpr (std::is_invocable_v<decltype(handle), ServerTable &, const RequestHeader &,
                                          const void *, Answered::Entry &, Responses &>)
            (table.*handle)(header, payload, entry, out);
        else
            (table.*handle)(header, entry, out);
    }
};

// Without create and destroy, which Server handles, and cancel, which comes before repetitions.
constexpr std::array<ServerTable::Handlers::Handler, last_request_kind + 1>
    ServerTable::Handlers::by_kind = [] {
        constexpr Row rows[] = {
            {RequestKind::push, call<&ServerTable::push>},
            {RequestKind::pull, call<&ServerTable::pull>},
            {RequestKind::push_pull, call<&ServerTable::push>},
            {RequestKind::set, call<&ServerTable::set>},
            {RequestKind::clock, call<&ServerTable::clock>},
            {RequestKind::pull_state, call<&ServerTable::pull_state>},
            {RequestKind::set_state, call<&ServerTable::set_state>},
            {RequestKind::set_rate, call<&ServerTable::set_rate>},
            {RequestKind::push_rows, call<&ServerTable::push>},
            {RequestKind::pull_rows, call<&ServerTable::pull>},
            {RequestKind::push_pull_rows, call<&ServerTable::push>},
            {RequestKind::set_rows, call<&ServerTable::set>},
            {RequestKind::erase_rows, call<&ServerTable::erase_rows>},
            {RequestKind::count_rows, call<&ServerTable::count_rows>},
            {RequestKind::pull_state_rows, call<&ServerTable::pull_state>},
            {RequestKind::set_state_rows, call<&ServerTable::set_state>},
            {RequestKind::save, call<&ServerTable::save>},
            {RequestKind::restore, call<&ServerTable::restore>},
            {RequestKind::set_ready, call<&ServerTable::set_ready>},
            {RequestKind::wait_ready, call<&ServerTable::wait_ready>},
            {RequestKind::set_mode, call<&ServerTable::set_mode>},
            {RequestKind::adopt, call<&ServerTable::adopt>},
            {RequestKind::discard, call<&ServerTable::discard>},
            {RequestKind::keep_rows, call<&ServerTable::keep_rows>},
            {RequestKind::end_keeping, call<&ServerTable::end_keeping>},
            {RequestKind::set_updates, call<&ServerTable::set_updates>},
        };
        static_assert(std::size(rows) == last_request_kind - 3);
        std::array<Handler, last_request_kind + 1> all{};
        for (const Row &row : rows) all[static_cast<uint8_t>(row.kind)] = row.handle;
        return all;
    }();

ServerTable::ServerTable(const Identity &identity, const KeyPartition &partition, const Part &part,
                         std::unique_ptr<Storage> storage, Archive *archive, PeerMemory *peers)
    : identity_(identity), check_(identity_.params, partition, part, identity.server),
      values_(identity_.params), storage_(std::move(storage)), archive_(archive), peers_(peers),
      clocks_(mode_of(identity.params), identity.workers), members_(identity.workers),
      workers_(identity.workers), mode_change_(identity.workers), checkpoints_(identity.workers) {}

void ServerTable::request(const RequestHeader &header, const void *payload, uint64_t bytes,
                          Responses &out) {
    if (!made() || !members_.present(header.worker))
        return respond(header, {Reason::unknown_table, {header.table, 0}}, out);
    Worker &worker = workers_[header.worker];
    Answered &answered = worker.log.answered();
    Reason reason = answered.check(header.sequence);
    if (reason != Reason::none)
        return respond(header, {reason, {header.sequence, answered.newest()}}, out);
    Answer bad = check_.check(header, payload, bytes);
    // An invalid request is not recorded: a repetition is just as invalid.
    if (bad.reason != Reason::none) {
        if (identity_.params.reproducible != 0) answered.entry(header.sequence).refused = true;
        return respond(header, bad, out);
    }

    Answered::Entry &entry = answered.entry(header.sequence);
    worker.counters.sent += bytes;
    worker.counters.repeats += entry.progress != Progress::unseen;
    if (header.kind == RequestKind::cancel) {
        if (clock_waits_ && need_of(header.kind)) [[unlikely]]
            return; // it will be repeated
        return cancel(header, entry, out);
    }
    switch (entry.progress) {
    case Progress::parked: return tell_awaited(header, out);
    case Progress::done:
        if (entry.reason == Reason::told) texts_.repeat(worker.log.text(header.sequence));
        if (entry.reason == Reason::none && !may_answer(header)) return; // it will be repeated
        if (!entry.delivery.expired()) return;                           // its answer is to come
        respond(header, {entry.reason, {entry.numbers[0], entry.numbers[1]}}, out, payload);
        entry.delivery = out.back().delivery;
        return;
    default:
        // Pushes, which a clock counts, are refused by their handlers.
        if (const Answer answer = barred(header);
            answer.reason != Reason::none && !has_trait(header.kind, Trait::pushes) &&
            header.kind != RequestKind::keep_rows) [[unlikely]]
            finish(header, entry, answer, out);
        else if (is_on_device(identity_.params) && !entry.pushed && must_wait(header.kind))
            hold(header, entry, out);
        else
            Handlers::by_kind[static_cast<uint8_t>(header.kind)](*this, header, payload, entry,
                                                                 out);
    }
    if (identity_.params.reproducible != 0) release(out); // pushes that waited for this request
}

} // namespace dtrain::ps
