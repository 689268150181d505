// Creates, lists, completes and removes the folders and manifests of checkpoints.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/checkpoint_folder.h"

#include "base/fd.h"
#include "base/output_file.h"
#include "data/durable_file.h"
#include "ps/checkpoint/lineage.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/table/file_name.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <unistd.h>

namespace dtrain::ps {
namespace {

constexpr size_t max_manifest = 32 << 20;
constexpr std::string_view prefix = "step-", lineage_prefix = "lineage-";

// Calls f(name) for each entry except "." and "..".
template <class F> Status for_each_entry(const std::string &path, F &&f) {
    const Folder folder = open_folder(path.c_str());
    if (folder == nullptr) return fail_errno(errno, "cannot list the folder %s", path.c_str());
    for (;;) {
        errno = 0;
        const dirent *entry = readdir(folder.get());
        if (entry == nullptr && errno != 0)
            return fail_errno(errno, "cannot list the folder %s", path.c_str());
        if (entry == nullptr) return DTRAIN_OK;
        std::string_view name = entry->d_name;
        if (name != "." && name != "..") f(std::string(name));
    }
}

bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }

std::string in(const std::string &folder, const std::string &name) { return folder + "/" + name; }

bool tells_lineage(const std::string &name) { return name.starts_with(lineage_prefix); }

Status sync(data::Disk &disk, const std::string &folder) {
    const int error = disk.sync_folder(folder.c_str());
    return error == 0 ? DTRAIN_OK : fail_errno(-error, "cannot sync the folder %s", folder.c_str());
}

// Also syncs the parent of a folder that exists: the process that created it may have been killed
// before it did so. Unless the parent is not readable here; then it was not such a process.
Status make_folder(data::Disk &disk, const std::string &path) {
    const int made = disk.make_folder(path.c_str());
    if (made < 0 && made != -EEXIST)
        return fail_errno(-made, "cannot create the folder %s", path.c_str());
    const std::string parent = folder_of(path);
    const int synced = disk.sync_folder(parent.c_str());
    if (synced == 0 || (synced == -EACCES && made == -EEXIST)) return DTRAIN_OK;
    return fail_errno(-synced, "cannot sync the folder %s", parent.c_str());
}

} // namespace

std::string CheckpointFolder::folder(uint64_t step) const {
    char number[24];
    std::snprintf(number, sizeof number, "%010llu", static_cast<unsigned long long>(step));
    return path_ + "/" + std::string(prefix) + number;
}

std::string CheckpointFolder::manifest_path(uint64_t step) const {
    return folder(step) + "/manifest.json";
}

