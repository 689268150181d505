/* Calls from the library, in any of its threads, to Java objects: by static methods of the class
 * Callbacks, which find the object by its number and catch its exceptions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_JAVA_CALLBACKS_H
#define DTRAIN_JAVA_CALLBACKS_H
#include <dtrain.h>
#include <jni.h>

static JavaVM *machine;
static jclass callbacks;
static jmethodID log_method, allgather_method, place_method;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    JNIEnv *env;
    machine = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_10) != JNI_OK) return JNI_ERR;
    jclass found = (*env)->FindClass(env, "org/dtrain/Callbacks");
    if (found == NULL) return JNI_ERR;
    callbacks = (*env)->NewGlobalRef(env, found);
    log_method = (*env)->GetStaticMethodID(env, found, "log", "(IJLjava/nio/ByteBuffer;)V");
    if (log_method == NULL) return JNI_ERR;
    allgather_method = (*env)->GetStaticMethodID(env, found, "allgather",
                                                 "(JLjava/nio/ByteBuffer;Ljava/nio/ByteBuffer;)Z");
    if (allgather_method == NULL) return JNI_ERR;
    place_method = (*env)->GetStaticMethodID(env, found, "place", "(JJJI)I");
    return place_method == NULL ? JNI_ERR : JNI_VERSION_10;
}

/* The JNI environment of this thread, which Java may not know yet; NULL: the Java machine has
 * ended. */
static JNIEnv *enter_java(int *attached) {
    JNIEnv *env = NULL;
    *attached = 0;
    if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_10) == JNI_OK) return env;
    *attached = (*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, NULL) == JNI_OK;
    return *attached ? env : NULL;
}

/* Clears exceptions that were thrown nevertheless (memory is short). */
static void leave_java(JNIEnv *env, int attached, jobject first, jobject second) {
    if ((*env)->ExceptionCheck(env)) (*env)->ExceptionDescribe(env);
    (*env)->DeleteLocalRef(env, first);
    (*env)->DeleteLocalRef(env, second);
    if (attached) (*machine)->DetachCurrentThread(machine);
}

static void call_log(void *arg, int32_t level, const char *line) {
    int attached;
    JNIEnv *env = enter_java(&attached);
    if (env == NULL) return;
    jobject text = (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)line, (jlong)strlen(line));
    if (text != NULL)
        (*env)->CallStaticVoidMethod(env, callbacks, log_method, level, (jlong)(intptr_t)arg, text);
    leave_java(env, attached, text, NULL);
}

static int32_t call_allgather(void *arg, const void *send, void *recv, size_t len) {
    int attached;
    JNIEnv *env = enter_java(&attached);
    if (env == NULL) return 1;
    jboolean done = JNI_FALSE;
    /* Callbacks knows the number of ranks, and so how much recv holds. */
    jobject mine = (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)send, (jlong)len);
    jobject all = mine == NULL ? NULL : (*env)->NewDirectByteBuffer(env, recv, INT32_MAX);
    if (all != NULL)
        done = (*env)->CallStaticBooleanMethod(env, callbacks, allgather_method,
                                               (jlong)(intptr_t)arg, mine, all);
    leave_java(env, attached, mine, all);
    return !done;
}

static uint32_t call_place(void *arg, uint64_t first, uint64_t count, uint32_t servers) {
    int attached;
    JNIEnv *env = enter_java(&attached);
    if (env == NULL) return UINT32_MAX;
    const jint server =
        (*env)->CallStaticIntMethod(env, callbacks, place_method, (jlong)(intptr_t)arg,
                                    (jlong)first, (jlong)count, (jint)servers);
    leave_java(env, attached, NULL, NULL);
    return (uint32_t)server;
}

#endif
