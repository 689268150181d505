// The files of a checkpoint: what a worker writes of one, and what may happen to them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/crc32c.h"
#include "ps/checkpoint/checkpoint_folder.h"

#include "check.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace dtrain::ps {

// Of one lineage, each after the one before.
inline Manifest next_manifest(uint64_t step) {
    static uint64_t made = 0;
    ++made;
    return {.step = step, .id = made, .lineage = 0xabc, .serial = made, .job = 0xabc};
}

inline std::string content_of(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Writes the manifest again for its parts as they are, as if all had been written so.
inline void seal_again(CheckpointFolder &folder, uint64_t step) {
    Manifest manifest;
    assert_int_equal(folder.read(step, manifest), DTRAIN_OK);
    for (Manifest::Table &table : manifest.tables)
        for (size_t i = 0; i < table.parts.size(); i++) {
            std::string name = table.name; // none of these tests' needs escaping twice
            char number[32];
            std::snprintf(number, sizeof number, "-%05zu-of-%05zu", i, table.parts.size());
            const std::string text =
                content_of(folder.folder(step) + "/" + name + number + ".safetensors");
            uint64_t length = 0;
            std::memcpy(&length, text.data(), sizeof length);
            table.parts[i] = {text.size(), crc32c(text.data(), std::min(text.size(), 8 + length))};
        }
    assert_int_equal(folder.complete(manifest), DTRAIN_OK);
}

// read() fails as a damaged file is to be refused, naming the file.
template <class F> void assert_refused(const std::string &path, F &&read) {
    const Status s = read();
    const std::string name = std::filesystem::path(path).filename();
    const bool named = std::strstr(error_text(), name.c_str()) != nullptr;
    if (s != DTRAIN_ERR_CORRUPT && s != DTRAIN_ERR_MISMATCH)
        fail_msg("%s: status %d, \"%s\"", name.c_str(), s, error_text());
    if (!named) fail_msg("\"%s\" does not name %s", error_text(), name.c_str());
}

// Changes each bit of each file in the folder, and cuts each at every length.
template <class F> void damage_every_bit(const std::string &folder, F &&read) {
    uint64_t bits = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        const std::string path = entry.path(), good = content_of(path);
        auto write = [&](const std::string &text) {
            std::ofstream(path, std::ios::binary) << text;
        };
        for (size_t bit = 0; bit < 8 * good.size(); bit++, bits++) {
            std::string bad = good;
            bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
            write(bad);
            assert_refused(path, read);
        }
        for (size_t length = 0; length < good.size(); length++) {
            write(good.substr(0, length));
            assert_refused(path, read);
        }
        if (!good.empty()) {
            write(good + good.back());
            assert_refused(path, read);
        }
        write(good);
    }
    assert_true(bits > 5000);
    assert_int_equal(read(), DTRAIN_OK);
}

} // namespace dtrain::ps
