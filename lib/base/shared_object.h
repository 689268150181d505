// Loads shared objects that others have written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

namespace dtrain {

// It stays loaded for the life of the process, since its threads and thread-local destructors
// could outlive any unloading. The process's signal handlers are kept.
class SharedObject {
  public:
    SharedObject() = default;
    ~SharedObject();
    SharedObject(const SharedObject &) = delete;
    SharedObject &operator=(const SharedObject &) = delete;

    // DTRAIN_ERR_CONFIG: the text says why, but not which file.
    Status open(const char *path);
    // Of the file, or of a library that it needs; nullptr: there is none.
    void *find(const char *name) const;
    // Of the file itself. DTRAIN_ERR_CONFIG: there is none; the text names the symbol.
    Status find_own(const char *name, void *&out) const;

  private:
    void *handle_ = nullptr;
};

// Loads one symbol, which the file must define itself.
Status load_symbol(const char *path, const char *name, void *&out);

} // namespace dtrain
