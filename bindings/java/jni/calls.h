/* Blocking operations that finish in one JNI call, and conversion of texts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_JAVA_CALLS_H
#define DTRAIN_JAVA_CALLS_H
#include <dtrain.h>
#include <jni.h>

#include <stddef.h>

/* Events must have the layout that org.dtrain.Events reads. */
_Static_assert(sizeof(dtrain_event_t) == 64 && offsetof(dtrain_event_t, request) == 8 &&
                   offsetof(dtrain_event_t, bytes) == 16 &&
                   offsetof(dtrain_event_t, status) == 24 && offsetof(dtrain_event_t, peer) == 28 &&
                   offsetof(dtrain_event_t, version) == 32,
               "the event of dtrain.h is frozen");

/* Java checks for interrupts between two slices of a wait. */
enum { SLICE_NS = 20 * 1000 * 1000 };

/* Returns 0 if a blocking operation (DTRAIN_OP_AWAITED without a user_tag, which asks for its
 * result) has finished within a slice, so that it needs no request. */
static jlong finish_or_return(const dtrain_op_params_t *params, dtrain_request_t *request) {
    if (params == NULL || (params->flags & DTRAIN_OP_AWAITED) == 0 || params->user_tag != 0 ||
        dtrain_request_wait(request, SLICE_NS) != DTRAIN_OK)
        return (jlong)(intptr_t)request;
    dtrain_request_free(request);
    return 0;
}

static jbyteArray bytes_of_text(JNIEnv *jenv, const char *text) {
    if (text == NULL) return NULL;
    const jsize length = (jsize)strlen(text);
    jbyteArray bytes = (*jenv)->NewByteArray(jenv, length);
    if (bytes != NULL) (*jenv)->SetByteArrayRegion(jenv, bytes, 0, length, (const jbyte *)text);
    return bytes;
}

JNIEXPORT jlong JNICALL Java_org_dtrain_NativeJNI_address(JNIEnv *jenv, jclass type,
                                                          jobject buffer) {
    (void)type;
    return (jlong)(intptr_t)(*jenv)->GetDirectBufferAddress(jenv, buffer);
}

JNIEXPORT jobject JNICALL Java_org_dtrain_NativeJNI_memory(JNIEnv *jenv, jclass type, jlong address,
                                                           jlong bytes) {
    (void)type;
    return (*jenv)->NewDirectByteBuffer(jenv, (void *)(intptr_t)address, bytes);
}

#endif
