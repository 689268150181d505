// SPDX-License-Identifier: Apache-2.0
#include "ps/shard_file.h"

#include "data/durable_file.h"
#include "wire/crc32c.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr const char *format_name = "dtrain shard 1";
constexpr size_t piece_bytes = 256 << 10; // whole numbers of any type
constexpr uint64_t most_steps = uint64_t{1} << 53;

// f(data, bytes) for the array's numbers, piece by piece, until it fails.
template <class F>
Status for_each_piece(const ShardImage &image, const ShardImage::Array &array, F &&f) {
    uint64_t count = image.range.count / array.elements;
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

std::string text_of(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

data::TensorIndex index_of(const std::string &table, uint64_t step, const ShardImage &image,
                           uint32_t crc) {
    data::TensorIndex index;
    auto number = [](uint64_t value) { return std::to_string(value); };
    index.metadata = {{"format", format_name},
                      {"table", escaped(table)},
                      {"rule", rule_info(image.params.rule).name},
                      {"length", number(image.params.length)},
                      {"first", number(image.range.first)},
                      {"count", number(image.range.count)},
                      {"updates", number(image.updates)},
                      {"clock", number(image.clock)},
                      {"learning_rate", text_of(image.rate)},
                      {"step", number(step)},
                      {"crc32c", number(crc)}};
    for (const ShardImage::Array &array : image.arrays()) {
        data::Tensor &tensor = index.tensors.emplace_back();
        tensor.name = array.name;
        tensor.dtype = array.dtype;
        tensor.shape = {image.range.count / array.elements};
    }
    return index;
}

} // namespace

std::string escaped(const std::string &name) {
    std::string text;
    for (char c : name) {
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '.';
        char hex[4];
        std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
        if (plain)
            text += c;
        else
            text += hex;
    }
    return text;
}

Status write_shard(data::Disk &disk, const std::string &path, const std::string &table,
                   uint64_t step, const ShardImage &image) {
    uint32_t crc = 0;
    for_each_piece(image, [&](const void *data, uint64_t bytes) {
        crc = wire::crc32c(data, bytes, crc);
        return DTRAIN_OK;
    });
    data::DurableFile file(disk);
    if (Status s = file.open(path); s != DTRAIN_OK) return s;
    const std::string head = data::index_text(index_of(table, step, image, crc));
    if (Status s = file.write(head.data(), head.size()); s != DTRAIN_OK) return s;
    auto write = [&](const void *data, uint64_t bytes) { return file.write(data, bytes); };
    if (Status s = for_each_piece(image, write); s != DTRAIN_OK) return s;
    return file.commit();
}

Status ShardFile::open(const std::string &path, const std::string &table,
                       const TableParams &params) {
    if (Status s = file_.open(path); s != DTRAIN_OK) return s;
    Status s = check(table, params);
    return s == DTRAIN_OK ? s : file_.within(s);
}

Status ShardFile::number(const char *key, uint64_t &value) const {
    const std::string *text = file_.index().find(key);
    if (text == nullptr) return fail(DTRAIN_ERR_CORRUPT, "its metadata has no \"%s\"", key);
    auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size())
        return fail(DTRAIN_ERR_CORRUPT, "its \"%s\" is no number: \"%.40s\"", key, text->c_str());
    return DTRAIN_OK;
}

Status ShardFile::check(const std::string &table, const TableParams &params) {
    auto text = [&](const char *key) {
        const std::string *value = file_.index().find(key);
        return value != nullptr ? *value : std::string();
    };
    if (text("format") != format_name)
        return fail(DTRAIN_ERR_CORRUPT, "its format is \"%.40s\", not \"%s\"",
                    text("format").c_str(), format_name);
    if (text("table") != escaped(table))
        return fail(DTRAIN_ERR_MISMATCH, "it is of table \"%.100s\", not \"%.100s\"",
                    text("table").c_str(), escaped(table).c_str());
    if (text("rule") != rule_info(params.rule).name)
        return fail(DTRAIN_ERR_MISMATCH, "the table had the rule \"%.40s\" and has \"%s\" now",
                    text("rule").c_str(), rule_info(params.rule).name);
    uint64_t length = 0;
    if (Status s = number("length", length); s != DTRAIN_OK) return s;
    if (length != params.length)
        return fail(DTRAIN_ERR_MISMATCH, "the table had %llu elements and has %llu now",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(params.length));
    for (auto [key, value] : {std::pair{"first", &range_.first},
                              {"count", &range_.count},
                              {"updates", &updates_},
                              {"clock", &clock_},
                              {"crc32c", &crc_}})
        if (Status s = number(key, *value); s != DTRAIN_OK) return s;
    if (!Range{0, length}.contains(range_))
        return fail(DTRAIN_ERR_CORRUPT, "elements %llu + %llu are not all in the table",
                    static_cast<unsigned long long>(range_.first),
                    static_cast<unsigned long long>(range_.count));
    rate_ = std::strtod(text("learning_rate").c_str(), nullptr);
    if (rule_info(params.rule).is(RuleInfo::optimizer) && !valid_rate(params, rate_))
        return fail(DTRAIN_ERR_CORRUPT, "its learning rate is \"%.40s\"",
                    text("learning_rate").c_str());
    return check_arrays(params);
}

Status ShardFile::check_arrays(const TableParams &params) {
    const auto due = ShardImage::arrays_of(params);
    const auto &tensors = file_.index().tensors;
    if (tensors.size() != due.size())
        return fail(DTRAIN_ERR_MISMATCH, "it has %zu arrays where the table has %zu",
                    tensors.size(), due.size());
    for (const ShardImage::Array &array : due) {
        const data::Tensor *tensor = file_.index().tensor(array.name);
        if (tensor == nullptr)
            return fail(DTRAIN_ERR_MISMATCH, "it has no array \"%s\"", array.name);
        if (tensor->dtype != array.dtype)
            return fail(DTRAIN_ERR_MISMATCH, "its \"%s\" are of another dtype than the table's",
                        array.name);
        bool whole = range_.first % array.elements == 0 && range_.count % array.elements == 0;
        if (!whole || tensor->shape != std::vector{range_.count / array.elements})
            return fail(DTRAIN_ERR_MISMATCH, "the shape of its \"%s\" is another than the table's",
                        array.name);
    }
    return DTRAIN_OK;
}

Status ShardFile::read(ShardImage &image) {
    const auto arrays = image.arrays();
    uint32_t crc = 0;
    for (const data::Tensor &tensor : file_.index().tensors) {
        auto its = [&](const ShardImage::Array &array) { return tensor.name == array.name; };
        const auto &array = *std::find_if(arrays.begin(), arrays.end(), its);
        if (Status s = read_array(array, tensor.bytes, image, crc); s != DTRAIN_OK) return s;
    }
    if (crc != crc_)
        return file_.within(fail(DTRAIN_ERR_CORRUPT, "its data is damaged: checksum %08x, not %08x",
                                 crc, static_cast<unsigned>(crc_)));
    image.updates = std::min(image.updates, updates_);
    image.clock = clock_;
    image.rate = rate_;
    return DTRAIN_OK;
}

Status ShardFile::read_array(const ShardImage::Array &array, uint64_t bytes, ShardImage &image,
                             uint32_t &crc) {
    const Range wanted = {image.range.first / array.elements, image.range.count / array.elements};
    for (uint64_t at = 0; at < bytes;) {
        const uint64_t n = std::min<uint64_t>(bytes - at, piece_bytes);
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
