// An operation's buffers on an accelerator, for ranks on the same one that reach them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/device_memory.h"

#include <cstdint>

namespace dtrain::accel {

struct DirectBuffer {
    SharedAllocation allocation; // offset: of the buffer
    void *address =
        nullptr; // of the buffer, for the device, in this process; nullptr: there is none
};

// All that there are lie in shared memory of the domain's device. Who has it keeps that in use.
struct DirectBuffers {
    Domain *domain = nullptr;
    DirectBuffer send, recv;
};

} // namespace dtrain::accel
