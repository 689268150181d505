// What parameter servers answer to a worker: wrong, repeated, late, short and long answers.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the kind of table, then steps. An answer begins as the genuine one to a request in flight;
// the input changes fields of it.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/table_tables.h"

#include "device/kernels.h"
#include "ps/client/client.h"
#include "ps/client/row_batch.h"

#include <deque>
#include <utility>

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

enum class Act : uint8_t {
    start,
    answer,
    packed,
    fragment,
    sent,
    timer,
    withdrawn,
    abandon,
    lost,
    destroy,
    count
};
constexpr uint32_t servers = 2;
constexpr size_t most_operations = 24;
constexpr uint64_t memory_bytes = 4096;

// Keeps requests until they are answered or withdrawn.
struct HeldWire final : Wire {
    struct Held {
        uint32_t server;
        Outgoing *request;
    };
    Status send(uint32_t server, Outgoing &request) override {
        if (busy) return DTRAIN_ERR_BUSY;
        request.copied = copies;
        if (!copies) unsent.push_back({server, &request});
        const auto is_it = [&](const Held &held) { return held.request == &request; };
        if (std::none_of(posted.begin(), posted.end(), is_it)) posted.push_back({server, &request});
        // Every byte of it can be read.
        const auto *bytes = static_cast<const uint8_t *>(request.payload);
        volatile uint8_t last = 0;
        for (uint64_t i = 0; i < request.payload_bytes; i++) last = bytes[i];
        (void)last;
        return DTRAIN_OK;
    }
    void withdraw(uint32_t server, Outgoing &request) override {
        forget(&request);
        withdrawn.push_back({server, &request});
    }
    void forget(const Outgoing *request) {
        const auto is_it = [&](const Held &held) { return held.request == request; };
        std::erase_if(posted, is_it);
        std::erase_if(unsent, is_it);
    }
    bool busy = false, copies = false;
    std::deque<Held> posted, unsent, withdrawn;
};

struct Operation {
    Transfer transfer;
    Bytes memory;
    std::vector<uint64_t> keys;
    bool done = false;
};

struct Rig {
    explicit Rig(uint8_t kind)
        : client({.worker = 0, .servers = servers, .chunk = 64, .retry_ns = 1000}, wire) {
        params = fuzz::table_of(kind);
        if (kind >= 128) client.use_priorities();
        FUZZ_REQUIRE(client.open("t", params, table) == DTRAIN_OK);
        start(RequestKind::create, 0, 0, 0);
    }
    ~Rig() { // as a program that ends: everything completes
        client.abandon_all(DTRAIN_ERR_CANCELED, "the end");
        while (!wire.withdrawn.empty() || !wire.unsent.empty())
            wire.withdrawn.empty() ? finish_send() : finish_withdrawal();
        for (const auto &operation : operations) FUZZ_REQUIRE(operation->done);
    }
    void start(RequestKind kind, uint64_t first, uint64_t count, uint64_t argument) {
        if (table == nullptr || operations.size() >= most_operations) return;
        Operation &operation = *operations.emplace_back(std::make_unique<Operation>());
        operation.memory.resize(memory_bytes);
        Transfer &t = operation.transfer;
        t.kind = kind;
        t.table = table;
        t.argument = argument;
        t.priority = int32_t(argument % 3);
        t.send = t.receive = operation.memory.data();
        t.total_p = &totals;
        t.owner = &operation;
        t.done = [](Transfer *ended) {
            Operation &its = *static_cast<Operation *>(ended->owner);
            FUZZ_REQUIRE(!its.done); // once
            its.done = true;
            Bytes().swap(its.memory); // a sanitizer sees who uses it after that
        };
        const bool rows = has_trait(kind, Trait::rows), ranged = has_trait(kind, Trait::ranged);
        if (rows && ranged) {
            for (uint64_t i = 0; i < count; i++)
                operation.keys.push_back((first + i) * 0x9e3779b9u);
            t.range = {0, count};
            t.rows = std::make_shared<RowBatch>(
                *table,
                RowBatch::Call{kind, operation.keys.data(), count, t.send, t.receive, argument});
        } else if (ranged) {
            t.range = {first, count};
        }
        client.start(t, now);
    }
    void finish_send() {
        const HeldWire::Held held = wire.unsent.front();
        wire.unsent.pop_front();
        client.on_sent(*held.request, now);
    }
    void finish_withdrawal() {
        const HeldWire::Held held = wire.withdrawn.front();
        wire.withdrawn.pop_front();
        client.on_withdrawn(*held.request, now);
    }

