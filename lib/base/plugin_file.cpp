// Searches the folders for a plugin, and suggests the nearest name.
// SPDX-License-Identifier: Apache-2.0
#include "base/plugin_file.h"

#include "base/fd.h"
#include "base/nearest.h"

#include <algorithm>
#include <dlfcn.h>
#include <memory>
#include <unistd.h>

namespace dtrain {
namespace {

constexpr size_t max_name = 32;
constexpr std::string_view suffix = ".so";

bool is_name(std::string_view name) {
    auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && name.size() <= max_name &&
           std::all_of(name.begin(), name.end(), allowed);
}

// Relative folders are refused, since their meaning depends on the current directory.
Status split(std::string_view search_path, std::vector<std::string> &folders) {
    while (!search_path.empty()) {
        std::string_view folder = search_path.substr(0, search_path.find(':'));
        search_path.remove_prefix(std::min(search_path.size(), folder.size() + 1));
        if (folder.empty()) continue;
        if (folder.front() != '/')
            return fail(DTRAIN_ERR_CONFIG, "option plugin.path: \"%.*s\" is not an absolute path",
                        int(std::min<size_t>(folder.size(), 128)), folder.data());
        folders.emplace_back(folder);
    }
    return DTRAIN_OK;
}

// Empty if the absolute path is not known (a program that was started by a relative path).
std::string installed_folder() {
    Dl_info info;
    if (dladdr(reinterpret_cast<void *>(&installed_folder), &info) == 0 || info.dli_fname[0] != '/')
        return {};
    std::string_view file = info.dli_fname;
    return std::string(file.substr(0, file.rfind('/'))) + "/dtrain";
}

std::string prefix_of(const char *kind) { return std::string("libdtrain_") + kind + "_"; }

bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

void add_names(const std::string &folder, const std::string &prefix,
               std::vector<std::string> &names) {
    const Folder dir = open_folder(folder.c_str());
    while (dirent *entry = dir != nullptr ? readdir(dir.get()) : nullptr) {
        std::string_view file = entry->d_name;
        if (!file.starts_with(prefix) || !file.ends_with(suffix)) continue;
        file.remove_prefix(prefix.size());
        names.emplace_back(file.substr(0, file.size() - suffix.size()));
    }
}

} // namespace

Status PluginSearch::begin(const char *kind, std::string_view name, std::string_view search_path,
                           PluginSearch &out) {
    if (!is_name(name))
        return fail(DTRAIN_ERR_INVALID,
                    "\"%.*s\" is not a %s's name: a-z, 0-9 and _, at most %zu characters",
                    int(std::min<size_t>(name.size(), 64)), name.data(), kind, max_name);
    out.kind_ = kind;
    out.name_ = name;
    return split(search_path, out.folders_);
}

std::string PluginSearch::file_in(const std::string &folder) const {
    return folder + "/" + prefix_of(kind_) + name_ + std::string(suffix);
}

std::string PluginSearch::in_path() const {
    for (const std::string &folder : folders_)
        if (std::string path = file_in(folder); exists(path)) return path;
    return {};
}

std::string PluginSearch::installed() {
    std::string folder = installed_folder();
    if (folder.empty()) return {};
    std::string path = file_in(folder);
    folders_.push_back(std::move(folder));
    return exists(path) ? path : std::string{};
}

Status PluginSearch::not_found(std::vector<std::string> builtin) const {
    std::string places = builtin.empty() ? "" : "built in";
    std::vector<std::string> names = std::move(builtin);
    for (const std::string &folder : folders_) {
        add_names(folder, prefix_of(kind_), names);
        places += (places.empty() ? "" : ", ") + folder;
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string close =
        views.empty() ? "" : "the nearest name is \"" + std::string(nearest(name_, views)) + "\"; ";
    return fail(DTRAIN_ERR_NOT_FOUND, "no %s \"%s\"; %slooked in: %s", kind_, name_.c_str(),
                close.c_str(), places.empty() ? "no folder" : places.c_str());
}

} // namespace dtrain
