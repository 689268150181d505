/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 128, NON_BLOCKING = 1 };

typedef uint64_t address_t; /* CUdeviceptr */
typedef struct CUctx_st *context_t;

static struct functions {
    int (*init)(unsigned);
    int (*error_name)(int, const char **);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*retain)(context_t *, int);
    int (*release)(int);
    int (*push)(context_t);
    int (*pop)(context_t *);
    int (*allocate)(address_t *, size_t);
    int (*free)(address_t);
    int (*to_device)(address_t, const void *, size_t);
    int (*to_host)(void *, address_t, size_t);
    int (*create_stream)(stream_t *, unsigned, int);
    int (*wait)(stream_t);
    int (*destroy_stream)(stream_t);
    int (*load)(module_t *, const void *);
    int (*unload)(module_t);
    int (*find)(kernel_t *, module_t, const char *);
    int (*launch)(kernel_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  stream_t, void **, void **);
} driver;
static int opened = -1; /* the device */

static int check(int result, const char *what) {
    const char *name = "an unknown error";
    if (result == 0) return 0;
    (void)driver.error_name(result, &name);
    fprintf(stderr, "%s: %s\n", what, name);
    return -1;
}

static int find_functions(void) {
    static const struct symbol {
        const char *name;
        void *function; /* a member of driver */
    } symbols[] = {{"cuInit", &driver.init},
                   {"cuGetErrorName", &driver.error_name},
                   {"cuDeviceGetCount", &driver.device_count},
                   {"cuDeviceGet", &driver.device_get},
                   {"cuDevicePrimaryCtxRetain", &driver.retain},
                   {"cuDevicePrimaryCtxRelease_v2", &driver.release},
                   {"cuCtxPushCurrent_v2", &driver.push},
                   {"cuCtxPopCurrent_v2", &driver.pop},
                   {"cuMemAlloc_v2", &driver.allocate},
                   {"cuMemFree_v2", &driver.free},
                   {"cuMemcpyHtoD_v2", &driver.to_device},
                   {"cuMemcpyDtoH_v2", &driver.to_host},
                   {"cuStreamCreateWithPriority", &driver.create_stream},
                   {"cuStreamSynchronize", &driver.wait},
                   {"cuStreamDestroy_v2", &driver.destroy_stream},
                   {"cuModuleLoadData", &driver.load},
                   {"cuModuleUnload", &driver.unload},
                   {"cuModuleGetFunction", &driver.find},
                   {"cuLaunchKernel", &driver.launch}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        fprintf(stderr, "no driver for NVIDIA GPUs: %s\n", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *(void **)symbols[i].function = dlsym(library, symbols[i].name);
        if (*(void **)symbols[i].function != NULL) continue;
        fprintf(stderr, "the driver for NVIDIA GPUs has no %s\n", symbols[i].name);
        return -1;
    }
    return check(driver.init(0), "starting the GPUs");
}

int driver_devices(int *count) {
    if (driver.init == NULL && find_functions() != 0) return -1;
    if (check(driver.device_count(count), "counting the GPUs") != 0) return -1;
    if (*count > 0) return 0;
    fprintf(stderr, "this machine has no GPU\n");
    return -1;
}

int driver_open(int device) {
    int number;
    context_t context;
    if (check(driver.device_get(&number, device), "finding the GPU") != 0 ||
        check(driver.retain(&context, number), "opening the GPU") != 0)
        return -1;
    opened = number;
    return check(driver.push(context), "using the GPU");
}

void driver_close(void) {
    context_t popped;
    if (opened < 0) return;
    (void)driver.pop(&popped);
    (void)driver.release(opened);
    opened = -1;
}

int stream_create(stream_t *stream) {
    return check(driver.create_stream(stream, NON_BLOCKING, 0), "making a stream");
}

int stream_wait(stream_t stream) { return check(driver.wait(stream), "on the GPU"); }

void stream_free(stream_t stream) {
    if (stream != NULL) (void)driver.destroy_stream(stream);
}

int device_array(void **array, const void *data, size_t bytes) {
    address_t address = 0;
    void *zeros = data == NULL ? calloc(1, bytes) : NULL;
    if (data == NULL && zeros == NULL) return fprintf(stderr, "out of memory\n"), -1;
    int result = check(driver.allocate(&address, bytes), "allocating memory of the GPU");
    *array = (void *)(uintptr_t)address; /* NOLINT: addresses are numbers there */
    if (result == 0) result = device_write(*array, data != NULL ? data : zeros, bytes);
    free(zeros);
    return result;
}

void device_free(void *array) {
    if (array != NULL) (void)driver.free((uintptr_t)array);
}

int device_write(void *array, const void *data, size_t bytes) {
    return check(driver.to_device((uintptr_t)array, data, bytes), "copying to the GPU");
}

int device_read(void *data, const void *array, size_t bytes) {
    return check(driver.to_host(data, (uintptr_t)array, bytes), "copying from the GPU");
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long size = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    if (size >= 0) text = calloc(1, (size_t)size + 1);
    if (text != NULL) {
        rewind(file);
        if (fread(text, 1, (size_t)size, file) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    if (file != NULL) (void)fclose(file);
    return text;
}

int module_load(module_t *module, const char *file) {
    char *text = read_file(file);
    if (text == NULL) {
        fprintf(stderr, "cannot read the kernels, %s (nvcc makes them of digits.cu)\n", file);
        return -1;
    }
    int result = check(driver.load(module, text), file);
    free(text);
    return result;
}

void module_free(module_t module) {
    if (module != NULL) (void)driver.unload(module);
}

int kernel_find(kernel_t *kernel, module_t module, const char *name) {
    return check(driver.find(kernel, module, name), name);
}

int kernel_launch(kernel_t kernel, size_t threads, void *arguments, size_t bytes, stream_t stream) {
    enum { END, BUFFER, BUFFER_SIZE }; /* CU_LAUNCH_PARAM_... */
    void *extra[] = {(void *)(uintptr_t)BUFFER, arguments, (void *)(uintptr_t)BUFFER_SIZE, &bytes,
                     (void *)(uintptr_t)END}; /* NOLINT: these are numbers */
    const unsigned blocks = (unsigned)((threads + BLOCK - 1) / BLOCK);
    return check(driver.launch(kernel, blocks, 1, 1, BLOCK, 1, 1, 0, stream, NULL, extra),
                 "launching a kernel");
}
