// The files of a checkpoint's parts, dense and sparse, behind their checksums.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which table reads it, the length of the index, the index, the data. "@" in the index
// stands for the data's checksum.
#include "tests/fuzz/memory_file.h"
#include "tests/memory_disk.h"

#include "base/crc32c.h"
#include "ps/checkpoint/row_file.h"
#include "ps/checkpoint/shard_file.h"

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

constexpr CheckpointName checkpoint{7, 0xabc};
constexpr uint8_t tables = 6, first_sparse = 4;

TableParams params_of(uint8_t table) {
    TableParams params;
    params.dtype = DTRAIN_F32;
    params.rule = table % 2 ? DTRAIN_RULE_ADAM : DTRAIN_RULE_SGD;
    if (table >= first_sparse)
        params.dim = 3;
    else
        params.length = 12;
    if (table == 2) params.row_length = 4, params.rule = DTRAIN_RULE_LAMB;
    if (table == 3) {
        params.row_length = 4, params.storage_dtype = DTRAIN_I8, params.rule = DTRAIN_RULE_ADAGRAD;
    }
    if (table == 5) params.storage_dtype = DTRAIN_BF16, params.seed = 5;
    return params;
}

Part part_of(bool whole) {
    if (whole) return Range{0, 12};
    Part part(Range{0, 4});
    part.add(Range{8, 4});
    return part;
}

void read_dense(const std::string &path, const TableParams &params, bool whole) {
    ShardFile file;
    if (file.open(path, {}, checkpoint, "t", params) != DTRAIN_OK) return;
    FUZZ_REQUIRE(file.part().count() <= params.length);
    ShardImage image(params, part_of(whole));
    FUZZ_REQUIRE(image.allocate());
    (void)file.read(image);
}

void read_rows(const std::string &path, const TableParams &params, bool whole) {
    RowFile file;
    if (file.open(path, {}, checkpoint, "t", params) != DTRAIN_OK) return;
    RowImage image(params);
    uint64_t left = 1 << 20;
    const Reserve reserve = [&](uint64_t bytes) {
        const uint64_t granted = std::min(bytes, left);
        left -= granted;
        return granted;
    };
    (void)file.read(KeyPartition(whole ? 1 : 2), 0, image, reserve);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile file;
    fuzz::Input in(data, size);
    const uint8_t choice = in.byte(), table = choice % tables;
    const uint16_t length = in.take<uint16_t>();
    const Bytes index = in.bytes(length), numbers = in.rest();
    std::string text(index.begin(), index.end());
    if (const size_t at = text.find('@'); at != std::string::npos)
        text.replace(at, 1, std::to_string(crc32c(numbers.data(), numbers.size())));
    const Bytes whole = fuzz::Made().put(uint64_t(text.size())).all(text).all(numbers);
    file.assign(whole.data(), whole.size());
    const TableParams params = params_of(table);
    if (table >= first_sparse)
        read_rows(file.path(), params, choice < 128);
    else
        read_dense(file.path(), params, choice < 128);
    return 0;
}

namespace {

// The index of a genuine file, with '@' for its checksum, and the data behind it.
struct Written {
    std::string index;
    Bytes data;

    Bytes input(uint8_t choice) const {
        return fuzz::Made().byte(choice).put(uint16_t(index.size())).all(index).all(data);
    }
    Written with(std::string_view from, std::string_view to) const {
        Written other = *this;
        const size_t at = other.index.find(from);
        FUZZ_REQUIRE(at != std::string::npos);
        other.index.replace(at, from.size(), to);
        return other;
    }
};

Written write(uint8_t table, bool whole) {
    MemoryDisk kept;
    const TableParams params = params_of(table);
    if (table >= first_sparse) {
        RowImage image(params);
        FUZZ_REQUIRE(image.allocate(2));
        std::memset(image.keys->at(0), 0, 2 * sizeof(uint64_t));
        const uint64_t key = 5;
        std::memcpy(image.keys->at(sizeof key), &key, sizeof key);
        std::memset(image.rows->at(0), 0, 2 * image.layout.bytes);
        image.count = 2;
        FUZZ_REQUIRE(write_rows(kept, "p", "t", checkpoint, image) == DTRAIN_OK);
    } else {
        ShardImage image(params, part_of(whole));
        FUZZ_REQUIRE(image.allocate());
        FUZZ_REQUIRE(write_shard(kept, "p", "t", checkpoint, image) == DTRAIN_OK);
    }
    uint64_t length = 0;
    std::memcpy(&length, kept.written.data(), sizeof length);
    const auto begin = kept.written.begin() + 8;
    std::string index(begin, begin + long(length));
    const std::string key = "\"crc32c\":\"";
    const size_t at = index.find(key) + key.size();
    index.replace(at, index.find('"', at) - at, "@");
    return {index, Bytes(begin + long(length), kept.written.end())};
}

// Texts of an index that a mutation puts in the place of each other.
constexpr std::string_view texts[] = {
    "\"format\"",     "\"table\"",   "\"rule\"",   "\"learning_rate\"",
    "\"checkpoint\"", "\"updates\"", "\"clock\"",  "\"step\"",
    "\"crc32c\"",     "\"length\"",  "\"first\"",  "\"count\"",
    "\"ranges\"",     "\"keys\"",    "\"values\"", "\"seed\"",
    "\"row_length\"", "\"F32\"",     "\"U64\"",    "\"I8\"",
    "\"BF16\"",       "\"@\"",       "\"0\"",      "\"12\"",
    "\"0+4,8+4\"",    "[12]",        "[2,3]",      "[2]",
    "[0,16]"};

} // namespace

