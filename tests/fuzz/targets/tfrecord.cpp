// TFRecord files, as anybody may have written them.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the shards, then a file. Its checksums are computed after three of four mutations.
#include "tests/fuzz/memory_file.h"

#include "data/frame.h"
#include "data/reader.h"

using namespace dtrain;
using namespace dtrain::data;
using fuzz::Bytes;

namespace {

constexpr size_t params_size = 2;

Bytes file_of(const std::vector<Bytes> &records) {
    Bytes file;
    for (const Bytes &record : records) {
        uint8_t header[header_size], sum[checksum_size];
        store_le(header, record.size(), length_size);
        store_le(header + length_size, masked_crc(header, length_size), checksum_size);
        store_le(sum, masked_crc(record.data(), record.size()), checksum_size);
        file.insert(file.end(), header, header + header_size);
        file.insert(file.end(), record.begin(), record.end());
        file.insert(file.end(), sum, sum + checksum_size);
    }
    return file;
}

void mend(uint8_t *data, size_t size) {
    size_t at = params_size;
    while (at + header_size <= size) {
        const uint64_t length = load_le(data + at, length_size);
        store_le(data + at + length_size, masked_crc(data + at, length_size), checksum_size);
        at += header_size;
        if (length > size - at || size - at - length < checksum_size) break;
        store_le(data + at + length, masked_crc(data + at, length), checksum_size);
        at += length + checksum_size;
    }
}

} // namespace

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 4 != 0) mend(data, size);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile file;
    fuzz::Input in(data, size);
    dtrain_reader_params_t params{};
    const uint8_t shards = in.byte(), limit = in.byte();
    params.struct_size = sizeof params;
    params.shards = 1 + shards % 4;
    params.shard = shards / 4 % params.shards;
    params.max_record = limit % 2 ? limit : 0;
    const Bytes bytes = in.rest();
    file.assign(bytes.data(), bytes.size());
    const char *const paths[] = {file.path().c_str()};
    Reader reader;
    if (reader.open(paths, params) != DTRAIN_OK) return 0;
    // Twice the same.
    std::vector<Bytes> first;
    for (int round = 0; round < 2; round++) {
        std::span<const uint8_t> record;
        size_t count = 0, total = 0;
        Status s;
        while ((s = reader.next(record)) == DTRAIN_OK) {
            Bytes copy(record.begin(), record.end());
            total += copy.size() + header_size + checksum_size;
            FUZZ_REQUIRE(params.max_record == 0 || copy.size() <= params.max_record);
            if (round == 0)
                first.push_back(std::move(copy));
            else
                FUZZ_REQUIRE(count < first.size() && first[count] == copy);
            count++;
        }
        FUZZ_REQUIRE(total <= bytes.size() && count == first.size());
        FUZZ_REQUIRE(s == DTRAIN_ERR_NOT_FOUND || s == DTRAIN_ERR_CORRUPT || s == DTRAIN_ERR_LIMIT);
        FUZZ_REQUIRE(reader.next(record) == s);
        FUZZ_REQUIRE(reader.rewind() == DTRAIN_OK);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const std::vector<Bytes> records{{1, 2, 3}, {}, Bytes(100, 7), {4}};
    std::vector<Bytes> out;
    for (const uint8_t shards : {0, 1, 6})
        out.push_back(Made().byte(shards).byte(0).all(file_of(records)));
    out.push_back(Made().byte(0).byte(51).all(file_of(records))); // 100 bytes are too many
    return out;
}
