// The libfabric transport: its devices, and its table.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/plugin.h"
#include "common/route.h"
#include "ofi/wire.h"
#include "rdm/nics.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <rdma/fi_errno.h>
#include <strings.h>
#include <vector>

namespace dtrain::rdm {

const char *const transport_name = "ofi";

namespace {

// The cards of the best provider, which comes first; other providers use the same cards.
std::vector<Nic> find_nics(const fi_info *info, bool with_emulated) {
    std::vector<Nic> nics;
    std::string provider;
    for (; info; info = info->next) {
        const std::string name = info->domain_attr->name;
        if (ofi::is_emulated(info->fabric_attr->prov_name) && !with_emulated) continue;
        if (provider.empty()) provider = info->fabric_attr->prov_name;
        if (provider != info->fabric_attr->prov_name ||
            std::ranges::find(nics, name, &Nic::name) != nics.end())
            continue;
        Nic &nic = nics.emplace_back();
        nic.device = provider + "/" + name;
        nic.name = name;
        nic.network = info->fabric_attr->name;
        const auto *address = static_cast<const sockaddr *>(info->src_addr);
        if (info->src_addrlen >= sizeof *address && tp::ip_of(address)) {
            nic.address = tp::ip_text(address);
            nic.network = tp::network_text(address);
        }
        nic.look_up();
    }
    return nics;
}

// Adds RDMA devices that the kernel knows but libfabric does not offer.
void add_unoffered(std::vector<Nic> &nics) {
    for (Nic &device : rdma_nics()) {
        if (std::ranges::any_of(nics,
                                [&](const Nic &c) { return c.name.starts_with(device.name); }))
            continue;
        device.why = device.state == "down" ? "its link is down" : "libfabric does not offer it";
        nics.push_back(device);
    }
}

// Whether the environment requests a shared receive context of rxm, in libfabric's words.
bool shares_receives() {
    const char *value = getenv("FI_OFI_RXM_USE_SRX");
    if (!value) return false;
    for (const char *yes : {"1", "true", "yes", "on"})
        if (!strcasecmp(value, yes)) return true;
    return false;
}

// The first name in the list that no card has; "": none.
std::string missing(const std::string &named, const std::vector<Nic> &nics) {
    for (size_t begin = 0, end; begin < named.size(); begin = end + 1) {
        end = std::min(named.find(',', begin), named.size());
        const std::string name = named.substr(begin, end - begin);
        if (std::ranges::find(nics, name, &Nic::name) == nics.end()) return name;
    }
    return "";
}

} // namespace

dtrain_status_t list_devices(const tp::Host &host, std::string *names) {
    char provider[64];
    const bool named = host.option("ofi.provider", provider, sizeof provider);
    int error;
    const ofi::Info all = ofi::find(provider, "", &error);
    std::vector<Nic> nics = find_nics(all.get(), named);
    if (nics.empty() && named)
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "ofi: libfabric has nothing for provider %s here (fi_info -l lists the "
                         "providers)",
                         provider);
    if (nics.empty()) {
        const std::string unusable = unusable_devices();
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "ofi: libfabric finds no RDMA device here (%s); set option "
                         "ofi.provider=net to use it over TCP",
                         unusable.empty() ? "the kernel has none" : unusable.c_str());
    }
    if (nics[0].device.starts_with("verbs;ofi_rxm") && shares_receives())
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "ofi: FI_OFI_RXM_USE_SRX is set: over verbs, libfabric then takes the end "
                         "of a large message for a separate message; unset it");
    Choice choice = Choice::of(host, "ofi.domain");
    if (const std::string name = missing(choice.named, nics); !name.empty())
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "ofi: there is no domain %s of provider %s here (fi_info -p \"%s\" lists "
                         "them)",
                         name.c_str(), provider, provider);
    choice.single = ofi::is_emulated(nics[0].device.c_str());
    choose(nics, choice);
    if (!choice.single) add_unoffered(nics);
    tell(host, transport_name, nics);
    for (const Nic &nic : nics)
        if (nic.chosen) *names += (names->empty() ? "" : ",") + nic.device;
    if (names->empty())
        return host.fail(DTRAIN_ERR_UNSUPPORTED, "ofi: no RDMA device is up: %s",
                         unusable_devices().c_str());
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
