/* TFRecord files through the C API.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "dtrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/dtrain-contract-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/a.tfrecord", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when something was left behind */
}

static void write_numbers(uint32_t count) {
    dtrain_writer_t *writer = NULL;
    assert_int_equal(dtrain_writer_open(path, &writer), DTRAIN_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(dtrain_writer_append(writer, &i, sizeof i), DTRAIN_OK);
    assert_int_equal(dtrain_writer_close(writer), DTRAIN_OK);
}

static void numbers_come_back_twice(void **state) {
    (void)state;
    const char *paths[] = {path};
    const void *data = NULL;
    uint64_t length = 0;
    dtrain_reader_t *reader = NULL;
    write_numbers(1000);
    assert_int_equal(dtrain_reader_open(paths, 1, NULL, &reader), DTRAIN_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < 1000; i++) {
            assert_int_equal(dtrain_reader_next(reader, &data, &length), DTRAIN_OK);
            assert_int_equal(length, sizeof i);
            assert_memory_equal(data, &i, sizeof i);
        }
        assert_int_equal(dtrain_reader_next(reader, &data, &length), DTRAIN_ERR_NOT_FOUND);
        assert_int_equal(dtrain_reader_next(reader, &data, &length), DTRAIN_ERR_NOT_FOUND);
        assert_int_equal(dtrain_reader_rewind(reader), DTRAIN_OK);
    }
    dtrain_reader_close(reader);
}

static void arguments_are_checked(void **state) {
    (void)state;
    const char *paths[] = {path};
    const void *data = NULL;
    uint64_t length = 0;
    dtrain_reader_t *reader = NULL;
    dtrain_writer_t *writer = NULL;
    struct {
        dtrain_reader_params_t known;
        uint64_t unknown;
    } longer = {{0}, 0};
    assert_int_equal(dtrain_reader_open(NULL, 1, NULL, &reader), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_open(paths, 0, NULL, &reader), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_open(paths, 1, NULL, NULL), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_open(paths, 1, &longer.known, &reader), DTRAIN_ERR_INVALID);
    longer.known.struct_size = sizeof longer;
    longer.unknown = 1;
    assert_int_equal(dtrain_reader_open(paths, 1, &longer.known, &reader), DTRAIN_ERR_UNSUPPORTED);
    assert_null(reader); /* written only on success */
    longer.unknown = 0;
    write_numbers(1);
    assert_int_equal(dtrain_reader_open(paths, 1, &longer.known, &reader), DTRAIN_OK);
    assert_int_equal(dtrain_reader_next(NULL, &data, &length), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_next(reader, NULL, &length), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_next(reader, &data, NULL), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_reader_rewind(NULL), DTRAIN_ERR_INVALID);
    dtrain_reader_close(reader);
    dtrain_reader_close(NULL);

    assert_int_equal(dtrain_writer_open(NULL, &writer), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_open("", &writer), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_open(path, NULL), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_append(NULL, "a", 1), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_close(NULL), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_open(path, &writer), DTRAIN_OK);
    assert_int_equal(dtrain_writer_append(writer, NULL, 1), DTRAIN_ERR_INVALID);
    assert_int_equal(dtrain_writer_append(writer, NULL, 0), DTRAIN_OK);
    assert_int_equal(dtrain_writer_close(writer), DTRAIN_OK);
}

/* The child may only destroy: the parent's file is written all the same. */
static void forked_child(void **state) {
    (void)state;
    const char *paths[] = {path};
    const void *data = NULL;
    uint64_t length = 0;
    int status = -1;
    dtrain_reader_t *reader = NULL;
    dtrain_writer_t *writer = NULL;
    write_numbers(2);
    assert_int_equal(dtrain_reader_open(paths, 1, NULL, &reader), DTRAIN_OK);
    assert_int_equal(dtrain_writer_open(path, &writer), DTRAIN_OK);
    assert_int_equal(dtrain_writer_append(writer, "parent", 6), DTRAIN_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int good = dtrain_reader_next(reader, &data, &length) == DTRAIN_ERR_STATE &&
                   dtrain_writer_append(writer, "child", 5) == DTRAIN_ERR_STATE &&
                   dtrain_writer_close(writer) == DTRAIN_ERR_STATE;
        dtrain_reader_close(reader);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(dtrain_reader_next(reader, &data, &length), DTRAIN_OK);
    assert_int_equal(dtrain_writer_close(writer), DTRAIN_OK);
    assert_int_equal(dtrain_reader_rewind(reader), DTRAIN_OK);
    assert_int_equal(dtrain_reader_next(reader, &data, &length), DTRAIN_OK);
    assert_int_equal(length, 6);
    assert_memory_equal(data, "parent", 6);
    dtrain_reader_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back_twice),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(forked_child),
    };
    return cmocka_run_group_tests_name("data", tests, make_folder, remove_folder);
}
