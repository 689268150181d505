// Where a process listens, as a text that is sent to other hosts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/host/socket.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::cluster {

struct Place {
    // Identifies the host. Its own processes may use its loopback address; other hosts may have the
    // same addresses on private networks (docker0), which do not lead to this one.
    uint64_t host = 0;
    std::vector<Endpoint> endpoints; // numeric; peers try them in turn

    // "5f3a77e1@10.0.0.4:4711,[fd00::4]:4711": at most wire::max_address - 1 bytes, so it may omit
    // endpoints.
    std::string text() const;
    // DTRAIN_ERR_INVALID; the text begins with `what`. A text without a host number is one endpoint
    // for all.
    static Status parse(const std::string &text, const char *what, Place &out);
    // The endpoints that may lead there from this host, the best first. Not empty, except on
    // DTRAIN_ERR_NOT_FOUND, whose text says why.
    Status candidates(std::vector<SocketAddress> &out) const;
};

// The place at which a listening socket can be reached: its address, or all addresses of this host
// if it listens on all.
Place place_of(int listener);

// host_identity() as a number.
uint64_t host_number();

} // namespace dtrain::cluster
