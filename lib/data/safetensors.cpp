// Parses and writes the JSON index of a safetensors file.
// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.h"

#include "data/frame.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace dtrain::data {
namespace {

using Json = nlohmann::json; // uses only functions that do not throw on values checked before

struct Dtype {
    const char *name;
    uint32_t dtype;
    uint64_t size;
};
constexpr Dtype dtypes[] = {
    {"F32", DTRAIN_F32, 4},   {"F64", DTRAIN_F64, 8}, {"F16", DTRAIN_F16, 2},
    {"BF16", DTRAIN_BF16, 2}, {"I8", DTRAIN_I8, 1},   {"U8", DTRAIN_U8, 1},
    {"I16", DTRAIN_I16, 2},   {"U16", DTRAIN_U16, 2}, {"I32", DTRAIN_I32, 4},
    {"U32", DTRAIN_U32, 4},   {"I64", DTRAIN_I64, 8}, {"U64", DTRAIN_U64, 8},
};
constexpr const char *metadata_key = "__metadata__";

const Dtype &dtype_info(uint32_t dtype) {
    return *std::find_if(std::begin(dtypes), std::end(dtypes) - 1,
                         [&](const Dtype &d) { return d.dtype == dtype; });
}

// False: the size exceeds 64 bits.
bool size_of(uint64_t size, const std::vector<uint64_t> &shape, uint64_t &bytes) {
    bytes = size;
    return std::none_of(shape.begin(), shape.end(),
                        [&](uint64_t n) { return __builtin_mul_overflow(bytes, n, &bytes); });
}

Status bad(const std::string &tensor, const char *what) {
    return fail(DTRAIN_ERR_CORRUPT, "tensor \"%.100s\": %s", tensor.c_str(), what);
}

Status parse_shape(const std::string &name, const Json &json, std::vector<uint64_t> &shape) {
    if (!json.is_array() || json.size() > 8)
        return bad(name, "its shape is not a list of at most 8");
    for (const Json &n : json) {
        if (!n.is_number_unsigned()) return bad(name, "its shape is not made of numbers");
        shape.push_back(n.get<uint64_t>());
    }
    return DTRAIN_OK;
}

Status parse_tensor(const std::string &name, const Json &json, uint64_t data_bytes, Tensor &out) {
    if (!json.is_object()) return bad(name, "it is not an object");
    auto type = json.find("dtype"), shape = json.find("shape"), place = json.find("data_offsets");
    if (type == json.end() || shape == json.end() || place == json.end() || !type->is_string())
        return bad(name, "dtype, shape or data_offsets is missing");
    auto known = std::find_if(std::begin(dtypes), std::end(dtypes),
                              [&](const Dtype &d) { return *type == d.name; });
    if (known == std::end(dtypes))
        return fail(DTRAIN_ERR_UNSUPPORTED, "tensor \"%.100s\" has the unknown dtype \"%.20s\"",
                    name.c_str(), type->get_ref<const std::string &>().c_str());
    out.name = name;
    out.dtype = known->dtype;
    if (Status s = parse_shape(name, *shape, out.shape); s != DTRAIN_OK) return s;
    bool pair = place->is_array() && place->size() == 2 && (*place)[0].is_number_unsigned() &&
                (*place)[1].is_number_unsigned();
    if (!pair) return bad(name, "its data_offsets are not two numbers");
    const auto begin = (*place)[0].get<uint64_t>(), end = (*place)[1].get<uint64_t>();
    if (begin > end || end > data_bytes) return bad(name, "its data_offsets are not in the file");
    uint64_t due = 0;
    if (!size_of(known->size, out.shape, due) || due != end - begin)
        return bad(name, "its data_offsets do not fit its shape and dtype");
    out.begin = begin;
    out.bytes = due;
    return DTRAIN_OK;
}

Status parse_metadata(const Json &json, TensorIndex &out) {
    if (!json.is_object()) return fail(DTRAIN_ERR_CORRUPT, "__metadata__ is not an object");
    for (auto entry = json.begin(); entry != json.end(); ++entry) {
        if (!entry->is_string())
            return fail(DTRAIN_ERR_CORRUPT, "__metadata__ has a value that is not a text");
        out.metadata.emplace_back(entry.key(), entry->get_ref<const std::string &>());
    }
    return DTRAIN_OK;
}

// Checks that the tensors fill the file to its end without gaps and overlaps.
Status check_places(TensorIndex &index, uint64_t data_bytes) {
    auto earlier = [](const Tensor &a, const Tensor &b) {
        return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
    };
    std::sort(index.tensors.begin(), index.tensors.end(), earlier);
    uint64_t at = 0;
    for (const Tensor &tensor : index.tensors) {
        if (tensor.begin < at) return bad(tensor.name, "it overlaps another tensor");
        if (tensor.begin > at) return bad(tensor.name, "there is a gap before it");
        at += tensor.bytes;
    }
    if (at != data_bytes)
        return fail(DTRAIN_ERR_CORRUPT, "%llu bytes of data, but the tensors have %llu",
                    static_cast<unsigned long long>(data_bytes),
                    static_cast<unsigned long long>(at));
    return DTRAIN_OK;
}

} // namespace