    uint64_t totals = 0;
    int64_t now = 0;
    TableParams params;
    HeldWire wire;
    std::vector<std::unique_ptr<Operation>> operations;
    Client client;
    ClientTable *table = nullptr;
};

bool fits(const TableParams &params, RequestKind kind) {
    if (kind == RequestKind::destroy || kind == RequestKind::cancel ||
        kind == RequestKind::create || kind == RequestKind::keep_rows ||
        kind == RequestKind::end_keeping)
        return false; // the client's own
    const bool fused = kind == RequestKind::push_pull || kind == RequestKind::push_pull_rows;
    if (fused && params.consistency == DTRAIN_BSP) return false;
    if (has_trait(kind, Trait::state)) return false; // needs an array's item
    return !has_trait(kind, Trait::ranged | Trait::rows) ||
           has_trait(kind, Trait::rows) == is_sparse(params);
}

// The genuine answer, with what the input changes of it.
ResponseHeader answer_to(const Outgoing &request, uint32_t server, fuzz::Input &in) {
    ResponseHeader header;
    header.kind = request.header.kind;
    header.table = request.header.table;
    header.server = server;
    header.sequence = request.header.sequence;
    const uint8_t changes = in.byte();
    header.reason = changes & 1 ? Reason(in.byte() % (last_reason + 2)) : Reason::none;
    const bool values =
        header.reason == Reason::none && has_trait(request.header.kind, Trait::receives);
    header.count = values ? request.header.count : 0;
    if (changes & 2) header.count = in.byte();
    if (changes & 4) header.numbers[0] = in.byte(), header.numbers[1] = in.byte();
    if (changes & 8) header.table_version = in.take<uint64_t>();
    if (changes & 16) header.sequence += in.byte() - 128;
    if (changes & 32) header.kind = RequestKind(in.byte());
    if (changes & 64) header.server ^= in.byte(), header.partition = in.byte();
    if (changes & 128) header.magic ^= in.byte(), header.version ^= in.byte();
    return header;
}

uint64_t due(const TableParams &params, const Outgoing &request, const ResponseHeader &header) {
    if (header.reason == Reason::told || header.kind == RequestKind::create) return header.count;
    if (header.count == 0) return 0;
    const uint64_t numbers = request.header.count * (is_sparse(params) ? params.dim : 1);
    return std::min<uint64_t>(numbers * device::dtype_size(wire_dtype_of(params)), memory_bytes);
}

