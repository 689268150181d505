// Writes and checks the metadata of a checkpoint's files.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/part_heading.h"

#include "base/decimal.h"
#include "device/kernels.h"
#include "ps/checkpoint/made_with.h"
#include "ps/checkpoint/manifest.h"
#include "ps/table/file_name.h"
#include "ps/table/rules.h"

#include <charconv>

namespace dtrain::ps {
namespace {

Status lacks(const char *key) {
    return fail(DTRAIN_ERR_CORRUPT, "its metadata has no \"%s\"", key);
}

Status check_made_with(const data::TensorIndex &index, const TableParams &params) {
    for (const auto &[key, now, usual] : made_with(params)) {
        const std::string *then = index.find(key);
        if (then == nullptr && !usual.empty()) then = &usual;
        // Files of tables with another storage_dtype may lack the seed; check_array() reports that.
        if (then == nullptr && key == "seed" && !is_sparse(params)) continue;
        if (then == nullptr) return lacks(key.c_str());
        if (*then != now)
            return fail(DTRAIN_ERR_MISMATCH,
                        "the table was made with %s %.40s and has %s now, which would change "
                        "values",
                        key.c_str(), then->c_str(), now.c_str());
    }
    return DTRAIN_OK;
}

} // namespace

void put_number(const char *key, uint64_t value, data::TensorIndex &index) {
    index.metadata.emplace_back(key, std::to_string(value));
}

void put_heading(const PartHeading &heading, const char *format, const std::string &table,
                 const TableParams &params, data::TensorIndex &index) {
    index.metadata.emplace_back("format", format);
    index.metadata.emplace_back("table", escaped(table));
    index.metadata.emplace_back("rule", rule_title(params));
    index.metadata.emplace_back("learning_rate", decimal_text(heading.rate));
    for (auto &[key, value, usual] : made_with(params))
        if (value != usual) index.metadata.emplace_back(std::move(key), std::move(value));
    put_number("updates", heading.updates, index);
    put_number("clock", heading.clock, index);
    put_number("step", heading.checkpoint.step, index);
    index.metadata.emplace_back("checkpoint", hex(heading.checkpoint.id));
    put_number("crc32c", heading.crc, index);
}

Status take_number(const data::TensorIndex &index, const char *key, uint64_t &value) {
    const std::string *text = index.find(key);
    if (text == nullptr) return lacks(key);
    const char *end = text->data() + text->size();
    auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error == std::errc{} && stop == end) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CORRUPT, "its \"%s\" is not a number: \"%.40s\"", key, text->c_str());
}

Status take_heading(const data::TensorIndex &index, const char *format, const std::string &table,
                    const TableParams &params, const CheckpointName &checkpoint,
                    PartHeading &heading) {
    for (const char *key : {"format", "table", "rule", "learning_rate", "checkpoint"})
        if (index.find(key) == nullptr) return lacks(key);
    auto text = [&](const char *key) { return *index.find(key); };
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
    if (Status s = check_made_with(index, params); s != DTRAIN_OK) return s;
    uint64_t crc = 0;
    for (auto [key, value] : {std::pair{"updates", &heading.updates},
                              {"clock", &heading.clock},
                              {"step", &heading.checkpoint.step},
                              {"crc32c", &crc}})
        if (Status s = take_number(index, key, *value); s != DTRAIN_OK) return s;
    if (heading.checkpoint.step != checkpoint.step || text("checkpoint") != hex(checkpoint.id))
        return fail(DTRAIN_ERR_MISMATCH,
                    "it belongs to another checkpoint, %.20s of step %llu, not %s of step %llu",
                    text("checkpoint").c_str(),
                    static_cast<unsigned long long>(heading.checkpoint.step),
                    hex(checkpoint.id).c_str(), static_cast<unsigned long long>(checkpoint.step));
    heading.checkpoint.id = checkpoint.id;
    heading.crc = uint32_t(crc);
    const std::string rate = text("learning_rate");
    const char *end = rate.data() + rate.size();
    auto [stop, error] = std::from_chars(rate.data(), end, heading.rate);
    const bool whole = error == std::errc{} && stop == end && crc <= UINT32_MAX;
    if (!whole || (has_rate(params) && !valid_rate(params, heading.rate)))
        return fail(DTRAIN_ERR_CORRUPT,
                    "its learning rate \"%.40s\" or its checksum %llu is not valid", rate.c_str(),
                    static_cast<unsigned long long>(crc));
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
        return fail(DTRAIN_ERR_MISMATCH, "the shape of its \"%s\" differs from the table's", name);
    return DTRAIN_OK;
}

} // namespace dtrain::ps
