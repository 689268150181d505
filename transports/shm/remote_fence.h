// A memory fence in all processes that share memory, made by one of them: who stores often and
// looks whether anybody sleeps needs no fence then, which would have it wait for its stores; who
// goes to sleep, which is rare, makes it for all. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::shm {

// Once in a process suffices. False: the system cannot, and both sides have to fence.
bool join_remote_fences();

// When it returns, every thread of those who joined has passed a fence; so has this one.
void fence_everywhere();

} // namespace dtrain::shm
