// Cases of the transports over libraries of RDMA.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"

namespace dtrain::test {

// It has announced a message, was granted the place for it, and is not heard of any more.
inline void a_silent_sender_gives_the_place_back(void **) {
    Pair pair;
    dtrain_tp_ep_t *to_a = pair.connect_back();
    const Bytes sent = pattern(3 << 20, 1);
    Bytes got(sent.size());
    pair.a.recv(1, got, 1);
    pair.b.send(to_a, 1, sent, 1);
    const uint64_t before = ops().moved(pair.a.dev);
    while (ops().moved(pair.a.dev) == before) { // until it is granted
        pair.b.progress();
        pair.a.progress();
    }
    pair.a.disconnect(pair.to_b);
    // A network that reads the sender's memory may end it well without the sender.
    if (await({&pair.a}, pair.a, DTRAIN_TP_RECV, 1).status == DTRAIN_OK) assert_true(got == sent);
}

inline const CMUnitTest rdm_cases[] = {
    cmocka_unit_test(a_silent_sender_gives_the_place_back),
};

} // namespace dtrain::test
