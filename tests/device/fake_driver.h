// The driver for tests, loaded before the plugin looks for libcuda.so.1.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "conformance.h"

#include <dlfcn.h>

namespace dtrain::test {

// DTRAIN_TEST_REAL_CUDA: the machine's own driver instead.
inline bool is_real() { return getenv("DTRAIN_TEST_REAL_CUDA") != nullptr; }

inline void *driver_handle = nullptr;

// A library is found by its name once it is loaded, wherever it came from.
inline void load_driver(const char *folder = "fakecuda") {
    const std::string file =
        is_real() ? "libcuda.so.1" : std::string(BUILD_FOLDER) + "/" + folder + "/libcuda.so.1";
    driver_handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (driver_handle == nullptr) print_error("%s\n", dlerror());
    assert_non_null(driver_handle);
}

template <class F> F driver_function(const char *name) {
    void *symbol = dlsym(driver_handle, name);
    assert_non_null(symbol);
    return reinterpret_cast<F>(symbol);
}

inline void load_cuda() {
    const char *folder = getenv("DTRAIN_PLUGIN_PATH"); // of a tree that was built elsewhere
    const std::string plugins = folder != nullptr ? folder : PLUGIN_FOLDER;
    subject.plugin = load((plugins + "/libdtrain_device_cuda.so").c_str());
    assert_non_null(subject.plugin);
}

} // namespace dtrain::test
