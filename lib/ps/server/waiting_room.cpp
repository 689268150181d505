// Keeps and forgets the notes of waiting requests.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/waiting_room.h"

namespace dtrain::ps {

bool WaitingRoom::keep(std::vector<Waiting> &list, const RequestHeader &header,
                       PeerMemory &memory) {
    if (!memory.may_wait(sizeof(Waiting))) return false;
    list.push_back({header, Charge(memory, sizeof(Waiting))});
    return true;
}

void WaitingRoom::forget(uint32_t worker, uint64_t sequence) {
    erase([&](const RequestHeader &header) {
        return header.worker == worker && header.sequence == sequence;
    });
}

void WaitingRoom::leave(uint32_t worker) {
    erase([&](const RequestHeader &header) { return header.worker == worker; });
}

} // namespace dtrain::ps
