// Which accelerators a context has, by the option, the plugins and the drivers that there are.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "gpu/in_child.h"

#include <dlfcn.h>

namespace {

std::string describe(dtrain_context_t *context) {
    std::string text(16384, '\0');
    text.resize(dtrain_context_describe(context, text.data(), text.size()));
    return text;
}
void expect(const std::string &text, const char *part) {
    if (text.find(part) == std::string::npos)
        std::fprintf(stderr, "no \"%s\" in: %s\n", part, text.c_str());
    REQUIRE(text.find(part) != std::string::npos);
}

dtrain_status_t create(const char *accelerators, dtrain_context_t **context) {
    dtrain_options_t *options = nullptr;
    OK(dtrain_options_create(&options));
    OK(dtrain_options_set(options, "accelerators", accelerators));
    const dtrain_status_t status = dtrain_context_create(DTRAIN_API_VERSION, options, context);
    dtrain_options_destroy(options);
    return status;
}
// A context of this option can be made, and says this of accelerators.
void describes(const char *accelerators, const char *part) {
    dtrain_context_t *context = nullptr;
    OK(create(accelerators, &context));
    expect(describe(context), part);
    OK(dtrain_context_destroy(context));
}
void refuses(const char *accelerators, dtrain_status_t status, const char *part) {
    dtrain_context_t *context = nullptr;
    FAILS(status, create(accelerators, &context));
    expect(ranks::last_error(), part);
}
void load(const char *folder) {
    const std::string file = std::string(BUILD_FOLDER) + "/" + folder + "/libcuda.so.1";
    REQUIRE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
}

void without_driver(void **) {
    gpu::in_child([] {
        if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return; // this machine has one
        describes("auto", "the program has not loaded libcuda.so.1");
        describes("none", "the option accelerators is \\\"none\\\"");
        refuses("cuda", DTRAIN_ERR_UNSUPPORTED, "NVIDIA's driver");
        dtrain_context_t *context = nullptr;
        OK(create("auto", &context));
        dtrain_mem_params_t params;
        DTRAIN_INIT(&params);
        params.mem_type = DTRAIN_MEM_CUDA;
        params.length = 100;
        dtrain_mem_t *mem = nullptr;
        FAILS(DTRAIN_ERR_UNSUPPORTED, dtrain_mem_create(context, &params, &mem));
        expect(ranks::last_error(), "NVIDIA's driver");
        OK(dtrain_context_destroy(context));
    });
}
void old_driver(void **) {
    gpu::in_child([] {
        load("fakecuda_old");
        describes("auto", "libcuda.so.1 has no cu");
        refuses("cuda", DTRAIN_ERR_UNSUPPORTED, "12.1");
    });
}
void driver_without_gpus(void **) {
    gpu::in_child([] {
        setenv("FAKECUDA_DEVICES", "0", 1);
        load("fakecuda");
        describes("auto", "CUDA_ERROR_NO_DEVICE");
        refuses("cuda", DTRAIN_ERR_UNSUPPORTED, "CUDA_ERROR_NO_DEVICE");
    });
}
void driver_with_gpus(void **) {
    gpu::in_child([] {
        setenv("FAKECUDA_DEVICES", "2", 1);
        load("fakecuda");
        for (const char *option : {"auto", "cuda", ",cuda,cuda"}) describes(option, "Fake GPU 1");
        describes("none", "\"used\": false");
    });
}
// A context that was made before looks again when it is described.
void driver_is_loaded_later(void **) {
    gpu::in_child([] {
        setenv("FAKECUDA_DEVICES", "1", 1);
        dtrain_context_t *later = nullptr, *without = nullptr;
        OK(create("auto", &later));
        OK(create("none", &without));
        expect(describe(later), "the program has not loaded libcuda.so.1");
        load("fakecuda");
        expect(describe(later), "Fake GPU 0");
        expect(describe(without), "the option accelerators is \\\"none\\\"");
        OK(dtrain_context_destroy(later));
        OK(dtrain_context_destroy(without));
    });
}
void plugin_is_missing(void **) {
    gpu::in_child([] {
        load("fakecuda");
        setenv("DTRAIN_PLUGIN_PATH", "/nonexistent", 1);
        describes("auto", "no device \\\"cuda\\\"; looked in: /nonexistent");
        refuses("cuda", DTRAIN_ERR_NOT_FOUND, "looked in: /nonexistent");
        refuses("../cuda", DTRAIN_ERR_INVALID, "option accelerators");
    });
}
void unknown_name(void **) {
    gpu::in_child([] { refuses("cuba", DTRAIN_ERR_NOT_FOUND, "the nearest name is \"cuda\""); });
}

} // namespace

int main() {
    setenv("DTRAIN_PLUGIN_PATH", PLUGIN_FOLDER, 1);
    const CMUnitTest tests[] = {
        cmocka_unit_test(without_driver),         cmocka_unit_test(old_driver),
        cmocka_unit_test(driver_without_gpus),    cmocka_unit_test(driver_with_gpus),
        cmocka_unit_test(driver_is_loaded_later), cmocka_unit_test(plugin_is_missing),
        cmocka_unit_test(unknown_name),
    };
    return cmocka_run_group_tests_name("loading", tests, nullptr, nullptr);
}
