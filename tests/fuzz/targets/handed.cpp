// Parts of tables that a worker hands to another when it leaves an elastic job: their headings and
// pieces.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the table (its kind, or its description), the states of its function, then pieces. Pieces
// that fit are given to a server as requests.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/table_tables.h"

#include "ps/server/handed_part.h"
#include "ps/server/server.h"
#include "ps/table/protocol.h"
#include "ps/table/table_wire.h"

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

constexpr uint8_t described = 255; // the table's description follows

bool read_states(const Bytes &bytes, TableParams &params) {
    if (!decode_states(bytes.data(), bytes.size(), params.states)) return false;
    std::vector<FunctionState> again;
    const std::string text = encode_states(params.states);
    FUZZ_REQUIRE(decode_states(text.data(), text.size(), again));
    FUZZ_REQUIRE(encode_states(again) == text && again.size() == params.states.size());
    return true;
}

HandedPiece some_piece(const TableParams &params, fuzz::Input &in) {
    HandedPiece piece;
    piece.array = in.byte();
    const uint8_t first = in.byte(), count = in.byte(), how = in.byte();
    piece.range = {first, count};
    if (how & 1) piece.range = {in.take<uint64_t>(), in.take<uint64_t>()};
    if (is_sparse(params) != ((how & 2) != 0)) {
        piece.range.first = 0;
        for (uint64_t i = 0; i < piece.range.count % 256; i++) piece.keys.push_back(i * 7 + first);
    }
    StateArray found;
    const bool there = piece.array == 0 || find_state(params, piece.state(), found);
    const Item item = there ? item_of(params, piece.kind(params), piece.state()) : Item{1, 0};
    uint64_t bytes = item.bytes_of(piece.range.count % 256);
    if (how & 4) bytes = in.byte();
    piece.numbers.assign(std::min<uint64_t>(bytes, 64 << 10), char(how));
    return piece;
}

// As a worker does that has taken the part.
void give(Server &server, const TableParams &params, const HandedPiece &piece, uint64_t sequence) {
    RequestHeader header;
    header.kind = piece.kind(params);
    header.sequence = sequence;
    header.first = piece.range.first;
    header.count = piece.range.count;
    header.argument = piece.state();
    std::vector<uint64_t> payload; // aligned
    const size_t keys = piece.keys.size() * sizeof(uint64_t), all = keys + piece.numbers.size();
    payload.resize(all / sizeof(uint64_t) + 1);
    auto *to = reinterpret_cast<char *>(payload.data());
    if (keys > 0) std::memcpy(to, piece.keys.data(), keys);
    if (!piece.numbers.empty()) std::memcpy(to + keys, piece.numbers.data(), piece.numbers.size());
    Responses out;
    server.on_request(0, header, to, all, out);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t kind = in.byte();
    TableParams params;
    if (kind == described) {
        const Bytes bytes = in.bytes(in.take<uint16_t>() % 2048);
        std::string name;
        uint32_t bad = field_count;
        if (!decode_table(bytes.data(), bytes.size(), params, name, bad) || bad != field_count)
            return 0;
    } else {
        params = fuzz::table_of(kind);
    }
    if (!read_states(in.bytes(in.byte()), params)) return 0;
    Server server({.index = 0, .servers = 1, .workers = 1, .memory_limit = 1 << 20});
    RequestHeader create;
    const std::string payload = encode_table(params, "t");
    Responses out;
    server.on_request(0, create, payload.data(), payload.size(), out);
    uint64_t sequence = 1;
    for (int pieces = 0; !in.empty() && pieces < 20; pieces++) {
        const HandedPiece piece = some_piece(params, in);
        if (!piece.fits(params)) continue;
        FUZZ_REQUIRE(piece.range.count > 0 && !piece.numbers.empty());
        FUZZ_REQUIRE(is_sparse(params) || piece.range.end() <= params.length);
        give(server, params, piece, sequence++);
    }
    FUZZ_REQUIRE(server.memory_used() <= 1 << 20);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < table_kinds; kind++) {
        Made made;
        made.byte(kind).byte(0);
        for (const uint8_t array : {0, 1, 2}) {
            made.byte(array).byte(0).byte(5).byte(0);
            made.byte(array).byte(5).byte(5).byte(0);
            made.byte(array).byte(5).byte(0).byte(2);
            made.byte(array).byte(5).byte(1).byte(4).byte(3);
        }
        made.byte(0).byte(0).byte(0).byte(1).put(uint64_t{1} << 63).put(uint64_t{1} << 63);
        out.push_back(made);
    }
    const std::string states =
        encode_states({{"momentum", DTRAIN_F32, 0}, {"steps", DTRAIN_U64, 1}});
    TableParams with_function = table_of(0);
    with_function.function = "mine";
    const std::string table = encode_table(with_function, "t");
    Made made;
    made.byte(described).put(uint16_t(table.size())).all(table).byte(uint8_t(states.size()));
    made.all(states).byte(1).byte(0).byte(5).byte(0).byte(2).byte(0).byte(5).byte(0);
    out.push_back(made);
    Made bad;
    bad.byte(0).byte(uint8_t(states.size() - 1)).all(states.substr(1));
    out.push_back(bad);
    Made unknown = Made().byte(0).byte(40).all(std::string(32, 'x')).put(uint64_t{9});
    out.push_back(unknown);
    return out;
}
