/* Memory and streams of GPUs for tests of the Java module, by the driver that the process finds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

typedef uint64_t Address;

static void *find(const char *name) {
    static void *library;
    if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, name);
    if (symbol == NULL) abort();
    return symbol;
}

/* Calls a function of the driver, which must succeed, in the context of GPU 0. */
#define CALL(types, name, ...)                                                                     \
    do {                                                                                           \
        if (((int(*) types)find(name))(__VA_ARGS__) != 0) abort();                                 \
    } while (0)

static void enter(void) {
    static void *context;
    CALL((unsigned), "cuInit", 0);
    if (context == NULL) CALL((void **, int), "cuDevicePrimaryCtxRetain", &context, 0);
    CALL((void *), "cuCtxPushCurrent_v2", context);
}

static void leave(void) {
    void *context;
    CALL((void **), "cuCtxPopCurrent_v2", &context);
}

JNIEXPORT jlong JNICALL Java_org_dtrain_Gpu_allocate(JNIEnv *env, jclass type, jlong bytes) {
    (void)env, (void)type;
    Address address = 0;
    enter();
    CALL((Address *, size_t), "cuMemAlloc_v2", &address, (size_t)bytes);
    leave();
    return (jlong)address;
}

JNIEXPORT void JNICALL Java_org_dtrain_Gpu_free(JNIEnv *env, jclass type, jlong address) {
    (void)env, (void)type;
    enter();
    CALL((Address), "cuMemFree_v2", (Address)address);
    leave();
}

JNIEXPORT void JNICALL Java_org_dtrain_Gpu_write(JNIEnv *env, jclass type, jlong address,
                                                 jobject from, jlong bytes) {
    (void)type;
    enter();
    CALL((Address, const void *, size_t), "cuMemcpyHtoD_v2", (Address)address,
         (*env)->GetDirectBufferAddress(env, from), (size_t)bytes);
    leave();
}

JNIEXPORT void JNICALL Java_org_dtrain_Gpu_read(JNIEnv *env, jclass type, jobject into,
                                                jlong address, jlong bytes) {
    (void)type;
    enter();
    CALL((void *, Address, size_t), "cuMemcpyDtoH_v2", (*env)->GetDirectBufferAddress(env, into),
         (Address)address, (size_t)bytes);
    leave();
}

JNIEXPORT jlong JNICALL Java_org_dtrain_Gpu_stream(JNIEnv *env, jclass type) {
    (void)env, (void)type;
    void *stream = NULL;
    enter();
    CALL((void **, unsigned, int), "cuStreamCreateWithPriority", &stream, 1, 0);
    leave();
    return (jlong)(intptr_t)stream;
}

static void nap(void *unused) {
    (void)unused;
    usleep(100 * 1000);
}

/* The stream fills the memory, after a while. */
JNIEXPORT void JNICALL Java_org_dtrain_Gpu_fillLater(JNIEnv *env, jclass type, jlong stream,
                                                     jlong address, jint value, jlong bytes) {
    (void)env, (void)type;
    void *const at = (void *)(intptr_t)stream;
    enter();
    CALL((void *, void (*)(void *), void *), "cuLaunchHostFunc", at, nap, NULL);
    CALL((Address, unsigned char, size_t, void *), "cuMemsetD8Async", (Address)address,
         (unsigned char)value, (size_t)bytes, at);
    leave();
}
