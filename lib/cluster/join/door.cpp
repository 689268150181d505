// Opens and closes the door of an elastic job.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/door.h"

namespace dtrain::cluster {

Status Door::open(const Identity &where, const std::string &listen_address, Fd taken,
                  int64_t deadline_ns) {
    Identity first = where; // rank 0 is who listens
    first.role = Role::worker;
    first.index = 0;
    first.elastic = true;
    first.newcomer = false;
    first.listen_fd = -1;
    if (!where.door.empty()) first.rendezvous = where.door;
    Rendezvous fresh;
    if (Status s = fresh.parse(first, listen_address, nullptr, nullptr); s != DTRAIN_OK) return s;
    if (!fresh.takes_newcomers())
        return fail(
            DTRAIN_ERR_UNSUPPORTED,
            "no process can be taken in by rendezvous \"%s\": it serves once; use tcp:// or "
            "file://",
            first.rendezvous.c_str());
    Fd listener = std::move(taken);
    if (Status s = fresh.open(deadline_ns, listener, where.generation + 1); s != DTRAIN_OK)
        return s;
    close();
    rendezvous_ = std::move(fresh);
    listener_ = std::move(listener);
    return DTRAIN_OK;
}

void Door::close() {
    listener_.reset();
    rendezvous_.close();
}

Fd Door::release() { return std::move(listener_); }

} // namespace dtrain::cluster
