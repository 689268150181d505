// What a simulated card is told of the world. It is a plugin, which the program loads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <sys/types.h>

extern "C" {
// The number of the caller's host.
int simulator_own_host();
// The process of a host, as the kernel knows it.
pid_t simulator_process_of(int host);
// Until when the caller's host is cut off from another one, on the simulated clock; perhaps long
// ago.
int64_t simulator_cut_until(int host);
}
