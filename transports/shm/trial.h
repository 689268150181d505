// Tries whether shared memory works here: some sandboxes (seccomp, containers) let a process open
// shared memory but refuse the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/socket.h"

namespace dtrain::shm {

// Does once, with this process alone, what two devices do: creates memory, passes it through a
// connection to its own listener, maps it, and rings. The error text names the step that failed.
Status try_out(const Host &host, const Name &own, const Fd &listener, const Doorbell &bell);

} // namespace dtrain::shm
