// Finds plugins for accelerators: in the search path, or installed beside the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain_basics.h"
#include "dtrain_device.h"

#include <string_view>

namespace dtrain::accel {

// Finds and loads libdtrain_device_<name>.so, and checks its table. A plugin stays loaded for the
// life of the process. Any thread. NOT_FOUND: the text tells the places searched.
Status find_plugin(std::string_view name, std::string_view search_path,
                   const dtrain_dv_plugin_t *&out);

} // namespace dtrain::accel
