// The place of a thread in the grid, for the kernels that g++ has made.
// SPDX-License-Identifier: Apache-2.0
#include "devices/cuda/kernels/portable.h"

extern "C" thread_local dtrain::cuda::Grid dtrain_fake_grid;
thread_local dtrain::cuda::Grid dtrain_fake_grid{};
