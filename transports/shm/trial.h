// Whether shared memory works here: sandboxes (seccomp, containers) let it be opened and refuse the
// rest. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/socket.h"

namespace dtrain::shm {

// Does once, with itself, what two devices do: makes memory, passes it through a connection to the
// own listener, maps what came, and rings. The text of a failure names the step.
Status try_out(const Host &host, const Name &own, const Fd &listener, const Doorbell &bell);

} // namespace dtrain::shm
