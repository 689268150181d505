// Loads one plugin and checks it before anything in it is called.
// SPDX-License-Identifier: Apache-2.0
#include "accel/plugin.h"

#include "base/plugin_file.h"
#include "base/shared_object.h"

namespace dtrain::accel {
namespace {

const char *missing_member(const dtrain_dv_ops_t *ops) {
#define MUST_HAVE(member)                                                                          \
    if (!DTRAIN_DV_HAS(ops, member)) return #member
    MUST_HAVE(list);
    MUST_HAVE(query);
    MUST_HAVE(open);
    MUST_HAVE(close);
    MUST_HAVE(prepare);
    MUST_HAVE(classify);
    MUST_HAVE(alloc);
    MUST_HAVE(pin);
    MUST_HAVE(address);
    MUST_HAVE(release);
    MUST_HAVE(queue_own);
    MUST_HAVE(queue_adopt);
    MUST_HAVE(queue_free);
    MUST_HAVE(queue_done);
    MUST_HAVE(copy);
    MUST_HAVE(fill);
    MUST_HAVE(run);
    MUST_HAVE(signal);
#undef MUST_HAVE
    return nullptr;
}

} // namespace

Status find_plugin(std::string_view name, std::string_view search_path,
                   const dtrain_dv_plugin_t *&out) {
    PluginSearch search;
    if (Status s = PluginSearch::begin("device", name, search_path, search); s != DTRAIN_OK)
        return s;
    std::string path = search.in_path();
    if (path.empty()) path = search.installed();
    if (path.empty()) return search.not_found({});
    void *symbol = nullptr;
    if (Status s = load_symbol(path.c_str(), "dtrain_device_query", symbol); s != DTRAIN_OK)
        return fail_within(s, "plugin %s", path.c_str());
    auto query = reinterpret_cast<decltype(&dtrain_device_query)>(symbol);
    const dtrain_dv_plugin_t *plugin = query(DTRAIN_DV_ABI);
    if (Status s = check_plugin(path.c_str(), "device", name, DTRAIN_DV_ABI, plugin);
        s != DTRAIN_OK)
        return s;
    if (const char *member = missing_member(plugin->ops))
        return fail(DTRAIN_ERR_CONFIG,
                    "plugin %s: the operation %s(), which every device needs, is missing",
                    path.c_str(), member);
    out = plugin;
    return DTRAIN_OK;
}

} // namespace dtrain::accel
