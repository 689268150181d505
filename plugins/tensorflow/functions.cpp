// Finds TensorFlow's functions in the library that the process has loaded. A program's own
// libtensorflow, linked or opened with RTLD_GLOBAL, serves as well.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/functions.h"
#include <dlfcn.h>

namespace dtrain::tensorflow {

Functions tf;

namespace {

// Where the functions are, in the order in which they are tried. Python's package has the first
// one.
constexpr const char *homes[] = {"libtensorflow_framework.so.2", "libtensorflow_cc.so.2",
                                 "libtensorflow.so.2"};

void *find(const char *name) {
    for (const char *home : homes)
        if (void *library = dlopen(home, RTLD_NOW | RTLD_NOLOAD)) {
            void *found = dlsym(library, name);
            dlclose(library); // the process keeps it
            if (found != nullptr) return found;
        }
    return dlsym(RTLD_DEFAULT, name);
}

} // namespace

std::string find_functions() {
    std::string missing;
#define DTRAIN_X(member, name, type)                                                               \
    tf.member = reinterpret_cast<decltype(tf.member)>(find(name));                                 \
    if (tf.member == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
    DTRAIN_TENSORFLOW_FUNCTIONS(DTRAIN_X)
#undef DTRAIN_X
    return missing.empty()
               ? missing
               : "TensorFlow 2.13 or later is needed in this process; it lacks " + missing;
}

} // namespace dtrain::tensorflow
