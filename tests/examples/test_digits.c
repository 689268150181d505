/* The digits' parts: the data, their decoding, and the gradient. usage: test FOLDER
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "dataset.h"
#include "mlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static void the_data_are_all_there(void **state) {
    (void)state;
    dataset_t whole, shard, test;
    size_t sum = 0, labels[CLASSES] = {0};
    assert_int_equal(dataset_load(&whole, folder, "train-*.tfrecord", 0, 1), 0);
    assert_int_equal(dataset_load(&test, folder, "test.tfrecord", 0, 1), 0);
    assert_int_equal(whole.count, 1437);
    assert_int_equal(test.count, 360);
    for (size_t i = 0; i < whole.count; i++) labels[whole.samples[i].label]++;
    for (int c = 0; c < CLASSES; c++) assert_in_range(labels[c], 120, 160);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dataset_load(&shard, folder, "train-*.tfrecord", i, 3), 0);
        sum += shard.count;
        dataset_free(&shard);
    }
    assert_int_equal(sum, whole.count);
    dataset_free(&whole);
    dataset_free(&test);
}

/* Example { features { feature { "image": 64 bytes, "label": label } } }; the two features are 79
 * and 17 bytes long. */
static size_t encode(uint8_t *out, uint8_t label) {
    uint8_t *at = out;
    const uint8_t head[] = {10, 96, 10, 77, 10, 5, 'i', 'm', 'a', 'g', 'e', 18, 68, 10, 66, 10, 64};
    const uint8_t tail[] = {10, 15, 10, 5, 'l', 'a', 'b', 'e', 'l', 18, 6, 26, 4, 10, 2, 0x80, 0};
    memcpy(at, head, sizeof head);
    at += sizeof head;
    for (int i = 0; i < PIXELS; i++) *at++ = (uint8_t)(i % (PIXEL_MAX + 1));
    memcpy(at, tail, sizeof tail);
    at += sizeof tail;
    at[-2] = (uint8_t)(0x80 | label); /* a varint of two bytes */
    return (size_t)(at - out);
}

static void examples_are_decoded(void **state) {
    (void)state;
    uint8_t data[128];
    sample_t sample;
    const size_t length = encode(data, 7);
    assert_int_equal(data[1] + 2, length);
    assert_null(example_decode(data, length, &sample));
    assert_int_equal(sample.label, 7);
    for (int i = 0; i < PIXELS; i++)
        assert_true(sample.image[i] == (float)(i % (PIXEL_MAX + 1)) / PIXEL_MAX);
    encode(data, 10);
    assert_string_equal(example_decode(data, length, &sample), "\"label\" is not 0..9");
    assert_non_null(example_decode(data, 0, &sample));
}

/* Whatever the bytes are, nothing beyond them is read (the copies end where the heap's do). */
static void damage_is_survived(void **state) {
    (void)state;
    uint8_t data[128];
    sample_t sample;
    const size_t length = encode(data, 7);
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy + 1, data, cut);
        assert_non_null(example_decode(copy + 1, cut, &sample));
        free(copy);
    }
    uint64_t random = 5;
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(length);
        memcpy(copy, data, length);
        for (int i = 0; i < 3; i++) {
            const uint64_t r = random_next(&random);
            copy[r % length] = (uint8_t)(r >> 32);
        }
        if (example_decode(copy, length, &sample) == NULL) assert_in_range(sample.label, 0, 9);
        free(copy);
    }
}

static double loss_at(const mlp_t *mlp, const float *parameters, const sample_t *sample) {
    score_t score = {0};
    mlp_add(mlp, parameters, sample, NULL, &score);
    return score.loss;
}

/* Against central differences. */
static void gradient_is_the_derivative(void **state) {
    (void)state;
    mlp_t mlp;
    score_t score = {0};
    sample_t sample = {.label = 3};
    for (int i = 0; i < PIXELS; i++) sample.image[i] = (float)(i % 5) / 4;
    assert_int_equal(mlp_create(&mlp, 7), 0);
    const size_t count = mlp_parameters(&mlp);
    float *parameters = malloc(count * sizeof *parameters);
    float *gradient = calloc(count, sizeof *gradient);
    mlp_initialize(&mlp, parameters, 1);
    mlp_add(&mlp, parameters, &sample, gradient, &score);
    for (size_t i = 0; i < count; i++) {
        const float kept = parameters[i], step = 1e-2f;
        parameters[i] = kept + step;
        const double above = loss_at(&mlp, parameters, &sample);
        parameters[i] = kept - step;
        const double below = loss_at(&mlp, parameters, &sample);
        parameters[i] = kept;
        assert_true(fabs((above - below) / (2 * step) - gradient[i]) < 2e-3);
    }
    free(parameters);
    free(gradient);
    mlp_free(&mlp);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_are_all_there),
        cmocka_unit_test(examples_are_decoded),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(gradient_is_the_derivative),
    };
    if (argc != 2) return 2;
    folder = argv[1];
    return cmocka_run_group_tests_name("digits", tests, NULL, NULL);
}
