// Writes dense shards to files and reads them.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/shard_file.h"

#include "ps/checkpoint/part_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace dtrain::ps {
namespace {

constexpr const char *shard_format = "dtrain shard 2";

// Calls f(data, bytes) for the array's numbers, piece by piece, until a call fails.
template <class F>
Status for_each_piece(const ShardImage &image, const ShardImage::Array &array, F &&f) {
    const uint64_t count = array.items(image.part.count());
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

std::vector<uint64_t> shape_of(const ShardImage::Array &array, const Part &part) {
    const uint64_t items = array.items(part.count());
    return array.width == 1 ? std::vector{items} : std::vector{items, array.width};
}

std::string text_of(const Part &part) {
    std::string text;
    for (size_t i = 0; i < part.ranges(); ++i) {
        char one[48];
        std::snprintf(one, sizeof one, "%s%llu+%llu", i > 0 ? "," : "",
                      static_cast<unsigned long long>(part.range(i).first),
                      static_cast<unsigned long long>(part.range(i).count));
        text += one;
    }
    return text;
}

// Parses the next range of a text of text_of(); false: the text is malformed.
bool take_range(std::string_view &text, Range &range) {
    const char *end = text.data() + text.size();
    auto number = std::from_chars(text.data(), end, range.first);
    if (number.ec != std::errc{} || number.ptr == end || *number.ptr != '+') return false;
    number = std::from_chars(number.ptr + 1, end, range.count);
    if (number.ec != std::errc{} || (number.ptr != end && *number.ptr != ',')) return false;
    text.remove_prefix(size_t(number.ptr - text.data()) + (number.ptr != end));
    return true;
}

data::TensorIndex index_of(const std::string &table, const PartHeading &heading,
                           const ShardImage &image) {
    data::TensorIndex index;
    put_heading(heading, shard_format, table, image.params, index);
    put_number("length", image.params.length, index);
    put_number("first", image.part.ranges() > 0 ? image.part.range(0).first : 0, index);
    put_number("count", image.part.count(), index);
    if (image.part.ranges() > 1) index.metadata.emplace_back("ranges", text_of(image.part));
    for (const ShardImage::Array &array : image.arrays())
        index.tensors.push_back(
            {.name = array.name, .dtype = array.dtype, .shape = shape_of(array, image.part)});
    return index;
}

} // namespace

Status write_shard(data::Disk &disk, const std::string &path, const std::string &table,
                   const CheckpointName &checkpoint, const ShardImage &image) {
    auto pieces = [&](auto &&f) { return for_each_piece(image, f); };
    auto index = [&](const PartHeading &heading) { return index_of(table, heading, image); };
    return write_part(disk, path, checkpoint, image, pieces, index);
}

Status ShardFile::open(const std::string &path, const data::Seal &known,
                       const CheckpointName &checkpoint, const std::string &table,
                       const TableParams &params) {
    if (Status s = file_.open(path, known); s != DTRAIN_OK) return s;
    Status s = check(checkpoint, table, params);
    return s == DTRAIN_OK ? s : file_.within(s);
}

Status ShardFile::check(const CheckpointName &checkpoint, const std::string &table,
                        const TableParams &params) {
    const data::TensorIndex &index = file_.index();
    if (Status s = take_heading(index, shard_format, table, params, checkpoint, heading_);
        s != DTRAIN_OK)
        return s;
    uint64_t length = 0;
    if (Status s = take_number(index, "length", length); s != DTRAIN_OK) return s;
    if (length != params.length)
        return fail(DTRAIN_ERR_MISMATCH, "the table had %llu elements and has %llu now",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(params.length));
    if (Status s = take_part(length); s != DTRAIN_OK) return s;
    return check_arrays(params);
}

Status ShardFile::take_part(uint64_t length) {
    const data::TensorIndex &index = file_.index();
    Range whole; // the first element, and the number of elements in all ranges
    for (auto [key, value] : {std::pair{"first", &whole.first}, {"count", &whole.count}})
        if (Status s = take_number(index, key, *value); s != DTRAIN_OK) return s;
    const std::string *listed = index.find("ranges");
    std::string_view text = listed != nullptr ? std::string_view(*listed) : std::string_view();
    uint64_t left = length, next = 0;
    auto add = [&](const Range &range) {
        if (range.first < next || !Range{next, left}.contains(range)) return false;
        part_.add(range);
        next = range.end();
        left = length - next;
        return true;
    };
    bool good = listed != nullptr || add(whole);
    for (Range range; good && !text.empty();) good = take_range(text, range) && add(range);
    if (good && part_.count() == whole.count) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CORRUPT, "its elements, %llu from %llu on, are not all in the table",
                static_cast<unsigned long long>(whole.first),
                static_cast<unsigned long long>(whole.count));
}

Status ShardFile::check_arrays(const TableParams &params) {
    const auto due = ShardImage::arrays_of(params);
    const data::TensorIndex &index = file_.index();
    for (const ShardImage::Array &array : due) {
        for (size_t i = 0; i < part_.ranges(); ++i) {
            const Range &range = part_.range(i);
            const bool ends = range.end() == params.length || range.count % array.elements == 0;
            if (range.first % array.elements != 0 || !ends)
                return fail(DTRAIN_ERR_MISMATCH, "it is not made of whole rows of %llu elements",
                            static_cast<unsigned long long>(array.elements));
        }
        if (Status s = check_array(index, array.name.c_str(), array.dtype, shape_of(array, part_));
            s != DTRAIN_OK)
            return s;
    }
    if (index.tensors.size() == due.size()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_MISMATCH, "it has %zu arrays, but the table has %zu",
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
    Status status = DTRAIN_OK;
    for (uint64_t at = 0; at < bytes && status == DTRAIN_OK;) {
        const uint64_t n = std::min(bytes - at, most);
        const uint8_t *data = nullptr;
        if (Status s = file_.take(n, data); s != DTRAIN_OK) return s;
        crc = crc32c(data, n, crc);
        const uint64_t first = at / array.size * array.elements; // place of the first element
        part_.for_each_run(
            {first, n / array.size * array.elements}, [&](const Range &here, uint64_t from) {
                image.part.for_each_overlap(here, [&](const Range &both, uint64_t to) {
                    const uint64_t skipped = from - first + (both.first - here.first);
                    const Status s = put_items(array, data + skipped / array.elements * array.size,
                                               {to, both.count}, image);
                    if (s != DTRAIN_OK) status = s;
                });
            });
        at += n;
    }
    return status;
}

// Writes items at these places of the image.
Status ShardFile::put_items(const ShardImage::Array &array, const uint8_t *from,
                            const Range &places, ShardImage &image) {
    const Range items = {places.first / array.elements, array.items(places.count)};
    if (array.numbers != nullptr) {
        std::memcpy(array.numbers + items.first * array.size, from, items.count * array.size);
        return DTRAIN_OK;
    }
    std::vector<uint64_t> counts(items.count); // aligned
    std::memcpy(counts.data(), from, items.count * sizeof counts[0]);
    if (*std::max_element(counts.begin(), counts.end()) > most_updates)
        return file_.within(fail(DTRAIN_ERR_CORRUPT, "an update count is larger than 2^53"));
    image.steps.write(items, counts.data());
    return DTRAIN_OK;
}

} // namespace dtrain::ps
