// Loading a symbol that others have written. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

namespace dtrain {

// The symbol, which the file must define itself. It stays loaded for the life of the process: its
// threads and thread-local destructors could outlive it. The process's signal handlers stay as they
// are. DTRAIN_ERR_CONFIG says why, but not which file.
Status load_symbol(const char *path, const char *name, void *&out);

} // namespace dtrain
