// Loads shared objects with dlopen(), and checks that they define symbols themselves.
// SPDX-License-Identifier: Apache-2.0
#include "base/shared_object.h"

#include <csignal>
#include <dlfcn.h>
#include <link.h>
#include <string_view>

namespace dtrain {
namespace {

// Whether the file itself defines the symbol. A file that lacks it but links a library that has it
// would otherwise return the library's.
bool lives_in(void *handle, void *symbol) {
    const link_map *file = nullptr;
    Dl_info info;
    void *owner = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, &file) == 0 &&
           dladdr1(symbol, &info, &owner, RTLD_DL_LINKMAP) != 0 && owner == file;
}

// Restores signal handlers: libraries that the file needs may install handlers as soon as they are
// loaded (libpsm2 does, beneath libfabric), but signals belong to the program.
class KeepSignals {
  public:
    KeepSignals() {
        for (int signal = 1; signal < NSIG; signal++) known_[signal] = get(signal, before_[signal]);
    }
    ~KeepSignals() {
        struct sigaction now;
        for (int signal = 1; signal < NSIG; signal++)
            if (known_[signal] && get(signal, now) && now.sa_handler != before_[signal].sa_handler)
                sigaction(signal, &before_[signal], nullptr);
    }

  private:
    static bool get(int signal, struct sigaction &out) {
        return sigaction(signal, nullptr, &out) == 0;
    }
    struct sigaction before_[NSIG];
    bool known_[NSIG];
};

// dlerror() names the faulty file; if that is not `path`, it is a library that `path` needs.
Status cannot_load(std::string_view path) {
    const std::string_view why = dlerror();
    const bool needed = !why.starts_with(path) && why.find("cannot open") != why.npos;
    return fail(DTRAIN_ERR_CONFIG, "%s%s", why.data(),
                needed ? "; it needs that library: install it, or do without" : "");
}

} // namespace

SharedObject::~SharedObject() {
    if (handle_ != nullptr) dlclose(handle_);
}

Status SharedObject::open(const char *path) {
    KeepSignals keep;
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return handle_ != nullptr ? DTRAIN_OK : cannot_load(path);
}

void *SharedObject::find(const char *name) const { return dlsym(handle_, name); }

Status SharedObject::find_own(const char *name, void *&out) const {
    out = find(name);
    if (out != nullptr && lives_in(handle_, out)) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG, "it does not export %s() itself", name);
}

Status load_symbol(const char *path, const char *name, void *&out) {
    SharedObject object;
    const Status s = object.open(path);
    return s == DTRAIN_OK ? object.find_own(name, out) : s;
}

} // namespace dtrain
