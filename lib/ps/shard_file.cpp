// SPDX-License-Identifier: Apache-2.0
#include "ps/shard_file.h"

#include "ps/part_file.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr const char *format_name = "dtrain shard 1";
constexpr size_t piece_bytes = 256 << 10;
constexpr uint64_t most_steps = uint64_t{1} << 53;

// f(data, bytes) for the array's numbers, piece by piece, until it fails.
template <class F>
Status for_each_piece(const ShardImage &image, const ShardImage::Array &array, F &&f) {
    const uint64_t count = array.items(image.range.count);
    if (array.numbers != nullptr) return f(array.numbers, count * array.size);
    uint64_t counts[4096];
    for (uint64_t first = 0; first < count; first += std::size(counts)) {
        Range part = {first, std::min<uint64_t>(std::size(counts), count - first)};
        image.steps.read(part, counts);
        Status s = f(counts, part.count * sizeof counts[0]);
        if (s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

template <class F> Status for_each_piece(const ShardImage &image, F &&f) {
    for (const ShardImage::Array &array : image.arrays())
        if (Status s = for_each_piece(image, array, f); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

std::vector<uint64_t> shape_of(const ShardImage::Array &array, const Range &range) {
    const uint64_t items = array.items(range.count);
    return array.width == 1 ? std::vector{items} : std::vector{items, array.width};
}

data::TensorIndex index_of(const std::string &table, const PartHeading &heading,
                           const ShardImage &image) {
    data::TensorIndex index;
    put_heading(heading, format_name, table, image.params, index);
    put_number("length", image.params.length, index);
    put_number("first", image.range.first, index);
    put_number("count", image.range.count, index);
    for (const ShardImage::Array &array : image.arrays())
        index.tensors.push_back(
            {.name = array.name, .dtype = array.dtype, .shape = shape_of(array, image.range)});
    return index;
}

} // namespace

Status write_shard(data::Disk &disk, const std::string &path, const std::string &table,
                   uint64_t step, const ShardImage &image) {
    auto pieces = [&](auto &&f) { return for_each_piece(image, f); };
    auto index = [&](const PartHeading &heading) { return index_of(table, heading, image); };
    return write_part(disk, path, step, image, pieces, index);
}

Status ShardFile::open(const std::string &path, const std::string &table,
                       const TableParams &params) {
    if (Status s = file_.open(path); s != DTRAIN_OK) return s;
    Status s = check(table, params);
    return s == DTRAIN_OK ? s : file_.within(s);
}

Status ShardFile::check(const std::string &table, const TableParams &params) {
    const data::TensorIndex &index = file_.index();
    if (Status s = take_heading(index, format_name, table, params, heading_); s != DTRAIN_OK)
        return s;
    uint64_t length = 0;
    for (auto [key, value] :
         {std::pair{"length", &length}, {"first", &range_.first}, {"count", &range_.count}})
        if (Status s = take_number(index, key, *value); s != DTRAIN_OK) return s;
    if (length != params.length)
        return fail(DTRAIN_ERR_MISMATCH, "the table had %llu elements and has %llu now",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(params.length));
    if (!Range{0, length}.contains(range_))
        return fail(DTRAIN_ERR_CORRUPT, "elements %llu + %llu are not all in the table",
                    static_cast<unsigned long long>(range_.first),
                    static_cast<unsigned long long>(range_.count));
    return check_arrays(params);
}

Status ShardFile::check_arrays(const TableParams &params) {
    const auto due = ShardImage::arrays_of(params);
    const data::TensorIndex &index = file_.index();
    for (const ShardImage::Array &array : due) {
        const bool ends = range_.end() == params.length || range_.count % array.elements == 0;
        if (range_.first % array.elements != 0 || !ends)
            return fail(DTRAIN_ERR_MISMATCH, "it is not made of whole rows of %llu elements",
                        static_cast<unsigned long long>(array.elements));
        if (Status s = check_array(index, array.name.c_str(), array.dtype, shape_of(array, range_));
            s != DTRAIN_OK)
            return s;
    }
    if (index.tensors.size() == due.size()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_MISMATCH, "it has %zu arrays where the table has %zu",
                index.tensors.size(), due.size());
}

Status ShardFile::read(ShardImage &image) {
    const auto arrays = image.arrays();
    uint32_t crc = 0;
    for (const data::Tensor &tensor : file_.index().tensors) {
        auto its = [&](const ShardImage::Array &array) { return tensor.name == array.name; };
        const auto &array = *std::find_if(arrays.begin(), arrays.end(), its);
        if (Status s = read_array(array, tensor.bytes, image, crc); s != DTRAIN_OK) return s;
    }
    Status s = take_over(heading_, crc, image);
    return s == DTRAIN_OK ? s : file_.within(s);
}

Status ShardFile::read_array(const ShardImage::Array &array, uint64_t bytes, ShardImage &image,
                             uint32_t &crc) {
    const uint64_t most = std::max<uint64_t>(piece_bytes / array.size, 1) * array.size;
    const Range wanted = {image.range.first / array.elements, array.items(image.range.count)};
    for (uint64_t at = 0; at < bytes;) {
        const uint64_t n = std::min(bytes - at, most);
        const uint8_t *data = nullptr;
        if (Status s = file_.take(n, data); s != DTRAIN_OK) return s;
        crc = wire::crc32c(data, n, crc);
        const Range here = {range_.first / array.elements + at / array.size, n / array.size};
        const Range both = intersect(here, wanted);
        at += n;
        if (both.count == 0) continue;
        const uint8_t *from = data + (both.first - here.first) * array.size;
        const Range to = {both.first - wanted.first, both.count};
        if (array.numbers != nullptr) {
            std::memcpy(array.numbers + to.first * array.size, from, to.count * array.size);
            continue;
        }
        std::vector<uint64_t> counts(to.count); // aligned
        std::memcpy(counts.data(), from, to.count * sizeof counts[0]);
        if (*std::max_element(counts.begin(), counts.end()) > most_steps)
            return file_.within(fail(DTRAIN_ERR_CORRUPT, "more steps than can have been made"));
        image.steps.write(to, counts.data());
    }
    return DTRAIN_OK;
}

} // namespace dtrain::ps
