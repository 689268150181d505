// What workers ask of a parameter server: headers and payloads of every kind, in any order.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the memory limit, then steps. A request's payload has the size that its header needs,
// unless the step says otherwise; so the input gets behind the first check.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/table_tables.h"

#include "device/kernels.h"
#include "ps/node/pack.h"
#include "ps/server/server.h"
#include "ps/storage/shard_image.h"
#include "ps/table/table_wire.h"

#include <deque>

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

enum class Act : uint8_t { create, create_raw, request, raw, pack, archived, leave, lose, count };
constexpr uint32_t workers = 2;
constexpr uint64_t least_limit = 64 << 10;

// Files that are read and written some time later, or not at all.
struct Shelf final : Archive {
    Status start(std::unique_ptr<ArchiveJob> job) override {
        if (jobs.size() >= 4) return fail(DTRAIN_ERR_LIMIT, "the disk is busy");
        jobs.push_back(std::move(job));
        return DTRAIN_OK;
    }
    std::deque<std::unique_ptr<ArchiveJob>> jobs;
};

struct Rig {
    explicit Rig(uint64_t bytes)
        : limit(bytes), server({.index = 0,
                                .servers = 1,
                                .workers = workers,
                                .memory_limit = bytes,
                                .archive = &shelf,
                                .peer_limit = 64 << 10}) {}

    // The server keeps no pointer to the payload, so it is freed at once.
    void say(uint32_t worker, const RequestHeader &header, const Bytes &payload) {
        std::unique_ptr<uint8_t[]> exact; // aligned; of exactly its size
        const void *at = nullptr;
        if (!payload.empty()) {
            exact.reset(new uint8_t[payload.size()]);
            std::copy(payload.begin(), payload.end(), exact.get());
            at = exact.get();
        }
        server.on_request(worker, header, at, payload.size(), out);
        check();
    }
    void check() {
        for (const Response &response : out) {
            const ResponseHeader &header = response.header;
            FUZZ_REQUIRE(response.worker < workers && uint16_t(header.reason) <= last_reason);
            FUZZ_REQUIRE(header.magic == protocol_magic && header.reserved == 0);
            char text[max_told + 1];
            if (is_failure(header.reason))
                describe(header.reason, header.numbers, response.worker, text, sizeof text);
            // Every byte of it can be read.
            const auto *bytes = static_cast<const uint8_t *>(response.payload);
            volatile uint8_t last = 0;
            for (uint64_t i = 0; i < response.bytes; i++) last = bytes[i];
            (void)last;
        }
        out.clear();
        FUZZ_REQUIRE(server.memory_used() <= limit);
    }

    const uint64_t limit;
    Shelf shelf;
    Server server;
    Responses out;
    TableParams params[4]; // by table number
    uint64_t next[workers][4]{};
};

uint64_t payload_size(const TableParams &params, const RequestHeader &header) {
    const uint64_t count = header.count % 4096;
    if (!has_trait(header.kind, Trait::sends)) return 0;
    const bool rows = has_trait(header.kind, Trait::rows);
    const uint64_t keys = rows ? count * sizeof(uint64_t) : 0;
    if (rows && !has_trait(header.kind, Trait::carries)) return keys;
    const uint64_t numbers = rows ? count * params.dim : count;
    const bool state = has_trait(header.kind, Trait::state);
    return keys + numbers * device::dtype_size(state ? params.dtype : wire_dtype_of(params));
}

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

RequestHeader some_header(Rig &rig, fuzz::Input &in) {
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

void act(Rig &rig, fuzz::Input &in) {
    switch (Act(in.byte() % uint8_t(Act::count))) {
    case Act::create: {
        RequestHeader header;
        const uint8_t where = in.byte(), kind = in.byte();
        header.worker = where % workers;
        header.table = where / workers % 4;
        rig.params[header.table] = fuzz::table_of(kind);
        const std::string payload = encode_table(rig.params[header.table], "t");
        return rig.say(header.worker, header, fuzz::bytes_of(payload));
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
    fuzz::Input in(data, size);
    Rig rig(least_limit + 256 * in.byte());
    for (int steps = 0; !in.empty() && steps < 100; steps++) act(rig, in);
    (void)rig.server.report();
    (void)rig.server.legacy();
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < table_kinds; kind++) {
        const TableParams params = table_of(kind);
        Made made;
        made.byte(8);
        for (uint8_t worker = 0; worker < workers; worker++)
            made.byte(uint8_t(Act::create)).byte(worker).byte(kind);
        const auto request = [&](RequestKind what, uint8_t worker, uint8_t flags, uint8_t count,
                                 uint8_t clock, uint8_t pushes = 0, uint8_t argument = 0) {
            made.byte(uint8_t(Act::request)).byte(uint8_t(uint8_t(what) - 1)).byte(worker);
            made.byte(flags).byte(0).byte(count).byte(clock).byte(pushes).byte(argument);
            made.byte(2).byte(1).byte(2).byte(0);
        };
        const bool rows = is_sparse(params);
        for (uint8_t worker = 0; worker < workers; worker++) {
            request(rows ? RequestKind::push_rows : RequestKind::push, worker, begins_push, 2, 0);
            request(RequestKind::clock, worker, 0, 0, 0, 1);
        }
        request(rows ? RequestKind::pull_rows : RequestKind::pull, 0, packed_answer, 3, 1);
        request(rows ? RequestKind::set_rows : RequestKind::set, 1, 0, 1, 1);
        request(rows ? RequestKind::pull_state_rows : RequestKind::pull_state, 0, 0, 1, 1);
        request(rows ? RequestKind::erase_rows : RequestKind::set_state, 0, 0, 1, 1);
        request(rows ? RequestKind::keep_rows : RequestKind::set_updates, 0, 0, rows ? 1 : 0, 1, 0,
                1);
        request(RequestKind::save, 0, 0, 0, 1, 0, 7);
        request(RequestKind::restore, 1, 0, 0, 1, 0, 7);
        made.byte(uint8_t(Act::archived)).byte(2).byte(uint8_t(Act::archived)).byte(0);
        request(RequestKind::adopt, 1, 0, 0, 1);
        for (const RequestKind last : {RequestKind::cancel, RequestKind::destroy})
            request(last, 1, 0, 0, 1);
        made.byte(uint8_t(Act::lose)).byte(1);
        out.push_back(made);
    }
    const std::string table = encode_table(table_of(6), "name");
    out.push_back(Made()
                      .byte(0)
                      .byte(uint8_t(Act::create_raw))
                      .byte(0)
                      .byte(0)
                      .put(uint16_t(table.size()))
                      .all(table));
    TableParams segments = table_of(0);
    segments.segments = {{0, 4, DTRAIN_RULE_SGD}, {4, 6, DTRAIN_RULE_ADAM}};
    const std::string segmented = encode_table(segments, "segments");
    out.push_back(Made()
                      .byte(0)
                      .byte(uint8_t(Act::create_raw))
                      .byte(0)
                      .byte(0)
                      .put(uint16_t(segmented.size()))
                      .all(segmented));
    return out;
}
