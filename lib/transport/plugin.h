// Finds transport plugins: in the search path, built in, or installed beside the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "dtrain_basics.h"
#include "dtrain_transport.h"

#include <span>
#include <string_view>

namespace dtrain::transport {

// Finds the table of the transport `name` ([a-z0-9_], at most 32 characters). The first of these
// places counts; a file that is found but unfit is an error, never skipped:
//   1. libdtrain_transport_<name>.so in a folder of search_path (absolute, separated by ':'),
//   2. the built-in transports,
//   3. that file in dtrain/ beside the shared object that holds this code.
// The current directory is never searched. A plugin stays loaded for the life of the process, so
// `out` stays valid. Any thread. NOT_FOUND: the text tells the places searched and the nearest
// name.
Status find_plugin(std::string_view name, std::string_view search_path,
                   const dtrain_tp_plugin_t *&out);

// Loads one file and checks its contents. VERSION: built for another ABI; CONFIG: not a plugin of
// that name. Both texts name the file.
Status load_plugin(const char *path, std::string_view name, const dtrain_tp_plugin_t *&out);

std::span<const dtrain_tp_plugin_t *const> builtin_plugins();

} // namespace dtrain::transport