const std::string *TensorIndex::find(std::string_view key) const {
    for (const auto &[name, value] : metadata)
        if (name == key) return &value;
    return nullptr;
}

const Tensor *TensorIndex::tensor(std::string_view name) const {
    for (const Tensor &one : tensors)
        if (one.name == name) return &one;
    return nullptr;
}

std::string index_text(const TensorIndex &index) {
    auto quoted = [](const std::string &text) { return '"' + text + '"'; };
    std::string json = "{" + quoted(metadata_key) + ":{", separator;
    for (const auto &[key, value] : index.metadata) {
        json += separator + quoted(key) + ':' + quoted(value);
        separator = ",";
    }
    json += '}';
    uint64_t at = 0;
    for (const Tensor &tensor : index.tensors) {
        const Dtype &dtype = dtype_info(tensor.dtype);
        uint64_t bytes = 0;
        size_of(dtype.size, tensor.shape, bytes);
        json += ',' + quoted(tensor.name) + ":{\"dtype\":" + quoted(dtype.name) + ",\"shape\":[";
        for (size_t i = 0; i < tensor.shape.size(); i++)
            json += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
        json +=
            "],\"data_offsets\":[" + std::to_string(at) + ',' + std::to_string(at + bytes) + "]}";
        at += bytes;
    }
    json += '}';
    json.resize((json.size() + 7) / 8 * 8, ' '); // aligns the data
    std::string text(8, 0);
    store_le(reinterpret_cast<uint8_t *>(text.data()), json.size(), 8);
    return text + json;
}

Status parse_index(std::string_view text, uint64_t data_bytes, TensorIndex &out) {
    std::set<std::string> names;
    bool twice = false;
    auto note = [&](int depth, Json::parse_event_t event, Json &parsed) {
        if (event == Json::parse_event_t::key && depth == 1)
            twice |= !names.insert(parsed.get_ref<const std::string &>()).second;
        return true;
    };
    const Json json = Json::parse(text, note, false);
    if (!json.is_object() || text.front() != '{')
        return fail(DTRAIN_ERR_CORRUPT, "the index is not a JSON object");
    if (twice) return fail(DTRAIN_ERR_CORRUPT, "the index has the same name twice");
    TensorIndex index;
    for (auto entry = json.begin(); entry != json.end(); ++entry) {
        Status s = entry.key() == metadata_key ? parse_metadata(*entry, index)
                                               : parse_tensor(entry.key(), *entry, data_bytes,
                                                              index.tensors.emplace_back());
        if (s != DTRAIN_OK) return s;
    }
    if (Status s = check_places(index, data_bytes); s != DTRAIN_OK) return s;
    out = std::move(index);
    return DTRAIN_OK;
}

} // namespace dtrain::data
