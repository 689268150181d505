// The network cards (NICs) of this host: their properties according to the kernel, which are used,
// and why.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <string>
#include <vector>

namespace dtrain::rdm {

struct Nic {
    std::string device;  // as listed by dtrain_tp_ops_t::list()
    std::string name;    // the kernel's name: "mlx5_0", "eth0"
    std::string address; // "10.0.0.4"; "": unknown
    // "10.0.0.0/24"; cards of the same network reach each other; "": unknown.
    std::string network;
    std::string state = "unknown"; // "up"; "down" and similar: it cannot be used
    int32_t numa_node = -1;        // -1: unknown
    uint64_t bandwidth_bps = 0;    // bytes per second; 0: unknown
    bool near = true;              // near the cores that this process may use
    bool chosen = false;
    std::string why;

    // Reads the card's properties below `root` (tests use another one than /sys). That is all that
    // matters between cores and cards; what hwloc knows in addition concerns cards and GPUs.
    void look_up(const std::string &root = "/sys");
};

// The inputs of the choice.
struct Choice {
    std::string named;  // by the user: names separated by commas; "": none
    std::string option; // name of the option that names cards
    std::string route;  // own address on the route to the other hosts; "": unknown
    int local_rank = 0, local_size = 1;
    bool single = false; // if no card is named, one is enough

    static Choice of(const tp::Host &host, const char *option);
};

// Chooses cards, gives the reasons, and puts the chosen ones first, in the order of their rails.
void choose(std::vector<Nic> &nics, const Choice &choice);
// Reports the cards to the core, for users to read.
void tell(const tp::Host &host, const char *transport, const std::vector<Nic> &nics);
// The RDMA devices that the kernel knows.
std::vector<Nic> rdma_nics(const std::string &root = "/sys");
// Why RDMA devices that the kernel knows cannot be used, as far as this is visible: "mlx5_0 is
// down". "": there are no such devices.
std::string unusable_devices(const std::string &root = "/sys", const std::string &devices = "/dev");

} // namespace dtrain::rdm