// Half of the mutations exchange one of the texts for another, so that the rest stays an index.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const std::string_view whole(reinterpret_cast<const char *>(data), size);
    const std::string_view from = texts[seed / 2 % std::size(texts)],
                           to = texts[seed / 64 % std::size(texts)];
    const size_t at = whole.find(from, seed / 4096 % (size + 1));
    const size_t changed = size - from.size() + to.size();
    if (seed % 2 == 0 || at == whole.npos || changed > max_size || size < 3)
        return LLVMFuzzerMutate(data, size, max_size);
    std::string other(whole);
    other.replace(at, from.size(), to);
    uint16_t length = 0;
    std::memcpy(&length, &other[1], sizeof length);
    length = uint16_t(length + to.size() - from.size());
    std::memcpy(&other[1], &length, sizeof length);
    std::memcpy(data, other.data(), other.size());
    return other.size();
}

std::vector<Bytes> fuzz::seeds() {
    constexpr uint8_t in_parts = 132; // choices from 128 on; 132 is a multiple of `tables`
    std::vector<Bytes> out;
    for (uint8_t table = 0; table < tables; table++)
        for (const bool whole : {true, false}) {
            const Written written = write(table, whole);
            out.push_back(written.input(uint8_t(whole ? table : in_parts + table)));
            out.push_back(written.input(uint8_t(whole ? in_parts + table : table)));
            if (table >= first_sparse) break;
        }
    const Written dense = write(1, true), parted = write(1, false), rows = write(4, true);
    for (const auto &[from, to] : {std::pair{"\"format\"", "\"former\""},
                                   {"shard 2", "shard 1"},
                                   {"\"t\"", "\"u\""},
                                   {"\"adam\"", "\"sgd\""},
                                   {"\"updates\":\"0\"", "\"updates\":\"none\""},
                                   {"\"step\":\"7\"", "\"step\":\"8\""},
                                   {"\"@\"", "\"5000000000\""},
                                   {"\"@\"", "\"1\""},
                                   {"\"length\":\"12\"", "\"length\":\"13\""},
                                   {"\"count\":\"12\"", "\"count\":\"11\""},
                                   {"\"first\":\"0\"", "\"first\":\"1\""},
                                   {"\"F32\"", "\"I32\""},
                                   {"[12]", "[3,4]"}})
        if (dense.index.find(from) != std::string::npos)
            out.push_back(dense.with(from, to).input(1));
    for (const char *ranges : {"0+4", "8+4,0+4", "0-4,8+4", "0+4;8+4", "0+4,8+5", "4+4,8+4"})
        out.push_back(parted.with("0+4,8+4", ranges).input(1));
    out.push_back(rows.with("\"keys\"", "\"kept\"").input(4));
    Written twice = rows; // the same key
    std::fill_n(twice.data.begin(), 2 * sizeof(uint64_t), uint8_t{0});
    out.push_back(twice.input(4));
    Written counts = dense; // larger than a table may have
    std::fill(counts.data.begin(), counts.data.end(), uint8_t{0xff});
    out.push_back(counts.input(1));
    out.push_back(Made().byte(0).put(uint16_t(3)).byte('{'));
    out.push_back(Made().byte(0));
    return out;
}
