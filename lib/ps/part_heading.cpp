// SPDX-License-Identifier: Apache-2.0
#include "ps/part_heading.h"

#include "device/kernels.h"
#include "ps/rules.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace dtrain::ps {

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

void put_number(const char *key, uint64_t value, data::TensorIndex &index) {
    index.metadata.emplace_back(key, std::to_string(value));
}

void put_heading(const PartHeading &heading, const char *format, const std::string &table,
                 const TableParams &params, data::TensorIndex &index) {
    char rate[40];
    std::snprintf(rate, sizeof rate, "%.17g", heading.rate);
    index.metadata.emplace_back("format", format);
    index.metadata.emplace_back("table", escaped(table));
    index.metadata.emplace_back("rule", rule_title(params));
    index.metadata.emplace_back("learning_rate", rate);
    put_number("updates", heading.updates, index);
    put_number("clock", heading.clock, index);
    put_number("step", heading.step, index);
    put_number("crc32c", heading.crc, index);
}

Status take_number(const data::TensorIndex &index, const char *key, uint64_t &value) {
    const std::string *text = index.find(key);
    if (text == nullptr) return fail(DTRAIN_ERR_CORRUPT, "its metadata has no \"%s\"", key);
    const char *end = text->data() + text->size();
    auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error == std::errc{} && stop == end) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CORRUPT, "its \"%s\" is no number: \"%.40s\"", key, text->c_str());
}

Status take_heading(const data::TensorIndex &index, const char *format, const std::string &table,
                    const TableParams &params, PartHeading &heading) {
    auto text = [&](const char *key) {
        const std::string *value = index.find(key);
        return value != nullptr ? *value : std::string();
    };
    const std::string rule = rule_title(params);
    if (text("format") != format)
        return fail(DTRAIN_ERR_CORRUPT, "its format is \"%.40s\", not \"%s\"",
                    text("format").c_str(), format);
    if (text("table") != escaped(table))
        return fail(DTRAIN_ERR_MISMATCH, "it is of table \"%.100s\", not \"%.100s\"",
                    text("table").c_str(), escaped(table).c_str());
    if (text("rule") != rule)
        return fail(DTRAIN_ERR_MISMATCH, "the table had the rule \"%.80s\" and has \"%s\" now",
                    text("rule").c_str(), rule.c_str());
    uint64_t crc = 0;
    for (auto [key, value] : {std::pair{"updates", &heading.updates},
                              {"clock", &heading.clock},
                              {"step", &heading.step},
                              {"crc32c", &crc}})
        if (Status s = take_number(index, key, *value); s != DTRAIN_OK) return s;
    heading.crc = uint32_t(crc);
    heading.rate = std::strtod(text("learning_rate").c_str(), nullptr);
    if (has_rate(params) && !valid_rate(params, heading.rate))
        return fail(DTRAIN_ERR_CORRUPT, "its learning rate is \"%.40s\"",
                    text("learning_rate").c_str());
    return DTRAIN_OK;
}

Status check_array(const data::TensorIndex &index, const char *name, uint32_t dtype,
                   const std::vector<uint64_t> &shape) {
    const data::Tensor *tensor = index.tensor(name);
    if (tensor == nullptr) return fail(DTRAIN_ERR_MISMATCH, "it has no array \"%s\"", name);
    if (tensor->dtype != dtype)
        return fail(DTRAIN_ERR_MISMATCH, "its \"%s\" are %s, the table's %s", name,
                    device::dtype_name(tensor->dtype), device::dtype_name(dtype));
    if (tensor->shape != shape)
        return fail(DTRAIN_ERR_MISMATCH, "the shape of its \"%s\" is another than the table's",
                    name);
    return DTRAIN_OK;
}

} // namespace dtrain::ps
