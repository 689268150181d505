// The table of the UCX transport.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/plugin.h"
#include "rdm/nics.h"
#include "ucx/wire.h"

namespace dtrain::rdm {

const char *const transport_name = "ucx";

// Lists one device, since UCX itself chooses among networks for each peer.
dtrain_status_t list_devices(const tp::Host &host, std::string *names) {
    if (const dtrain_status_t status = ucx::Wire::check(host); status != DTRAIN_OK) return status;
    std::vector<Nic> nics = rdma_nics();
    if (nics.empty()) {
        nics.emplace_back().name = "tcp";
        nics.back().why = "the kernel has no RDMA device";
    }
    for (Nic &nic : nics) {
        nic.chosen = nic.state != "down";
        if (nic.why.empty())
            nic.why = nic.chosen ? "UCX chooses among those of ucx.devices, for each peer"
                                 : "its link is down";
    }
    tell(host, transport_name, nics);
    *names = "ucx";
    return DTRAIN_OK;
}

std::string kind_of(const char *) { return "ucx"; }

std::unique_ptr<Wire> make_wire(const tp::Host &host, Protocol *protocol) {
    return std::unique_ptr<Wire>(new (std::nothrow) ucx::Wire(host, *protocol));
}

} // namespace dtrain::rdm

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_ucx;
const dtrain_tp_plugin_t dtrain_tp_plugin_ucx{sizeof(dtrain_tp_plugin_t), DTRAIN_TP_ABI, "ucx",
                                              "0.1.0", &dtrain::rdm::ops};
}
