// Finds the files of plugins, and checks the tables in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// The search for libdtrain_<kind>_<name>.so. The current directory is never searched.
class PluginSearch {
  public:
    // kind: "transport", "device"; static storage. name: [a-z0-9_], at most 32 characters.
    // search_path: absolute folders, separated by ':' (option plugin.path).
    static Status begin(const char *kind, std::string_view name, std::string_view search_path,
                        PluginSearch &out);
    std::string in_path() const; // the file in the first folder of the path that has it; "": none
    // The file in dtrain/ beside the shared object that holds this code; "": it is not there.
    std::string installed();
    // The error of a search that found nothing: the places searched and the nearest name. builtin:
    // the names of plugins that need no file.
    Status not_found(std::vector<std::string> builtin) const;

  private:
    std::string file_in(const std::string &folder) const;

    const char *kind_ = "";
    std::string name_;
    std::vector<std::string> folders_; // searched; installed() adds its own
};

// Checks what every plugin's table begins with, before anything in it is called. Plugin:
// dtrain_tp_plugin_t or dtrain_dv_plugin_t. abi: the number that this library serves.
template <class Plugin>
Status check_plugin(const char *path, const char *kind, std::string_view name, uint32_t abi,
                    const Plugin *plugin) {
    if (plugin == nullptr)
        return fail(DTRAIN_ERR_VERSION,
                    "plugin %s does not support this library's %s ABI %u; use a plugin and a "
                    "library of the same release",
                    path, kind, abi);
    constexpr size_t least = offsetof(Plugin, ops) + sizeof plugin->ops;
    if (plugin->struct_size < least)
        return fail(DTRAIN_ERR_CONFIG, "plugin %s: its table has %u bytes, at least %zu are needed",
                    path, plugin->struct_size, least);
    if (plugin->abi != abi)
        return fail(DTRAIN_ERR_VERSION,
                    "plugin %s has %s ABI %u, this library serves %u; use a plugin and a library "
                    "of the same release",
                    path, kind, plugin->abi, abi);
    if (plugin->name == nullptr || plugin->name != name)
        return fail(DTRAIN_ERR_CONFIG, "plugin %s: its name is \"%.32s\", not \"%.*s\"", path,
                    plugin->name != nullptr ? plugin->name : "", int(name.size()), name.data());
    if (plugin->version == nullptr || plugin->ops == nullptr)
        return fail(DTRAIN_ERR_CONFIG, "plugin %s: its table has no %s", path,
                    plugin->ops == nullptr ? "operations" : "version");
    return DTRAIN_OK;
}

} // namespace dtrain
