// Loads a symbol from a shared object that others have written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

namespace dtrain {

// Loads the symbol, which the file must define itself. The file stays loaded for the life of the
// process, since its threads and thread-local destructors could outlive any unloading. The
// process's signal handlers are kept. DTRAIN_ERR_CONFIG: the text says why, but not which file.
Status load_symbol(const char *path, const char *name, void *&out);

} // namespace dtrain
