// Both sides of a connection prove that they know the job's secret, without revealing it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shm/messages.h"

namespace dtrain::shm {

// The data that both proofs cover, so that a proof is valid for no other connection or devices.
struct Transcript {
    Nonce connector_nonce{}, acceptor_nonce{};
    Address connector, acceptor;
};

enum class Role : uint8_t { connector = 'c', acceptor = 'a' };

// Computes the proof of that role: a MAC (RFC 2104, SHA-256) under the secret; zeros if the job has
// none.
Status prove(const Host &host, Role role, const Transcript &transcript, Mac &out);
// DTRAIN_ERR_AUTH if `mac` is not the proof of that role.
Status verify(const Host &host, Role role, const Transcript &transcript, const Mac &mac);

} // namespace dtrain::shm
