// What workers ask of a parameter server: headers and payloads of every kind, in any order.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the memory limit and what the server has, then steps. A request's payload has the size
// that its header needs, unless the step says otherwise; so the input gets behind the first check.
#include "tests/fuzz/table_server.h"

#include "ps/node/pack.h"
#include "ps/storage/shard_image.h"

using namespace dtrain;
using namespace dtrain::ps;
using namespace dtrain::fuzz;

namespace {

using Rig = fuzz::TableServer;

// As the thread does that has the disk.
void run(ArchiveJob &job, uint8_t how, Server &server) {
    if (how % 2 == 1) {
        job.status = DTRAIN_ERR_IO;
        job.text = std::string(how * 4u, 'x');
        return;
    }
    if (job.request.kind == RequestKind::restore) {
        const uint64_t bytes = server.reserve(job, how * 256u);
        FUZZ_REQUIRE(bytes <= how * 256u);
        if (ShardImage *shard = job.image->as_shard()) FUZZ_REQUIRE(shard->allocate());
        return;
    }
    GradualCopy &copy = *job.copy();
    while (how % 4 == 0 && copy.advance(how * 16u + 1) == GradualCopy::State::going) {
    }
    job.lent = job.image->lend();
}

RequestHeader some_header(Rig &rig, Input &in) {
    RequestHeader header;
    header.kind = RequestKind(1 + in.byte() % last_request_kind);
    const uint8_t where = in.byte();
    header.worker = where % workers;
    header.table = where / workers % 4;
    uint64_t &next = rig.next[header.worker][header.table];
    header.sequence = next + (where >= 128 ? in.byte() : 1) - (where >= 192 ? 20 : 0);
    next = std::max(next, std::min(header.sequence, next + request_window));
    header.flags = in.byte();
    header.first = in.byte();
    header.count = in.byte();
    header.clock = in.byte();
    header.pushes = in.byte();
    const uint8_t argument = in.byte();
    header.argument = argument;
    if (argument >= 240) header.argument = in.take<uint64_t>();
    return header;
}

void act(Rig &rig, Input &in) {
    switch (Act(in.byte() % uint8_t(Act::count))) {
    case Act::create: {
        RequestHeader header;
        const uint8_t where = in.byte(), kind = in.byte();
        header.worker = where % workers;
        header.table = where / workers % 4;
        rig.params[header.table] = table_of(kind);
        const std::string proofs = rig.has & restricted ? proofs_of(header.worker) : "";
        const std::string payload = encode_table(rig.params[header.table], "t", proofs);
        return rig.say(header.worker, header, bytes_of(payload));
    }
    case Act::create_raw: {
        RequestHeader header;
        header.worker = in.byte() % workers;
        header.table = in.byte() % 4;
        const Bytes payload = in.bytes(in.take<uint16_t>() % 2048);
        TableParams params;
        std::string name;
        std::string_view proofs;
        uint32_t bad = field_count;
        if (decode_table(payload.data(), payload.size(), params, name, bad, &proofs) &&
            bad == field_count) {
            const std::string again = encode_table(params, name, proofs);
            TableParams second;
            FUZZ_REQUIRE(decode_table(again.data(), again.size(), second, name, bad, &proofs));
            FUZZ_REQUIRE(bad == field_count && encode_table(second, name, proofs) == again);
            rig.params[header.table] = std::move(params);
        }
        return rig.say(header.worker, header, payload);
    }
    case Act::request: {
        const RequestHeader header = some_header(rig, in);
        const uint64_t due = payload_size(rig.params[header.table], header);
        Bytes payload = in.bytes(in.byte());
        const uint8_t other = in.byte();
        payload.resize(other < 224 ? due : other); // mostly the right size
        return rig.say(header.worker, header, payload);
    }
    case Act::raw: {
        const auto header = in.take<RequestHeader>();
        return rig.say(in.byte() % workers, header, in.bytes(in.byte()));
    }
    case Act::pack: {
        const uint8_t worker = in.byte() % workers;
        Bytes pack(sizeof pack_begin);
        std::memcpy(pack.data(), &pack_begin, sizeof pack_begin);
        const Bytes rest = in.bytes(in.take<uint16_t>() % 1024);
        pack.insert(pack.end(), rest.begin(), rest.end());
        const auto *message = reinterpret_cast<const char *>(pack.data());
        FUZZ_REQUIRE(is_pack(message, pack.size()));
        unpack<RequestHeader>(message, pack.size(),
                              [&](const RequestHeader &header, const char *from, uint64_t size) {
                                  rig.say(worker, header, Bytes(from, from + size));
                              });
        return;
    }
    case Act::archived: {
        const uint8_t how = in.byte();
        if (rig.shelf.jobs.empty()) return;
        std::unique_ptr<ArchiveJob> job = std::move(rig.shelf.jobs.front());
        rig.shelf.jobs.pop_front();
        run(*job, how, rig.server);
        rig.server.on_archived(std::move(job), rig.out);
        return rig.check();
    }
    case Act::leave: rig.server.on_worker_left(in.byte() % workers, rig.out); return rig.check();
    default: rig.server.on_worker_lost(in.byte() % workers, rig.out); return rig.check();
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    const uint64_t limit = least_limit + 256 * in.byte();
    const uint8_t has = in.byte();
    Rig rig(limit, has);
    int steps = 0;
    for (; !in.empty() && steps < 60; steps++) act(rig, in);
    (void)rig.server.report();
    std::map<std::string, LegacyPart> parts = rig.server.legacy();
    if (!(has & heritage)) return 0;
    Rig next(limit, has); // the next generation of an elastic job
    next.server.inherit(std::move(parts));
    for (; !in.empty() && steps < 120; steps++) act(next, in);
    (void)next.server.inherited("t");
    (void)next.server.take_inherited("t");
    (void)next.server.legacy();
    return 0;
}

namespace {

// A request of `seeds`, whose payload has the size that is due.
void ask(Made &made, RequestKind what, uint8_t worker, uint8_t flags, uint8_t count, uint8_t clock,
         uint8_t pushes = 0, uint64_t argument = 0) {
    made.byte(uint8_t(Act::request)).byte(uint8_t(uint8_t(what) - 1)).byte(worker);
    made.byte(flags).byte(0).byte(count).byte(clock).byte(pushes);
    if (argument < 240)
        made.byte(uint8_t(argument));
    else
        made.byte(240).put(argument);
    made.byte(2).byte(1).byte(2).byte(0);
}

void create(Made &made, uint8_t kind) {
    for (uint8_t worker = 0; worker < workers; worker++)
        made.byte(uint8_t(Act::create)).byte(worker).byte(kind);
}

// Every kind of request, in the mode that the table has.
Bytes whole_life(uint8_t kind) {
    const TableParams params = table_of(kind);
    const bool rows = is_sparse(params);
    Made made;
    made.byte(8).byte(0);
    create(made, kind);
    if (rows) ask(made, RequestKind::keep_rows, 0, 0, 2, 0, 0, 1);
    for (uint8_t worker = 0; worker < workers; worker++) {
        ask(made, rows ? RequestKind::push_rows : RequestKind::push, worker, begins_push, 2, 0);
        ask(made, RequestKind::clock, worker, 0, 0, 0, 1);
    }
    if (rows) ask(made, RequestKind::end_keeping, 0, 0, 0, 1, 0, 1);
    ask(made, rows ? RequestKind::push_pull_rows : RequestKind::push_pull, 1, 0, 2, 1);
    ask(made, rows ? RequestKind::pull_rows : RequestKind::pull, 0, packed_answer, 3, 1);
    ask(made, rows ? RequestKind::set_rows : RequestKind::set, 1, 0, 1, 1);
    ask(made, rows ? RequestKind::pull_state_rows : RequestKind::pull_state, 0, 0, 5, 1);
    ask(made, rows ? RequestKind::set_state_rows : RequestKind::set_state, 0, 0, 5, 1);
    ask(made, RequestKind::set_rate, 0, 0, 0, 1, 0, std::bit_cast<uint64_t>(0.5));
    ask(made, RequestKind::set_updates, 0, 0, 0, 1, 0, 3);
    if (rows) ask(made, RequestKind::count_rows, 0, 0, 0, 1);
    if (rows) ask(made, RequestKind::erase_rows, 0, 0, 1, 1);
    ask(made, RequestKind::wait_ready, 0, 0, 0, 1);
    ask(made, RequestKind::set_ready, 1, 0, 0, 1);
    ask(made, RequestKind::save, 0, 0, 0, 1, 0, 7);
    ask(made, RequestKind::restore, 1, 0, 0, 1, 0, 7);
    made.byte(uint8_t(Act::archived)).byte(2).byte(uint8_t(Act::archived)).byte(0);
    ask(made, RequestKind::adopt, 1, 0, 0, 1);
    ask(made, RequestKind::discard, 1, 0, 0, 1);
    for (const RequestKind last : {RequestKind::cancel, RequestKind::destroy})
        ask(made, last, 1, 0, 0, 1);
    made.byte(uint8_t(Act::lose)).byte(1);
    return made;
}

// Requests that must wait for the other worker, which comes later or is lost; each is repeated.
Bytes waiting(uint8_t kind, bool loses, uint8_t has) {
    const bool rows = is_sparse(table_of(kind));
    const RequestKind push = rows ? RequestKind::push_rows : RequestKind::push,
                      pull = rows ? RequestKind::pull_rows : RequestKind::pull;
    Made made;
    made.byte(8).byte(has);
    create(made, kind);
    const auto twice = [&](RequestKind what, uint8_t flags, uint8_t clock, uint8_t number,
                           uint64_t argument) {
        const uint8_t count = what == push || what == pull ? 2 : 0;
        ask(made, what, 0, flags, count, clock, number, argument);
        made.byte(uint8_t(Act::request)).byte(uint8_t(uint8_t(what) - 1)).byte(192).byte(20);
        made.byte(flags).byte(0).byte(count).byte(clock).byte(number);
        argument < 240 ? made.byte(uint8_t(argument)) : made.byte(240).put(argument);
        made.byte(2).byte(1).byte(2).byte(0);
    };
    twice(push, begins_push, 0, 0, 0);
    twice(RequestKind::clock, weighted, 0, 1, std::bit_cast<uint64_t>(0.5));
    twice(pull, 0, 1, 0, 9); // at least nine updates
    twice(push, begins_push, 5, 0, 0);
    twice(RequestKind::clock, weighted, 1, 0, std::bit_cast<uint64_t>(-1.0));
    twice(RequestKind::clock, 0, 2, 0, 0);
    twice(RequestKind::set_rate, 0, 3, 0, std::bit_cast<uint64_t>(0.5));
    twice(RequestKind::save, 0, 2, 0, 7);
    twice(RequestKind::wait_ready, 0, 0, 0, 0);
    if (rows) twice(RequestKind::keep_rows, 0, 3, 0, 1);
    ask(made, RequestKind::cancel, 0, counted_push, 0, 3);
    if (loses) made.byte(uint8_t(Act::lose)).byte(1);
    for (uint8_t clock = 0; clock < 3 && !loses; clock++) {
        ask(made, push, 1, begins_push, 2, clock);
        ask(made, RequestKind::clock, 1, 0, 0, clock, 1);
    }
    if (!loses) ask(made, RequestKind::set_ready, 1, 0, 0, 0);
    twice(pull, 0, 1, 0, 0);
    twice(push, begins_push, 0, 0, 0);
    made.byte(uint8_t(Act::leave)).byte(0);
    return made;
}

// From the table's mode to another one; one worker may refuse, be lost, or have heard of it.
Bytes change_of_mode(uint8_t kind, const TableParams &to, uint64_t first, bool loses) {
    const uint64_t bits = mode_bits(to);
    Made made;
    made.byte(8).byte(0);
    create(made, kind);
    for (uint8_t worker = 0; worker < workers; worker++)
        ask(made, RequestKind::set_mode, worker, 0, 0, 0, 1, bits | mode_only_asks);
    ask(made, RequestKind::push, 0, begins_push, 2, 0);
    ask(made, RequestKind::set_mode, 0, 0, 0, 0, 1, bits | first);
    if (loses)
        made.byte(uint8_t(Act::lose)).byte(1);
    else
        ask(made, RequestKind::set_mode, 1, 0, 0, 0, 1, bits);
    ask(made, RequestKind::set_mode, 0, without_lost, 0, 0, 2, bits | mode_decided);
    ask(made, RequestKind::push, 0, begins_push, 2, 0);
    ask(made, RequestKind::clock, 0, 0, 0, 0, 1);
    return made;
}

} // namespace

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < table_kinds; kind++) out.push_back(whole_life(kind));
    for (const uint8_t kind : {0, 2, 3, 4})
        for (const uint8_t to : {0, 2, 3}) {
            out.push_back(change_of_mode(kind, table_of(to), 0, false));
            out.push_back(change_of_mode(kind, table_of(to), to == 0 ? mode_refused : 0, true));
        }
    for (const uint8_t kind : {2, 3, 4, 5, 7, 13})
        for (const bool loses : {false, true}) out.push_back(waiting(kind, loses, 0));
    out.push_back(waiting(6, false, restricted));
    for (const uint8_t has : {restricted, no_archive, other_server, slow_workers, heritage})
        for (const uint8_t kind : {2, 6}) {
            Bytes made = whole_life(kind);
            made[1] = has;
            if (has == heritage) { // the same again
                const Bytes life = whole_life(kind);
                made.resize(made.size() - 40); // before the table is destroyed
                for (int i = 0; i < 60; i++) made.insert(made.end(), {uint8_t(Act::archived), 0});
                made.insert(made.end(), life.begin() + 2, life.end());
            }
            out.push_back(made);
        }
    const auto described = [&](const TableParams &params, std::string_view name) {
        const std::string table = encode_table(params, name, std::string(32, 'p'));
        Made made;
        made.byte(0).byte(0);
        for (uint8_t worker = 0; worker < workers; worker++) {
            made.byte(uint8_t(Act::create_raw)).byte(worker).byte(0);
            made.put(uint16_t(table.size())).all(table);
        }
        out.push_back(made);
    };
    described(table_of(6), "name");
    TableParams segments = table_of(0);
    segments.segments = {{0, 4, DTRAIN_RULE_SGD}, {4, 6, DTRAIN_RULE_ADAM}};
    described(segments, "segments");
    TableParams placed = table_of(0);
    placed.placement.policy = DTRAIN_PLACE_CONSISTENT, placed.placement.virtual_nodes = 16;
    placed.placement.block = 2, placed.placement.weights = {1};
    described(placed, "placed");
    TableParams owned = table_of(6);
    owned.placement.policy = DTRAIN_PLACE_USER, owned.placement.key_count = 4;
    owned.placement.owners = {0, 0, 0, 0};
    described(owned, "owned");
    out.push_back(Made().byte(0).byte(0).byte(uint8_t(Act::raw)).all(Bytes(70)));
    Made pack;
    pack.byte(0).byte(0).byte(uint8_t(Act::pack)).byte(0).put(uint16_t(8 + 64 + 8));
    RequestHeader header;
    header.kind = RequestKind::destroy;
    pack.put(uint64_t{8}).put(header).put(uint64_t{1});
    out.push_back(pack);
    return out;
}
