// Finds out where memory lies that a program registers, and whether it is what the program says.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domains.h"
#include "dtrain.h"

namespace dtrain::api {

// out.domain: nullptr if it is memory of the host. Loads the plugin of an accelerator that the
// program has named or uses.
Status find_place(accel::Domains &domains, const dtrain_mem_params_t &params, accel::Where &out);

// What both ways to memory need: a kind that the library knows and serves, and known flags.
Status check_memory_kind(const dtrain_mem_params_t &params, const char *what);

// The plugin of DTRAIN_MEM_CUDA.
inline constexpr const char *cuda_plugin = "cuda";

} // namespace dtrain::api
