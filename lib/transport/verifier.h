// Checks every message from the sender's memory to the receiver's (option verify).
// SPDX-License-Identifier: Apache-2.0
//
// A device in front of a transport's. Each message travels with a checksum before it, which is
// computed when the sender hands the message over, and compared when the receiver gets it. So
// nothing in between may change it unseen: not a network card, a bus, a switch, the memory of a
// kernel, nor a fault of the transport. A receive whose message was changed completes with
// DTRAIN_ERR_CORRUPT. Both sides must have it.
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"

namespace dtrain::transport {

// Puts a verifier in front of a device that has just been opened: replaces its operations and its
// handle; its attributes change, too. close() of the new handle also closes the device. On failure
// nothing is replaced. UNSUPPORTED if the transport cannot send two pieces in one message.
dtrain_status_t verify_messages(dtrain_tp_ops_t &ops, dtrain_tp_dev_t *&dev);

} // namespace dtrain::transport
