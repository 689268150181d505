// Finds a transport: in the search path, built in, or installed.
// SPDX-License-Identifier: Apache-2.0
#include "transport/plugin.h"

#include "base/plugin_file.h"

#include <string>
#include <vector>

namespace dtrain::transport {

Status find_plugin(std::string_view name, std::string_view search_path,
                   const dtrain_tp_plugin_t *&out) {
    PluginSearch search;
    if (Status s = PluginSearch::begin("transport", name, search_path, search); s != DTRAIN_OK)
        return s;
    if (const std::string path = search.in_path(); !path.empty())
        return load_plugin(path.c_str(), name, out);
    std::vector<std::string> names;
    for (const dtrain_tp_plugin_t *plugin : builtin_plugins()) {
        if (plugin->name == name) {
            out = plugin;
            return DTRAIN_OK;
        }
        names.emplace_back(plugin->name);
    }
    if (const std::string path = search.installed(); !path.empty())
        return load_plugin(path.c_str(), name, out);
    return search.not_found(std::move(names));
}

} // namespace dtrain::transport
