// Finds the records of a shard in its files, and checks their frames.
// SPDX-License-Identifier: Apache-2.0
#include "data/reader.h"

#include "data/frame.h"

#include <algorithm>

namespace dtrain::data {
namespace {

constexpr uint64_t default_max_record = 64 << 20;

unsigned long long print(uint64_t number) { return number; }

Status check(std::span<const char *const> paths, const dtrain_reader_params_t &params) {
    if (paths.empty()) return fail(DTRAIN_ERR_INVALID, "the list of files is empty");
    for (size_t i = 0; i < paths.size(); i++)
        if (paths[i] == nullptr) return fail(DTRAIN_ERR_INVALID, "paths[%zu] is NULL", i);
    if (params.shards < 0 || params.shard < 0 || params.shard >= std::max(params.shards, 1))
        return fail(DTRAIN_ERR_INVALID, "shard %d of %d does not exist", params.shard,
                    params.shards);
    if (params.flags != 0)
        return fail(DTRAIN_ERR_INVALID, "reader flags 0x%x are unknown; use 0", params.flags);
    return DTRAIN_OK;
}

} // namespace

Status Reader::open(std::span<const char *const> paths, const dtrain_reader_params_t &params) {
    if (Status s = check(paths, params); s != DTRAIN_OK) return s;
    max_record_ = params.max_record != 0 ? params.max_record : default_max_record;
    const size_t shards = size_t(std::max(params.shards, 1)), shard = size_t(params.shard);
    if (paths.size() >= shards) {
        for (size_t i = shard; i < paths.size(); i += shards) paths_.emplace_back(paths[i]);
    } else {
        paths_.assign(paths.begin(), paths.end());
        stride_ = shards;
        first_ = shard;
    }
    while (next_path_ < paths_.size())
        if (Status s = open_next_file(); s != DTRAIN_OK) return s;
    return rewind();
}

Status Reader::rewind() {
    file_.close();
    next_path_ = 0;
    record_ = 0;
    failure_ = DTRAIN_OK;
    return DTRAIN_OK;
}

Status Reader::next(std::span<const uint8_t> &record) {
    if (failure_ != DTRAIN_OK) return fail(failure_, "%s", failure_text_.c_str());
    Status status = DTRAIN_OK;
    for (bool mine = false; status == DTRAIN_OK && !mine;) {
        if (file_.remaining() == 0) {
            if (next_path_ == paths_.size()) return fail(DTRAIN_ERR_NOT_FOUND, "no more records");
            status = open_next_file();
            continue;
        }
        mine = record_ % stride_ == first_;
        status = read_record(record, mine);
        record_++;
    }
    if (status != DTRAIN_OK) {
        // NOT_FOUND would mean the end of the records; here a file that existed has gone.
        failure_ = status = status == DTRAIN_ERR_NOT_FOUND ? DTRAIN_ERR_IO : status;
        failure_text_ = error_text();
    }
    return status;
}

Status Reader::open_next_file() {
    const std::string &path = paths_[next_path_++];
    Status s = file_.open(path);
    return s == DTRAIN_OK ? s : fail_within(s, "%s", path.c_str());
}

// Reads one record, or skips it if it belongs to another shard.
Status Reader::read_record(std::span<const uint8_t> &record, bool mine) {
    const uint64_t start = file_.offset();
    auto within = [&](Status s) {
        return fail_within(s, "%s: record at offset %llu", paths_[next_path_ - 1].c_str(),
                           print(start));
    };
    uint64_t length = 0;
    if (Status s = read_length(length); s != DTRAIN_OK) return within(s);
    if (!mine) {
        file_.advance(length + checksum_size);
        return DTRAIN_OK;
    }
    const uint8_t *data = nullptr;
    if (Status s = file_.take(size_t(length) + checksum_size, data); s != DTRAIN_OK)
        return within(s);
    const auto stored = uint32_t(load_le(data + length, checksum_size));
    const uint32_t computed = masked_crc(data, size_t(length));
    if (stored != computed)
        return within(fail(DTRAIN_ERR_CORRUPT,
                           "the data's checksum is wrong (stored %08x, computed %08x)", stored,
                           computed));
    record = {data, size_t(length)};
    return DTRAIN_OK;
}

// On success the data and their checksum are in the file and `length` is within the limit.
Status Reader::read_length(uint64_t &length) {
    if (file_.remaining() < header_size)
        return fail(DTRAIN_ERR_CORRUPT, "the file is truncated (%llu of the header's %zu bytes)",
                    print(file_.remaining()), header_size);
    const uint8_t *header = nullptr;
    if (Status s = file_.take(header_size, header); s != DTRAIN_OK) return s;
    length = load_le(header, length_size);
    const auto stored = uint32_t(load_le(header + length_size, checksum_size));
    const uint32_t computed = masked_crc(header, length_size);
    if (stored != computed)
        return fail(DTRAIN_ERR_CORRUPT,
                    "the length's checksum is wrong (stored %08x, computed %08x); is it a TFRecord "
                    "file, uncompressed?",
                    stored, computed);
    const uint64_t rest = file_.remaining();
    if (rest < checksum_size || length > rest - checksum_size)
        return fail(DTRAIN_ERR_CORRUPT,
                    "the file is truncated (%llu bytes follow; %llu of data and %zu of checksum "
                    "are expected)",
                    print(rest), print(length), checksum_size);
    if (length > max_record_)
        return fail(DTRAIN_ERR_LIMIT, "%llu bytes are more than max_record (%llu) allows",
                    print(length), print(max_record_));
    return DTRAIN_OK;
}

} // namespace dtrain::data
