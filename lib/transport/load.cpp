// Loads one plugin file and checks it before anything in it is called.
// SPDX-License-Identifier: Apache-2.0
#include "transport/plugin.h"

#include "base/plugin_file.h"
#include "base/shared_object.h"

namespace dtrain::transport {
namespace {

const char *missing_member(const dtrain_tp_ops_t *ops) {
#define MUST_HAVE(member)                                                                          \
    if (!DTRAIN_TP_HAS(ops, member)) return #member
    MUST_HAVE(list);
    MUST_HAVE(open);
    MUST_HAVE(close);
    MUST_HAVE(query);
    MUST_HAVE(address);
    MUST_HAVE(reachable);
    MUST_HAVE(connect);
    MUST_HAVE(disconnect);
    MUST_HAVE(send);
    MUST_HAVE(recv);
    MUST_HAVE(cancel);
    MUST_HAVE(purge);
    MUST_HAVE(progress);
#undef MUST_HAVE
    return nullptr;
}

} // namespace

Status load_plugin(const char *path, std::string_view name, const dtrain_tp_plugin_t *&out) {
    void *symbol = nullptr;
    if (Status s = load_symbol(path, "dtrain_transport_query", symbol); s != DTRAIN_OK)
        return fail_within(s, "plugin %s", path);
    auto query = reinterpret_cast<decltype(&dtrain_transport_query)>(symbol);
    const dtrain_tp_plugin_t *plugin = query(DTRAIN_TP_ABI);
    if (Status s = check_plugin(path, "transport", name, DTRAIN_TP_ABI, plugin); s != DTRAIN_OK)
        return s;
    if (const char *member = missing_member(plugin->ops))
        return fail(DTRAIN_ERR_CONFIG,
                    "plugin %s: the operation %s(), which every transport needs, is missing", path,
                    member);
    out = plugin;
    return DTRAIN_OK;
}

} // namespace dtrain::transport