std::string CheckpointFolder::lineage_path(uint64_t step, uint64_t lineage) const {
    return folder(step) + "/" + std::string(lineage_prefix) + hex(lineage);
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

Status CheckpointFolder::make(uint64_t step) {
    if (is_complete(step))
        return fail(DTRAIN_ERR_STATE, "%s already exists; remove it or give another step",
                    folder(step).c_str());
    if (Status s = make_folder(disk_, path_); s != DTRAIN_OK) return s;
    return make_folder(disk_, folder(step));
}

Status CheckpointFolder::begin(uint64_t step, uint64_t lineage) {
    if (Status s = make(step); s != DTRAIN_OK) return s;
    const std::string path = folder(step), own = lineage_path(step, lineage);
    const int fd = disk_.create(own.c_str());
    if (fd < 0) return fail_errno(-fd, "cannot create %s", own.c_str());
    if (int error = disk_.close(fd); error < 0)
        return fail_errno(-error, "cannot close %s", own.c_str());
    if (Status s = sync(disk_, path); s != DTRAIN_OK) return s;
    std::vector<std::string> there;
    if (Status s = names(step, there); s != DTRAIN_OK) return s;
    for (const std::string &name : there)
        if (const std::string other = in(path, name); tells_lineage(name) && other != own)
            if (Status s = erase(other); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

Status CheckpointFolder::complete(const Manifest &manifest) {
    const std::string text = manifest_text(manifest);
    data::DurableFile file(disk_);
    if (Status s = file.open(manifest_path(manifest.step)); s != DTRAIN_OK) return s;
    if (Status s = file.write(text.data(), text.size()); s != DTRAIN_OK) return s;
    return file.commit();
}

Status CheckpointFolder::read(uint64_t step, Manifest &out) const {
    const std::string path = manifest_path(step);
    if (!is_complete(step))
        return is_missing(errno)
                   ? fail(DTRAIN_ERR_NOT_FOUND, "no complete checkpoint %s", folder(step).c_str())
                   : fail_errno(errno, "%s", path.c_str());
    std::string text;
    Status s = data::read_small_file(path, max_manifest, text);
    if (s == DTRAIN_OK) s = parse_manifest(text, out);
    if (s == DTRAIN_OK && out.step != step)
        s = fail(DTRAIN_ERR_CORRUPT, "the manifest is of another step, %llu",
                 static_cast<unsigned long long>(out.step));
    if (s != DTRAIN_OK && !is_complete(step))
        return fail(DTRAIN_ERR_NOT_FOUND, "%s has just been removed", folder(step).c_str());
    return s == DTRAIN_OK ? s : fail_within(s, "%s", path.c_str());
}

Status CheckpointFolder::steps(std::vector<uint64_t> &out) const {
    if (access(path_.c_str(), F_OK) != 0 && is_missing(errno))
        return DTRAIN_OK; // nothing was saved yet
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

Status CheckpointFolder::names(uint64_t step, std::vector<std::string> &out) const {
    return for_each_entry(folder(step), [&](const std::string &name) { out.push_back(name); });
}

Status CheckpointFolder::list(std::vector<Manifest> &out) const {
    std::vector<uint64_t> all;
    if (Status s = steps(all); s != DTRAIN_OK) return s;
    Status first = DTRAIN_OK;
    std::string why;
    for (uint64_t step : all) {
        Manifest manifest;
        const Status s = read(step, manifest);
        if (s == DTRAIN_OK) {
            out.push_back(std::move(manifest));
        } else if (s != DTRAIN_ERR_NOT_FOUND &&
                   (first == DTRAIN_OK || (is_unread(s) && !is_unread(first)))) {
            first = s;
            why = error_text();
        }
    }
    if (first != DTRAIN_OK) set_error_text(why.c_str());
    return first;
}

Status CheckpointFolder::erase(const std::string &path) {
    const int error = disk_.remove(path.c_str());
    return error == 0 ? DTRAIN_OK : fail_errno(-error, "cannot remove %s", path.c_str());
}

Status CheckpointFolder::reopen(uint64_t step) {
    if (Status s = erase(manifest_path(step)); s != DTRAIN_OK) return s;
    return sync(disk_, folder(step));
}

// Removes the manifest first and the lineage file last, so that after an interruption the rest is
// still recognizable as incomplete and as belonging to its lineage. Each removal is durable before
// the next begins, even that of a manifest by a process that was killed then.
Status CheckpointFolder::remove(uint64_t step) {
    if (is_complete(step))
        if (Status s = erase(manifest_path(step)); s != DTRAIN_OK) return s;
    if (Status s = sync(disk_, folder(step)); s != DTRAIN_OK) return s;
    std::vector<std::string> there;
    if (Status s = names(step, there); s != DTRAIN_OK) return s;
    const auto last = std::stable_partition(
        there.begin(), there.end(), [](const std::string &name) { return !tells_lineage(name); });
    const std::string path = folder(step);
    for (auto name = there.begin(); name != there.end(); ++name) {
        if (name == last && last != there.begin())
            if (Status s = sync(disk_, path); s != DTRAIN_OK) return s;
        if (Status s = erase(in(path, *name)); s != DTRAIN_OK) return s;
    }
    const int error = disk_.remove_folder(path.c_str());
    return error == 0 ? DTRAIN_OK : fail_errno(-error, "cannot remove the folder %s", path.c_str());
}

Status CheckpointFolder::remove_incomplete(uint64_t step, uint64_t lineage) {
    std::vector<std::string> there;
    if (Status s = names(step, there); s != DTRAIN_OK) return s;
    const std::string own = std::string(lineage_prefix) + hex(lineage);
    auto others = [&](const std::string &name) { return tells_lineage(name) && name != own; };
    const bool has_own = std::find(there.begin(), there.end(), own) != there.end();
    const bool removable =
        there.empty() || (has_own && std::none_of(there.begin(), there.end(), others));
    return removable ? remove(step) : DTRAIN_OK;
}

Status CheckpointFolder::remove_old(uint64_t lineage, uint32_t keep, uint64_t before) {
    std::vector<Manifest> complete;
    (void)list(complete); // unreadable checkpoints stay, since their lineage is unknown
    const std::vector<uint64_t> old = old_ones(complete, lineage, keep);
    // What is kept must be durable before others go: a process that was killed may have completed
    // one without syncing it.
    for (const Manifest &one : complete)
        if (!old.empty() && one.lineage == lineage &&
            std::find(old.begin(), old.end(), one.step) == old.end())
            if (Status s = sync(disk_, folder(one.step)); s != DTRAIN_OK) return s;
    for (uint64_t step : old)
        if (Status s = remove(step); s != DTRAIN_OK) return s;
    std::vector<uint64_t> all;
    if (Status s = steps(all); s != DTRAIN_OK) return s;
    for (uint64_t step : all)
        if (step < before && !is_complete(step))
            if (Status s = remove_incomplete(step, lineage); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

} // namespace dtrain::ps
