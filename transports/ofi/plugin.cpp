// The libfabric transport: its devices, and its table.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/plugin.h"
#include "ofi/wire.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_errno.h>
#include <vector>

namespace dtrain::rdm {

const char *const transport_name = "ofi";

// Every domain of a real network; one of an emulated one, which are all the same card.
dtrain_status_t list_devices(const tp::Host &host, std::string *names) {
    char provider[64], domains[256];
    const bool chosen = host.option("ofi.provider", provider, sizeof provider);
    host.option("ofi.domain", domains, sizeof domains);
    int error;
    const ofi::Info all = ofi::find(provider, "", &error);
    std::vector<std::string> found;
    for (const fi_info *info = all.get(); info; info = info->next) {
        const char *name = info->fabric_attr->prov_name, *domain = info->domain_attr->name;
        const bool emulated = ofi::is_emulated(name);
        if (emulated && !chosen) continue;
        if (domains[0] ? !strstr(("," + std::string(domains) + ",").c_str(),
                                 ("," + std::string(domain) + ",").c_str())
                       : emulated && (!found.empty() || !strcmp(domain, "lo")))
            continue;
        const std::string device = std::string(name) + "/" + domain;
        // The first provider is the best; others would lead to the same cards.
        if (!found.empty() && found[0].substr(0, found[0].find('/')) != name) continue;
        if (std::find(found.begin(), found.end(), device) == found.end()) found.push_back(device);
    }
    if (found.empty())
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         chosen ? "ofi: libfabric has no domain %s of provider %s here (fi_info -p "
                                  "%s lists them)"
                                : "ofi: libfabric finds no RDMA device here%.0s%.0s%.0s; option "
                                  "ofi.provider=net makes it use TCP",
                         domains[0] ? domains : "at all", provider, provider);
    for (const std::string &device : found) *names += (names->empty() ? "" : ",") + device;
    return DTRAIN_OK;
}

std::string kind_of(const char *device) {
    return std::string(device, std::min<size_t>(strcspn(device, "/"), 15));
}

std::unique_ptr<Wire> make_wire(const tp::Host &host, Protocol *protocol) {
    return std::unique_ptr<Wire>(new (std::nothrow) ofi::Wire(host, protocol));
}

} // namespace dtrain::rdm

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_ofi;
const dtrain_tp_plugin_t dtrain_tp_plugin_ofi{sizeof(dtrain_tp_plugin_t), DTRAIN_TP_ABI, "ofi",
                                              "0.1.0", &dtrain::rdm::ops};
}
