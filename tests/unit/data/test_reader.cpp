// TFRecord files read back, damaged in every way, and dealt out to shards.
// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <unistd.h>

using namespace dtrain;

namespace {

void round_trip(void **) {
    TemporaryFolder folder;
    std::mt19937 random(7);
    std::vector<std::string> records = {"", "a", std::string(1 << 20, 'x'), ""};
    for (size_t length : {1u, 12u, 255u, 4096u, 262143u, 262144u, 262145u, 300000u}) {
        records.emplace_back(length, 0);
        for (char &c : records.back()) c = char(random());
    }
    write_records(folder.file("a"), records);
    assert_true(read_records({folder.file("a")}) == records);
}

// Written by TensorFlow: the first record of an event file.
const std::string golden("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22"
                         "\x09\0\0\xc0\x25\xdd\x75\xd5\x41\x1a\x0d"
                         "brain.Event:1"
                         "\xec\xf3\x32\x8d",
                         40);

void tensorflow_bytes(void **) {
    TemporaryFolder folder;
    const std::string record = golden.substr(12, 24);
    write_whole(folder.file("theirs"), golden);
    assert_true(read_records({folder.file("theirs")}) == std::vector{record});
    write_records(folder.file("ours"), {record});
    assert_true(read_whole(folder.file("ours")) == golden);
}

void every_flipped_bit_is_found(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("a");
    write_records(path, {"first", "", "the third record"});
    const std::string good = read_whole(path);
    for (size_t bit = 0; bit < 8 * good.size(); bit++) {
        std::string bad = good;
        bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
        write_whole(path, bad);
        data::Reader reader;
        std::vector<std::string> records;
        assert_int_equal(open_all(reader, {path}), DTRAIN_OK);
        assert_int_equal(drain(reader, records), DTRAIN_ERR_CORRUPT);
        assert_non_null(std::strstr(error_text(), (path + ": record at offset ").c_str()));
        // What came before the damage is whole: records begin at 0, 21 and 37.
        assert_int_equal(records.size(), bit < 8 * 21 ? 0 : bit < 8 * 37 ? 1 : 2);
    }
}

void every_truncation_is_found(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("a");
    write_records(path, {"first", "", "the third record"});
    const std::string good = read_whole(path);
    for (size_t length = 0; length < good.size(); length++) {
        write_whole(path, good.substr(0, length));
        const bool between = length == 0 || length == 21 || length == 37;
        data::Reader reader;
        std::vector<std::string> records;
        assert_int_equal(open_all(reader, {path}), DTRAIN_OK);
        assert_int_equal(drain(reader, records),
                         between ? DTRAIN_ERR_NOT_FOUND : DTRAIN_ERR_CORRUPT);
        if (!between) assert_non_null(std::strstr(error_text(), "truncated"));
        assert_int_equal(records.size(), length < 21 ? 0 : length < 37 ? 1 : 2);
    }
}

// A length with a right checksum, far beyond the file: refused before anything is allocated for it.
void huge_length(void **) {
    TemporaryFolder folder;
    for (uint64_t length : {uint64_t(1) << 40, UINT64_MAX, UINT64_MAX - 3}) {
        write_records(folder.file("length"),
                      {std::string(reinterpret_cast<const char *>(&length), sizeof length)});
        const std::string framed = read_whole(folder.file("length")).substr(12); // length, checksum
        write_whole(folder.file("a"), framed + "short");
        data::Reader reader;
        std::vector<std::string> records;
        assert_int_equal(open_all(reader, {folder.file("a")}), DTRAIN_OK);
        assert_int_equal(drain(reader, records), DTRAIN_ERR_CORRUPT);
        assert_non_null(std::strstr(error_text(), "truncated"));
    }
}

void max_record(void **) {
    TemporaryFolder folder;
    write_records(folder.file("a"), {"12345678", "123456789"});
    dtrain_reader_params_t params{};
    params.max_record = 8;
    data::Reader reader;
    std::vector<std::string> records;
    assert_int_equal(open_all(reader, {folder.file("a")}, params), DTRAIN_OK);
    assert_int_equal(drain(reader, records), DTRAIN_ERR_LIMIT);
    assert_int_equal(records.size(), 1);
    // The failure stays, then rewind() begins anew.
    assert_int_equal(drain(reader, records), DTRAIN_ERR_LIMIT);
    assert_non_null(std::strstr(error_text(), "9 bytes are more than max_record (8)"));
    assert_int_equal(reader.rewind(), DTRAIN_OK);
    assert_int_equal(drain(reader, records), DTRAIN_ERR_LIMIT);
    assert_int_equal(records.size(), 2);
}

void file_shrinks_while_open(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("a");
    write_records(path, {std::string(200 << 10, 'x'), std::string(200 << 10, 'y')});
    data::Reader reader;
    std::span<const uint8_t> record;
    assert_int_equal(open_all(reader, {path}), DTRAIN_OK);
    assert_int_equal(reader.next(record), DTRAIN_OK);
    assert_int_equal(truncate(path.c_str(), 300 << 10), 0);
    assert_int_equal(reader.next(record), DTRAIN_ERR_CORRUPT);
    assert_non_null(std::strstr(error_text(), "became shorter"));
}

void files_that_cannot_be_read(void **) {
    TemporaryFolder folder;
    write_records(folder.file("a"), {"a"});
    data::Reader missing, directory, lost;
    assert_int_equal(open_all(missing, {folder.file("a"), folder.file("none")}),
                     DTRAIN_ERR_NOT_FOUND);
    assert_non_null(std::strstr(error_text(), folder.file("none").c_str()));
    assert_int_equal(open_all(directory, {folder.name}), DTRAIN_ERR_UNSUPPORTED);
    // A file that goes after the start must not look like the end of the data.
    assert_int_equal(open_all(lost, {folder.file("a")}), DTRAIN_OK);
    assert_int_equal(unlink(folder.file("a").c_str()), 0);
    std::vector<std::string> records;
    assert_int_equal(drain(lost, records), DTRAIN_ERR_IO);
}

void bad_parameters(void **) {
    const struct {
        int32_t shard, shards;
        uint32_t flags;
    } bad[] = {{2, 2, 0}, {-1, 2, 0}, {1, 0, 0}, {0, -1, 0}, {0, 0, 1}};
    for (const auto &row : bad) {
        dtrain_reader_params_t params{};
        params.shard = row.shard;
        params.shards = row.shards;
        params.flags = row.flags;
        data::Reader reader;
        assert_int_equal(open_all(reader, {"/dev/null"}, params), DTRAIN_ERR_INVALID);
    }
    data::Reader none, null;
    assert_int_equal(open_all(none, {}), DTRAIN_ERR_INVALID);
    const char *paths[] = {nullptr};
    assert_int_equal(null.open(paths, {}), DTRAIN_ERR_INVALID);
}

// For any number of files and shards: every record goes to exactly one shard.
void shards_are_disjoint_and_complete(void **) {
    TemporaryFolder folder;
    std::mt19937 random(11);
    for (size_t files = 1; files <= 5; files++) {
        std::vector<std::string> paths, all;
        for (size_t f = 0; f < files; f++) {
            std::vector<std::string> records;
            for (size_t i = random() % 20; i > 0; i--)
                records.push_back(std::to_string(all.size() + records.size()) +
                                  std::string(random() % 3000, '.'));
            paths.push_back(folder.file(std::to_string(f)));
            write_records(paths.back(), records);
            all.insert(all.end(), records.begin(), records.end());
        }
        for (int32_t shards = 1; shards <= 7; shards++) {
            std::vector<std::string> together;
            for (int32_t shard = 0; shard < shards; shard++) {
                dtrain_reader_params_t params{};
                params.shard = shard;
                params.shards = shards;
                const auto own = read_records(paths, params);
                together.insert(together.end(), own.begin(), own.end());
            }
            std::sort(together.begin(), together.end());
            auto expected = all;
            std::sort(expected.begin(), expected.end());
            assert_true(together == expected);
        }
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(tensorflow_bytes),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(every_truncation_is_found),
        cmocka_unit_test(huge_length),
        cmocka_unit_test(max_record),
        cmocka_unit_test(file_shrinks_while_open),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(bad_parameters),
        cmocka_unit_test(shards_are_disjoint_and_complete),
    };
    return cmocka_run_group_tests_name("reader", tests, nullptr, nullptr);
}
