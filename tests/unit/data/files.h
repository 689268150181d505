// A folder that goes away, and whole files in and out of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "data/reader.h"
#include "data/writer.h"
#include "temporary_folder.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

inline std::string read_whole(const std::string &path) {
    std::string content(std::filesystem::file_size(path), 0);
    FILE *file = std::fopen(path.c_str(), "rb");
    assert_non_null(file);
    assert_int_equal(std::fread(content.data(), 1, content.size(), file), content.size());
    std::fclose(file);
    return content;
}

inline void write_whole(const std::string &path, const std::string &content) {
    FILE *file = std::fopen(path.c_str(), "wb");
    assert_non_null(file);
    assert_int_equal(std::fwrite(content.data(), 1, content.size(), file), content.size());
    assert_int_equal(std::fclose(file), 0);
}

inline std::span<const uint8_t> bytes_of(const std::string &text) {
    return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

inline void write_records(const std::string &path, const std::vector<std::string> &records) {
    dtrain::data::Writer writer;
    assert_int_equal(writer.open(path.c_str()), DTRAIN_OK);
    for (const std::string &record : records)
        assert_int_equal(writer.append(bytes_of(record)), DTRAIN_OK);
    assert_int_equal(writer.close(), DTRAIN_OK);
}

inline dtrain::Status open_all(dtrain::data::Reader &reader, const std::vector<std::string> &paths,
                               dtrain_reader_params_t params = {}) {
    std::vector<const char *> names;
    for (const std::string &path : paths) names.push_back(path.c_str());
    return reader.open(names, params);
}

// Appends what there is to `records`; the status that ended it.
inline dtrain::Status drain(dtrain::data::Reader &reader, std::vector<std::string> &records) {
    std::span<const uint8_t> record;
    dtrain::Status s;
    while ((s = reader.next(record)) == DTRAIN_OK)
        records.emplace_back(reinterpret_cast<const char *>(record.data()), record.size());
    return s;
}

inline std::vector<std::string> read_records(const std::vector<std::string> &paths,
                                             dtrain_reader_params_t params = {}) {
    dtrain::data::Reader reader;
    std::vector<std::string> records;
    assert_int_equal(open_all(reader, paths, params), DTRAIN_OK);
    assert_int_equal(drain(reader, records), DTRAIN_ERR_NOT_FOUND);
    return records;
}
