// Writes sparse shards to files and reads them.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/row_file.h"

#include "ps/checkpoint/part_file.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr const char *row_format = "dtrain rows 2";

uint64_t rows_per_piece(uint64_t row_bytes) {
    return std::max<uint64_t>(piece_bytes / row_bytes, 1);
}

// Calls f(data, bytes) for the keys, then for each column, piece by piece, until a call fails.
template <class F> Status for_each_piece(const RowImage &image, F &&f) {
    if (Status s = f(image.keys->at(0), image.count * sizeof(uint64_t)); s != DTRAIN_OK) return s;
    std::vector<char> piece;
    for (const RowImage::Column &column : RowImage::columns_of(image.params)) {
        const uint64_t most = rows_per_piece(column.bytes);
        piece.resize(most * column.bytes);
        for (uint64_t first = 0; first < image.count; first += most) {
            const uint64_t n = std::min(most, image.count - first);
            for (uint64_t i = 0; i < n; i++)
                std::memcpy(&piece[i * column.bytes],
                            image.rows->at((first + i) * image.layout.bytes + column.at),
                            column.bytes);
            if (Status s = f(piece.data(), n * column.bytes); s != DTRAIN_OK) return s;
        }
    }
    return DTRAIN_OK;
}

std::vector<uint64_t> shape_of(const RowImage::Column &column, uint64_t count) {
    return column.width == 0 ? std::vector{count} : std::vector{count, column.width};
}

} // namespace

Status write_rows(data::Disk &disk, const std::string &path, const std::string &table,
                  const CheckpointName &checkpoint, const RowImage &image) {
    auto pieces = [&](auto &&f) { return for_each_piece(image, f); };
    auto index_of = [&](const PartHeading &heading) {
        data::TensorIndex index;
        put_heading(heading, row_format, table, image.params, index);
        index.tensors.push_back({.name = "keys", .dtype = DTRAIN_U64, .shape = {image.count}});
        for (const RowImage::Column &column : RowImage::columns_of(image.params))
            index.tensors.push_back({.name = column.name,
                                     .dtype = column.dtype,
                                     .shape = shape_of(column, image.count)});
        return index;
    };
    return write_part(disk, path, checkpoint, image, pieces, index_of);
}

Status RowFile::open(const std::string &path, const data::Seal &known,
                     const CheckpointName &checkpoint, const std::string &table,
                     const TableParams &params) {
    if (Status s = file_.open(path, known); s != DTRAIN_OK) return s;
    Status s = check(checkpoint, table, params);
    return s == DTRAIN_OK ? s : file_.within(s);
}

Status RowFile::check(const CheckpointName &checkpoint, const std::string &table,
                      const TableParams &params) {
    const data::TensorIndex &index = file_.index();
    if (Status s = take_heading(index, row_format, table, params, checkpoint, heading_);
        s != DTRAIN_OK)
        return s;
    const data::Tensor *keys = index.tensor("keys");
    if (keys == nullptr || keys->dtype != DTRAIN_U64 || keys->shape.size() != 1)
        return fail(DTRAIN_ERR_CORRUPT, "it has no list of keys");
    count_ = keys->shape[0];
    if (count_ > 0 && keys->begin != 0)
        return fail(DTRAIN_ERR_CORRUPT, "its data does not begin with the keys");
    const auto columns = RowImage::columns_of(params);
    for (const RowImage::Column &column : columns)
        if (Status s =
                check_array(index, column.name.c_str(), column.dtype, shape_of(column, count_));
            s != DTRAIN_OK)
            return s;
    if (index.tensors.size() == columns.size() + 1) return DTRAIN_OK;
    return fail(DTRAIN_ERR_MISMATCH, "it has %zu arrays besides the keys, but the table has %zu",
                index.tensors.size() - 1, columns.size());
}

Status RowFile::take(uint64_t bytes, const uint8_t *&data) {
    Status s = file_.take(bytes, data);
    if (s == DTRAIN_OK) crc_ = crc32c(data, bytes, crc_);
    return s;
}

Status RowFile::read_keys(const KeyPartition &partition, uint32_t server, RowImage &image,
                          const Reserve &reserve) {
    places_.assign(count_, nullptr);
    std::vector<uint64_t> keys, own, indices;
    const uint64_t most = rows_per_piece(sizeof(uint64_t));
    for (uint64_t first = 0; first < count_; first += most) {
        keys.resize(std::min(most, count_ - first));
        const uint8_t *data = nullptr;
        if (Status s = take(keys.size() * sizeof keys[0], data); s != DTRAIN_OK) return s;
        std::memcpy(keys.data(), data, keys.size() * sizeof keys[0]);
        own.clear();
        indices.clear();
        for (uint64_t i = 0; i < keys.size(); i++) {
            if (partition.server_of(keys[i]) != server) continue;
            own.push_back(keys[i]);
            indices.push_back(first + i);
        }
        uint64_t fresh = 0;
        auto make = [&](uint64_t, char *row) {
            std::memset(row, 0, image.layout.bytes);
            fresh++;
        };
        for (size_t made = 0;;) {
            auto note = [&](size_t i, char *row) { places_[indices[made + i]] = row; };
            made += image.store.obtain(own.data() + made, own.size() - made, make, note);
            if (made == own.size()) break;
            if (Status s = image.make_room(reserve); s != DTRAIN_OK) return s;
        }
        if (fresh < own.size()) return fail(DTRAIN_ERR_CORRUPT, "it contains a key twice");
    }
    return DTRAIN_OK;
}

Status RowFile::read_column(const RowImage::Column &column) {
    const uint64_t most = rows_per_piece(column.bytes);
    for (uint64_t first = 0; first < count_; first += most) {
        const uint64_t n = std::min(most, count_ - first);
        const uint8_t *data = nullptr;
        if (Status s = take(n * column.bytes, data); s != DTRAIN_OK) return s;
        for (uint64_t i = 0; i < n; i++)
            if (char *row = places_[first + i]; row != nullptr)
                std::memcpy(row + column.at, data + i * column.bytes, column.bytes);
    }
    return DTRAIN_OK;
}

Status RowFile::read(const KeyPartition &partition, uint32_t server, RowImage &image,
                     const Reserve &reserve) {
    if (Status s = read_keys(partition, server, image, reserve); s != DTRAIN_OK)
        return file_.within(s);
    const auto columns = RowImage::columns_of(image.params);
    for (const data::Tensor &tensor : file_.index().tensors) {
        auto its = [&](const RowImage::Column &column) { return tensor.name == column.name; };
        auto column = std::find_if(columns.begin(), columns.end(), its);
        if (column == columns.end()) continue; // the keys
        if (Status s = read_column(*column); s != DTRAIN_OK) return s;
    }
    Status s = take_over(heading_, crc_, image);
    return s == DTRAIN_OK ? s : file_.within(s);
}

} // namespace dtrain::ps
