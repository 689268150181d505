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

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t table = 0; table < tables; table++)
        for (const bool whole : {true, false}) {
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
            out.push_back(Made()
                              .byte(uint8_t(whole ? table : 126 + table + 6))
                              .put(uint16_t(index.size()))
                              .all(index)
                              .all(Bytes(begin + long(length), kept.written.end())));
            if (table >= first_sparse) break;
        }
    return out;
}