void act(Rig &rig, fuzz::Input &in) {
    const Act what = Act(in.byte() % uint8_t(Act::count));
    const uint8_t choice = in.byte();
    rig.now++;
    switch (what) {
    case Act::start: {
        const auto kind = RequestKind(1 + choice % last_request_kind);
        if (!fits(rig.params, kind)) return;
        const uint64_t first = in.byte() % 8, count = 1 + in.byte() % 16;
        const uint64_t length = is_sparse(rig.params) ? UINT64_MAX : rig.params.length;
        if (first + count > length) return;
        return rig.start(kind, first, count, in.byte());
    }
    case Act::answer: {
        if (rig.wire.posted.empty()) return;
        const size_t at = choice % rig.wire.posted.size();
        const HeldWire::Held held = rig.wire.posted[at];
        const ResponseHeader header = answer_to(*held.request, held.server, in);
        const uint8_t other = in.byte();
        const uint64_t bytes = other < 224 ? due(rig.params, *held.request, header) : other;
        Bytes payload = in.bytes(in.byte());
        payload.resize(bytes, 'x');
        const uint64_t landed = std::min<uint64_t>(bytes, held.request->answer_bytes);
        if (landed > 0) std::memcpy(held.request->answer, payload.data(), landed);
        rig.wire.posted.erase(rig.wire.posted.begin() + long(at));
        if (!rig.client.on_response(*held.request, header, bytes, rig.now))
            rig.wire.posted.push_back(held);
        return;
    }
    case Act::packed: {
        if (rig.wire.posted.empty()) return;
        const HeldWire::Held held = rig.wire.posted[choice % rig.wire.posted.size()];
        const ResponseHeader header = answer_to(*held.request, held.server, in);
        Bytes payload = in.bytes(in.byte());
        const uint8_t other = in.byte();
        payload.resize(other < 224 ? due(rig.params, *held.request, header) : other, 'x');
        rig.wire.posted.erase(rig.wire.posted.begin() + long(choice % rig.wire.posted.size()));
        const bool packs = (held.request->header.flags & packed_answer) != 0;
        rig.client.on_packed_answer(choice % servers, header, payload.data(), payload.size(),
                                    rig.now);
        if (!packs) rig.wire.posted.push_back(held);
        return;
    }
    case Act::fragment: {
        if (rig.wire.posted.empty()) return;
        const HeldWire::Held held = rig.wire.posted.front();
        rig.wire.posted.pop_front();
        return rig.client.on_fragment(*held.request, choice % sizeof(ResponseHeader), rig.now);
    }
    case Act::sent: {
        rig.wire.busy = choice % 8 == 7;
        rig.wire.copies = choice % 8 == 6;
        if (!rig.wire.unsent.empty()) rig.finish_send();
        return;
    }
    case Act::timer: {
        const int64_t next = rig.client.next_timer();
        if (next != INT64_MAX) rig.now = std::max(rig.now, next);
        return rig.client.on_timer(rig.now);
    }
    case Act::withdrawn:
        if (!rig.wire.withdrawn.empty()) rig.finish_withdrawal();
        return;
    case Act::abandon: {
        Operation &operation = *rig.operations[choice % rig.operations.size()];
        if (!operation.done) rig.client.abandon(operation.transfer, DTRAIN_ERR_TIMEOUT, "late");
        return;
    }
    case Act::lost:
        if (choice % 4 == 0) rig.client.on_server_lost(choice / 4 % servers, "lost");
        return;
    default:
        if (choice % 8 != 0 || rig.table == nullptr) return;
        rig.client.destroy(std::exchange(rig.table, nullptr), rig.now, choice >= 128);
        return;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig(in.byte());
    for (int steps = 0; !in.empty() && steps < 150; steps++) act(rig, in);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < table_kinds; kind++) {
        Made made;
        made.byte(kind == 3 ? uint8_t(128 + 3) : kind); // with priorities
        const auto answer = [&](uint8_t changes = 0, std::initializer_list<uint8_t> fields = {}) {
            made.byte(uint8_t(Act::sent)).byte(0).byte(uint8_t(Act::answer)).byte(0).byte(changes);
            made.all(fields).byte(0).byte(0);
        };
        const auto start = [&](RequestKind what, uint8_t count) {
            made.byte(uint8_t(Act::start))
                .byte(uint8_t(uint8_t(what) - 1))
                .byte(0)
                .byte(count)
                .byte(1);
        };
        answer(), answer();
        const bool rows = is_sparse(table_of(kind));
        for (const RequestKind what :
             {rows ? RequestKind::push_rows : RequestKind::push,
              rows ? RequestKind::pull_rows : RequestKind::pull,
              rows ? RequestKind::count_rows : RequestKind::set, RequestKind::clock}) {
            start(what, 3);
            for (int i = 0; i < 4; i++) answer();
        }
        start(rows ? RequestKind::pull_rows : RequestKind::pull, 7);
        answer(1, {28}); // an error text
        answer(1, {1});  // again
        answer(1, {15});
        made.byte(uint8_t(Act::timer)).byte(0).byte(uint8_t(Act::abandon)).byte(5);
        made.byte(uint8_t(Act::withdrawn)).byte(0);
        start(RequestKind::save, 0);
        made.byte(uint8_t(Act::fragment)).byte(8).byte(uint8_t(Act::lost)).byte(4);
        made.byte(uint8_t(Act::destroy)).byte(0);
        out.push_back(made);
    }
    for (uint16_t reason = 0; reason <= last_reason + 1; reason++)
        for (const uint8_t kind : {2, 6}) { // of each kind of request
            const bool rows = is_sparse(table_of(kind));
            Made made;
            made.byte(kind);
            for (int i = 0; i < 2; i++)
                made.byte(uint8_t(Act::sent))
                    .byte(0)
                    .byte(uint8_t(Act::answer))
                    .byte(0)
                    .all(Bytes(3));
            for (const RequestKind what :
                 {rows ? RequestKind::pull_rows : RequestKind::pull, RequestKind::save,
                  rows ? RequestKind::push_rows : RequestKind::push, RequestKind::clock,
                  RequestKind::set_mode}) {
                made.byte(uint8_t(Act::start))
                    .byte(uint8_t(uint8_t(what) - 1))
                    .byte(0)
                    .byte(3)
                    .byte(1);
                for (int i = 0; i < 2; i++) {
                    made.byte(uint8_t(Act::sent)).byte(0).byte(uint8_t(Act::answer)).byte(0);
                    made.byte(1 | 2 | 4)
                        .byte(uint8_t(reason))
                        .byte(reason == uint16_t(Reason::told) ? 9 : 0);
                    made.byte(5).byte(1).byte(0).byte(0);
                }
                made.byte(uint8_t(Act::timer)).byte(0).byte(uint8_t(Act::timer)).byte(0);
            }
            out.push_back(made);
        }
    return out;
}
