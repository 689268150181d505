// The network cards of this host: what the kernel knows of them, which are used, and why.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <string>
#include <vector>

namespace dtrain::rdm {

struct Card {
    std::string device;            // as dtrain_tp_ops_t::list() names it
    std::string name;              // the kernel's: "mlx5_0", "eth0"
    std::string address;           // "10.0.0.4"; "": not known
    std::string network;           // "10.0.0.0/24": who has the same is reached; "": not known
    std::string state = "unknown"; // "up"; "down" and the like: it cannot be used
    int32_t numa_node = -1;        // -1: not known
    uint64_t bandwidth_bps = 0;    // bytes per second; 0: not known
    bool near = true;              // to the cores that this process may use
    bool chosen = false;
    std::string why;

    // Fills in what is below `root` (for tests; the kernel's is /sys). That is all that matters
    // between cores and cards; what hwloc knows besides lies between cards and GPUs.
    void look_up(const std::string &root = "/sys");
};

// What the choice depends on.
struct Choice {
    std::string named;  // by the user: names, separated by commas; "": none
    std::string option; // that names them
    std::string route;  // own address on the way to the other hosts; "": not known
    int local_rank = 0, local_size = 1;
    bool single = false; // of cards that nobody has named one is enough

    static Choice of(const tp::Host &host, const char *option);
};

// Chooses, says why, and puts the chosen ones first, in the order of their rails.
void choose(std::vector<Card> &cards, const Choice &choice);
// To the core, for people.
void tell(const tp::Host &host, const char *transport, const std::vector<Card> &cards);
// The RDMA devices that the kernel has.
std::vector<Card> rdma_cards(const std::string &root = "/sys");
// Why RDMA devices that the kernel has cannot be used, as far as that can be seen: "mlx5_0 is
// down". "": there are none.
std::string unusable_devices(const std::string &root = "/sys", const std::string &devices = "/dev");

} // namespace dtrain::rdm
