// A tuning that has all that a file may hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/tuning.h"

inline dtrain::collectives::Tuning sample_tuning(uint64_t ranks = 16) {
    dtrain::collectives::Tuning tuning;
    tuning.machine = {.cpu = "Some CPU @ 2.50GHz",
                      .transports = "shm+tcp",
                      .cores = 8,
                      .bandwidth = 1250000000,
                      .ranks = ranks,
                      .hosts = 2};
    tuning.model = {1234.5, 100.25, 0.1, 0.05, 1.0 / 3};
    tuning.exchange_bytes = 32768;
    tuning.chunk_bytes = 131072;
    tuning.eager_bytes = 65536;
    return tuning;
}
