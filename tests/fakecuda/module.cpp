// Modules and launches: the kernels are those that g++ makes of the same sources.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstdio>
#include <dlfcn.h>
#include <string>

using namespace fakecuda;

namespace {

using KernelFunction = void (*)(const void *arguments, uint64_t bytes, const Grid *grid);
constexpr unsigned most_blocks = 3; // enough to show an element that is done twice or never

struct Image {
    std::string text; // the PTX, which says what kernels there are
};

// The kernels lie beside this library.
void *kernels() {
    static void *const opened = [] {
        Dl_info info;
        if (dladdr(reinterpret_cast<void *>(&kernels), &info) == 0)
            return static_cast<void *>(nullptr);
        std::string file = info.dli_fname;
        file = file.substr(0, file.rfind('/') + 1) + "libfakecuda_kernels.so";
        void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) complain("%s", dlerror());
        return handle;
    }();
    return opened;
}

} // namespace

FAKE_API Result cuModuleLoadData(Image **out, const void *image) {
    ENTER("cuModuleLoadData", true);
    wait_for_held_streams();
    std::string text(static_cast<const char *>(image));
    if (text.find(".version ") == text.npos) return invalid_image;
    *out = new Image{std::move(text)};
    return success;
}
FAKE_API Result cuModuleUnload(Image *module) {
    ENTER("cuModuleUnload", true, true);
    wait_for_held_streams();
    delete module;
    return success;
}
FAKE_API Result cuModuleGetFunction(KernelFunction *out, const Image *module, const char *name) {
    ENTER("cuModuleGetFunction", true);
    if (module->text.find(".entry " + std::string(name) + "(") == std::string::npos)
        return not_found;
    void *found = kernels() != nullptr ? dlsym(kernels(), name) : nullptr;
    if (found == nullptr) {
        complain("the PTX has the kernel %s, the sources have not", name);
        return not_found;
    }
    *out = reinterpret_cast<KernelFunction>(found);
    return success;
}
FAKE_API Result cuFuncLoad(KernelFunction) {
    ENTER("cuFuncLoad", true);
    return success;
}

FAKE_API Result cuLaunchKernel(KernelFunction kernel, unsigned blocks, unsigned y, unsigned z,
                               unsigned threads, unsigned ty, unsigned tz, unsigned, Stream stream,
                               void **parameters, void **extra) {
    ENTER("cuLaunchKernel", true);
    if (parameters != nullptr || extra == nullptr) return invalid_value;
    if (reinterpret_cast<uintptr_t>(extra[0]) != launch_buffer ||
        reinterpret_cast<uintptr_t>(extra[2]) != launch_buffer_size || extra[4] != nullptr)
        return invalid_value;
    if (blocks == 0 || blocks > 0x7fffffff || y * z * ty * tz != 1 || threads == 0 ||
        threads > 1024)
        return invalid_value;
    const std::string arguments(static_cast<char *>(extra[1]), *static_cast<size_t *>(extra[3]));
    const unsigned played = blocks < most_blocks ? blocks : most_blocks;
    return submit(stream, [=] {
        for (unsigned b = played; b-- > 0;) {
            const Grid grid{b, played, fake().base, reserved, reserved};
            kernel(arguments.data(), arguments.size(), &grid);
        }
        return true;
    });
}
