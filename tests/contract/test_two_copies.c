/* Two copies of the library in one process: neither sees the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "dtrain.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/dtrain-copies-XXXXXX";
static const char *const names[] = {"/first.so", "/second.so"};

struct copy {
    void *library;
    dtrain_context_t *context;
    dtrain_comm_t *comm;
};

static void copy_file(const char *from, const char *to) {
    static char block[1 << 16];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(block, 1, sizeof block, in)) > 0)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* A function of that copy; the type is the one of dtrain.h. */
#define CALL(copy, name) ((__typeof__(&name))find((copy)->library, #name))

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void load(struct copy *copy, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s%s", folder, name);
    copy_file(BUILD_FOLDER "/lib/libdtrain.so.0", path);
    copy->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    if (copy->library == NULL) fail_msg("%s", dlerror());
    assert_int_equal(CALL(copy, dtrain_context_create)(DTRAIN_API_VERSION, NULL, &copy->context),
                     DTRAIN_OK);
    assert_int_equal(CALL(copy, dtrain_comm_create)(copy->context, "env", NULL, &copy->comm),
                     DTRAIN_OK);
}

static void both_work(void **state) {
    (void)state;
    struct copy copies[2];
    float x = 3, y = 0;
    char text[64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) load(&copies[i], names[i]);
    assert_int_equal(rmdir(folder), 0);
    assert_ptr_not_equal(find(copies[0].library, "dtrain_barrier"),
                         find(copies[1].library, "dtrain_barrier"));
    for (int i = 0; i < 2; i++) {
        struct copy *copy = &copies[i];
        assert_int_equal(
            CALL(copy, dtrain_allreduce)(copy->comm, &x, &y, 1, DTRAIN_F32, DTRAIN_SUM, NULL, NULL),
            DTRAIN_OK);
        assert_true(y == 3);
    }
    /* Errors are each copy's own. */
    assert_int_equal(CALL(&copies[0], dtrain_comm_status)(NULL), DTRAIN_ERR_INVALID);
    assert_int_equal(CALL(&copies[1], dtrain_last_error)(text, sizeof text), 0);
    assert_int_equal(CALL(&copies[0], dtrain_last_error)(text, sizeof text),
                     strlen("comm is NULL"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(CALL(&copies[i], dtrain_comm_destroy)(copies[i].comm), DTRAIN_OK);
        assert_int_equal(CALL(&copies[i], dtrain_context_destroy)(copies[i].context), DTRAIN_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_work)};
    return cmocka_run_group_tests_name("two copies", tests, NULL, NULL);
}
