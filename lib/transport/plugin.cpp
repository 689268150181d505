// Searches the folders for a plugin, and suggests the nearest name.
// SPDX-License-Identifier: Apache-2.0
#include "transport/plugin.h"

#include "base/fd.h"
#include "base/nearest.h"

#include <algorithm>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace dtrain::transport {
namespace {

constexpr size_t max_name = 32;
constexpr std::string_view prefix = "libdtrain_transport_", suffix = ".so";

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
    if (dladdr(reinterpret_cast<void *>(&find_plugin), &info) == 0 || info.dli_fname[0] != '/')
        return {};
    std::string_view file = info.dli_fname;
    return std::string(file.substr(0, file.rfind('/'))) + "/dtrain";
}

std::string plugin_file(const std::string &folder, std::string_view name) {
    return folder + "/" + std::string(prefix) + std::string(name) + std::string(suffix);
}

bool exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

void add_names(const std::string &folder, std::vector<std::string> &names) {
    const Folder dir = open_folder(folder.c_str());
    while (dirent *entry = dir != nullptr ? readdir(dir.get()) : nullptr) {
        std::string_view file = entry->d_name;
        if (!file.starts_with(prefix) || !file.ends_with(suffix)) continue;
        file.remove_prefix(prefix.size());
        names.emplace_back(file.substr(0, file.size() - suffix.size()));
    }
}

Status not_found(std::string_view name, const std::vector<std::string> &folders) {
    std::vector<std::string> names;
    for (const dtrain_tp_plugin_t *plugin : builtin_plugins()) names.emplace_back(plugin->name);
    std::string places;
    for (const std::string &folder : folders) {
        add_names(folder, names);
        places += ", " + folder;
    }
    std::vector<std::string_view> views(names.begin(), names.end());
    std::string close(nearest(name, views));
    return fail(DTRAIN_ERR_NOT_FOUND,
                "no transport \"%.*s\"; the nearest name is \"%s\"; looked in: built in%s",
                int(name.size()), name.data(), close.c_str(), places.c_str());
}

} // namespace

Status find_plugin(std::string_view name, std::string_view search_path,
                   const dtrain_tp_plugin_t *&out) {
    if (!is_name(name))
        return fail(DTRAIN_ERR_INVALID,
                    "\"%.*s\" is not a transport's name: a-z, 0-9 and _, at most %zu characters",
                    int(std::min<size_t>(name.size(), 64)), name.data(), max_name);
    std::vector<std::string> folders;
    if (Status s = split(search_path, folders); s != DTRAIN_OK) return s;
    for (const std::string &folder : folders)
        if (std::string path = plugin_file(folder, name); exists(path))
            return load_plugin(path.c_str(), name, out);
    for (const dtrain_tp_plugin_t *plugin : builtin_plugins())
        if (plugin->name == name) {
            out = plugin;
            return DTRAIN_OK;
        }
    if (std::string folder = installed_folder(); !folder.empty()) {
        if (std::string path = plugin_file(folder, name); exists(path))
            return load_plugin(path.c_str(), name, out);
        folders.push_back(std::move(folder));
    }
    return not_found(name, folders);
}

} // namespace dtrain::transport
