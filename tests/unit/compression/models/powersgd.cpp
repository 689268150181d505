// Job::low_rank() of naive.h is the model: its matrices are those of all ranks.
// SPDX-License-Identifier: Apache-2.0
#include "unit/compression/naive.h"

namespace naive {
namespace {

const AddModel powersgd({.kind = DTRAIN_COMPRESS_POWERSGD, .tolerance = 1e-3});

} // namespace
} // namespace naive
