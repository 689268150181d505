// What a reform has changed, as dtrain_comm_changes() tells it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/next_job.h"

#include <string>

namespace dtrain::api {

std::string describe(const cluster::NextJob &next);

} // namespace dtrain::api
