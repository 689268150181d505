// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint_folder.h"

#include "base/fd.h"
#include "data/durable_file.h"
#include "ps/part_heading.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

namespace dtrain::ps {
namespace {

using Json = nlohmann::json; // only functions of it that do not throw on what was checked before

constexpr const char *format_name = "dtrain checkpoint 1";
constexpr size_t max_manifest = 32 << 20;
constexpr uint32_t max_shards = 65536;
constexpr std::string_view prefix = "step-";

// f(name) for each entry but "." and "..".
template <class F> Status for_each_entry(const std::string &path, F &&f) {
    const Folder folder = open_folder(path.c_str());
    if (folder == nullptr) return fail_errno(errno, "cannot list the folder %s", path.c_str());
    while (const dirent *entry = readdir(folder.get())) {
        std::string_view name = entry->d_name;
        if (name != "." && name != "..") f(std::string(name));
    }
    return DTRAIN_OK;
}

Status make_folder(data::Disk &disk, const std::string &path) {
    int error = disk.make_folder(path.c_str());
    if (error == -EEXIST) return DTRAIN_OK;
    if (error < 0) return fail_errno(-error, "cannot make the folder %s", path.c_str());
    const std::string parent = data::folder_of(path);
    error = disk.sync_folder(parent.c_str());
    return error == 0 ? DTRAIN_OK : fail_errno(-error, "cannot sync the folder %s", parent.c_str());
}

Status parse(const std::string &text, uint64_t step, Manifest &out) {
    const Json json = Json::parse(text, nullptr, false);
    auto bad = [](const char *what) { return fail(DTRAIN_ERR_CORRUPT, "%s", what); };
    if (!json.is_object()) return bad("not a JSON object");
    auto format = json.find("format"), number = json.find("step"), tables = json.find("tables");
    if (format == json.end() || *format != format_name) return bad("its format is not ours");
    if (number == json.end() || *number != step) return bad("it is of another step");
    if (tables == json.end() || !tables->is_array()) return bad("it has no list of tables");
    Manifest manifest = {.step = step, .tables = {}};
    for (const Json &table : *tables) {
        if (!table.is_object()) return bad("a table is not an object");
        auto name = table.find("name"), shards = table.find("shards");
        bool whole = name != table.end() && shards != table.end() && name->is_string() &&
                     shards->is_number_unsigned() && *shards > 0u && *shards <= max_shards;
        if (!whole) return bad("a table has no name, or no number of shards");
        manifest.tables.push_back({name->get_ref<const std::string &>(), shards->get<uint32_t>()});
    }
    out = std::move(manifest);
    return DTRAIN_OK;
}

} // namespace

const Manifest::Table *Manifest::find(const std::string &name) const {
    auto its = [&](const Table &table) { return table.name == escaped(name); };
    auto found = std::find_if(tables.begin(), tables.end(), its);
    return found != tables.end() ? &*found : nullptr;
}

std::string CheckpointFolder::folder(uint64_t step) const {
    char number[24];
    std::snprintf(number, sizeof number, "%010llu", static_cast<unsigned long long>(step));
    return path_ + "/" + std::string(prefix) + number;
}

std::string CheckpointFolder::manifest_path(uint64_t step) const {
    return folder(step) + "/manifest.json";
}

std::string CheckpointFolder::shard_path(uint64_t step, const std::string &table, uint32_t shard,
                                         uint32_t shards) const {
    char number[32];
    std::snprintf(number, sizeof number, "-%05u-of-%05u", shard, shards);
    return folder(step) + "/" + escaped(table) + number + ".safetensors";
}

bool CheckpointFolder::is_complete(uint64_t step) const {
    return access(manifest_path(step).c_str(), F_OK) == 0;
}

Status CheckpointFolder::begin(uint64_t step) {
    if (is_complete(step))
        return fail(DTRAIN_ERR_STATE, "%s is there already; remove it or give another step",
                    folder(step).c_str());
    if (Status s = make_folder(disk_, path_); s != DTRAIN_OK) return s;
    return make_folder(disk_, folder(step));
}

Status CheckpointFolder::complete(const Manifest &manifest) {
    std::string text = std::string("{\"format\":\"") + format_name +
                       "\",\"step\":" + std::to_string(manifest.step) + ",\"tables\":[";
    std::string separator = "\n";
    for (const Manifest::Table &table : manifest.tables) {
        text += separator + "{\"name\":\"" + table.name +
                "\",\"shards\":" + std::to_string(table.shards) + "}";
        separator = ",\n";
    }
    text += "]}\n";
    data::DurableFile file(disk_);
    if (Status s = file.open(manifest_path(manifest.step)); s != DTRAIN_OK) return s;
    if (Status s = file.write(text.data(), text.size()); s != DTRAIN_OK) return s;
    return file.commit();
}

Status CheckpointFolder::read(uint64_t step, Manifest &out) const {
    const std::string path = manifest_path(step);
    if (!is_complete(step))
        return fail(DTRAIN_ERR_NOT_FOUND, "no complete checkpoint %s", folder(step).c_str());
    std::string text;
    Status s = data::read_small_file(path, max_manifest, text);
    if (s == DTRAIN_OK) s = parse(text, step, out);
    return s == DTRAIN_OK ? s : fail_within(s, "%s", path.c_str());
}

Status CheckpointFolder::steps(std::vector<uint64_t> &out) const {
    Status s = for_each_entry(path_, [&](const std::string &name) {
        if (!name.starts_with(prefix)) return;
        uint64_t step = 0;
        const char *end = name.data() + name.size();
        auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
        if (error == std::errc{} && stop == end && path_ + "/" + name == folder(step))
            out.push_back(step);
    });
    std::sort(out.begin(), out.end());
    return s;
}

Status CheckpointFolder::latest(uint64_t &step) const {
    std::vector<uint64_t> all;
    if (access(path_.c_str(), F_OK) == 0)
        if (Status s = steps(all); s != DTRAIN_OK) return s;
    auto found = std::find_if(all.rbegin(), all.rend(), [&](uint64_t s) { return is_complete(s); });
    if (found == all.rend())
        return fail(DTRAIN_ERR_NOT_FOUND, "no complete checkpoint in %s", path_.c_str());
    step = *found;
    return DTRAIN_OK;
}

Status CheckpointFolder::remove(uint64_t step) {
    const std::string path = folder(step);
    // The manifest first: what is left, should this end here, is not complete.
    if (is_complete(step)) {
        int error = disk_.remove(manifest_path(step).c_str());
        if (error == 0) error = disk_.sync_folder(path.c_str());
        if (error < 0) return fail_errno(-error, "cannot remove %s", manifest_path(step).c_str());
    }
    std::vector<std::string> names;
    Status s = for_each_entry(path, [&](const std::string &name) { names.push_back(name); });
    if (s != DTRAIN_OK) return s;
    for (const std::string &name : names)
        if (int error = disk_.remove((path + "/" + name).c_str()); error < 0)
            return fail_errno(-error, "cannot remove %s/%s", path.c_str(), name.c_str());
    if (int error = disk_.remove_folder(path.c_str()); error < 0)
        return fail_errno(-error, "cannot remove the folder %s", path.c_str());
    return DTRAIN_OK;
}

Status CheckpointFolder::remove_old(uint32_t keep) {
    std::vector<uint64_t> all;
    if (Status s = steps(all); s != DTRAIN_OK) return s;
    uint32_t complete = 0;
    for (auto step = all.rbegin(); step != all.rend(); ++step) {
        bool is_one = is_complete(*step);
        bool old = complete > 0 && (!is_one || complete >= keep);
        complete += is_one;
        if (!old) continue;
        if (Status s = remove(*step); s != DTRAIN_OK) return s;
    }
    return DTRAIN_OK;
}

} // namespace dtrain::ps
