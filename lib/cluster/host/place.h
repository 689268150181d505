// Where a process listens, in a text that travels to other hosts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/socket.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::cluster {

struct Place {
    // Processes of this host may use its loopback; those of others may have the same addresses on
    // networks of their own (docker0), which lead nowhere.
    uint64_t host = 0;
    std::vector<Endpoint> endpoints; // numeric; whoever comes tries them in turn

    // "5f3a77e1@10.0.0.4:4711,[fd00::4]:4711": at most wire::max_address - 1 bytes, so perhaps not
    // all of them.
    std::string text() const;
    // DTRAIN_ERR_INVALID naming `what`. A text without a host is one endpoint for all.
    static Status parse(const std::string &text, const char *what, Place &out);
    // Those that may lead there from this host, the best first; not empty, but on
    // DTRAIN_ERR_NOT_FOUND, which says why.
    Status candidates(std::vector<SocketAddress> &out) const;
};

// By which a socket that listens can be reached: its address, or all of this host's when it listens
// at all of them.
Place place_of(int listener);

// A number for host_identity().
uint64_t host_number();

} // namespace dtrain::cluster
