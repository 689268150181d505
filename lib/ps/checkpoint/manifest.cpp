// Formats and parses the manifest of a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/manifest.h"

#include "base/crc32c.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/table/file_name.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace dtrain::ps {
namespace {

using Json = nlohmann::json; // only with functions that do not throw after the checks made here

constexpr const char *manifest_format = "dtrain checkpoint 2";
constexpr const char *older_start = "{\"format\":\"dtrain checkpoint 1\"";
constexpr size_t max_shards = 65536;

std::string hex32(uint32_t number) {
    char text[12];
    std::snprintf(text, sizeof text, "%08x", number);
    return text;
}

template <class Number> bool take_hex(const Json &json, Number &out) {
    if (!json.is_string()) return false;
    const auto &text = json.get_ref<const std::string &>();
    auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
    return error == std::errc{} && stop == text.data() + text.size();
}

template <class F> bool take(const Json &object, const char *key, F &&f) {
    auto found = object.find(key);
    return found != object.end() && f(*found);
}

bool take_number(const Json &object, const char *key, uint64_t &out) {
    return take(object, key, [&](const Json &value) {
        if (value.is_number_unsigned()) out = value.get<uint64_t>();
        return value.is_number_unsigned();
    });
}

bool take_part(const Json &json, Manifest::Part &out) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned()) return false;
    out.bytes = json[0].get<uint64_t>();
    return out.bytes > 0 && take_hex(json[1], out.crc);
}

bool take_table(const Json &json, Manifest::Table &out) {
    if (!json.is_object()) return false;
    const bool named = take(json, "name", [&](const Json &name) {
        if (name.is_string()) out.name = name.get_ref<const std::string &>();
        return name.is_string();
    });
    return named && take(json, "parts", [&](const Json &parts) {
               if (!parts.is_array() || parts.empty() || parts.size() > max_shards) return false;
               return std::all_of(parts.begin(), parts.end(), [&](const Json &part) {
                   return take_part(part, out.parts.emplace_back());
               });
           });
}

bool take_all(const Json &json, Manifest &out) {
    if (!json.is_object() || !take_number(json, "step", out.step) ||
        !take_number(json, "serial", out.serial))
        return false;
    for (const auto &id : {std::pair{"id", &out.id}, {"lineage", &out.lineage}, {"job", &out.job}})
        if (!take(json, id.first, [&](const Json &value) { return take_hex(value, *id.second); }))
            return false;
    return take(json, "tables", [&](const Json &tables) {
        return tables.is_array() &&
               std::all_of(tables.begin(), tables.end(), [&](const Json &table) {
                   return take_table(table, out.tables.emplace_back());
               });
    });
}

} // namespace

std::string hex(uint64_t number) {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    return text;
}

const Manifest::Table *Manifest::find(const std::string &name) const {
    auto its = [&](const Table &table) { return table.name == escaped(name); };
    auto found = std::find_if(tables.begin(), tables.end(), its);
    return found != tables.end() ? &*found : nullptr;
}

std::string manifest_text(const Manifest &manifest) {
    std::string text = std::string("{\"format\":\"") + manifest_format +
                       "\",\"step\":" + std::to_string(manifest.step) + ",\"id\":\"" +
                       hex(manifest.id) + "\",\"lineage\":\"" + hex(manifest.lineage) +
                       "\",\"serial\":" + std::to_string(manifest.serial) + ",\"job\":\"" +
                       hex(manifest.job) + "\",\"tables\":[";
    const char *separator = "\n";
    for (const Manifest::Table &table : manifest.tables) {
        text += separator + ("{\"name\":\"" + table.name) + "\",\"parts\":[";
        separator = ",\n";
        for (size_t i = 0; i < table.parts.size(); ++i)
            text += (i > 0 ? ",[" : "[") + std::to_string(table.parts[i].bytes) + ",\"" +
                    hex32(table.parts[i].crc) + "\"]";
        text += "]}";
    }
    text += "],\n\"crc32c\":\"";
    const uint32_t crc = crc32c(text.data(), text.size());
    return text + hex32(crc) + "\"}\n";
}

Status parse_manifest(const std::string &text, Manifest &out) {
    if (text.starts_with(older_start))
        return fail(DTRAIN_ERR_UNSUPPORTED, "its format is \"dtrain checkpoint 1\", of an earlier "
                                            "version; this one reads \"dtrain checkpoint 2\"");
    Manifest manifest;
    // Formatting the parsed manifest must give the same text, which includes the checksum.
    if (!take_all(Json::parse(text, nullptr, false), manifest) || manifest_text(manifest) != text)
        return fail(DTRAIN_ERR_CORRUPT, "it is damaged, or not the manifest of a checkpoint");
    out = std::move(manifest);
    return DTRAIN_OK;
}

} // namespace dtrain::ps
