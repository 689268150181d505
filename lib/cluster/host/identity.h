// A process's place in its job, as known before it has contacted any other process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/limits.h"

#include <cstdint>
#include <string>

namespace dtrain::cluster {

enum class Role : uint8_t { worker = 0, server = 1 };

struct Identity {
    Role role = Role::worker;
    int32_t index = 0;   // rank among the workers, or number among the servers
    int32_t workers = 1; // of the whole job
    int32_t servers = 0;
    std::string rendezvous; // "tcp://...", "file://...", "oob", "pmi"; "" for a job of one process
    // Set if `rendezvous` names a host, but no port of dtrain's: worker 0 listens at one of several
    // ports that are computed from the seed, and port_reason says where that is from.
    uint32_t port_seed = 0;
    std::string port_reason;
    int32_t listen_fd = -1; // a listening socket that worker 0 inherited, or -1

    // An elastic job takes processes in while it runs. A newcomer has no number yet, and the sizes
    // are unknown to it.
    bool elastic = false, newcomer = false;
    uint32_t generation = 0; // how often the job was formed anew before
    std::string door;        // the rendezvous for newcomers; "": the rendezvous

    // What newcomers say in the handshake.
    static constexpr int32_t newcomer_number = int32_t(wire::max_members) - 1;
    // Members of a job are numbered workers first, then servers.
    int32_t member() const {
        return newcomer ? newcomer_number : role == Role::worker ? index : workers + index;
    }
    int32_t members() const { return workers + servers; }
    bool meets_others() const { return members() > 1 || elastic; }
};

} // namespace dtrain::cluster
