/* The word vectors' parts: the text, the parts of words, what is sampled, and the derivatives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "sampler.h"
#include "skip_gram.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_text(text_t *text, const char *content) {
    char path[] = "/tmp/dtrain-words-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(close(fd), 0);
    assert_int_equal(text_read(text, path), 0);
    assert_int_equal(unlink(path), 0);
}

static void words_are_numbered_and_found(void **state) {
    (void)state;
    text_t text;
    read_text(&text, "The cat, the CAT; and\nanantidisestablishmentarianismofallkinds 17 cats");
    assert_int_equal(text.token_count, 7);
    assert_int_equal(text.word_count, 5);
    assert_int_equal(text_find(&text, "cat")->count, 2);
    assert_int_equal(text_find(&text, "the")->count, 2);
    assert_null(text_find(&text, "dog"));
    assert_int_equal(strlen(text.words[3].name), LONGEST_WORD);
    text_free(&text);
    assert_int_equal(text_read(&text, "/nonexistent"), -1);
    assert_null(text_find(&text, "cat"));
    text_free(&text);
}

static int has(const uint64_t *keys, int count, uint64_t key) {
    int found = 0;
    for (int i = 0; i < count; i++) found += keys[i] == key;
    return found;
}

static void words_share_their_parts(void **state) {
    (void)state;
    uint64_t cats[MOST_SUBWORDS], cat[MOST_SUBWORDS], longest[MOST_SUBWORDS];
    /* <ca cat at> <cat cat> and <cat>; then <ca cat ats ts> <cat cats ats> <cats cats>, <cats> */
    assert_int_equal(subwords_of("cat", cat), 6);
    assert_int_equal(subwords_of("cats", cats), 10);
    int shared = 0;
    for (int i = 0; i < 6; i++) {
        shared += has(cats, 10, cat[i]);
        assert_int_equal(has(cat, 6, cat[i]), 1);
    }
    assert_int_equal(shared, 3); /* <ca cat <cat */
    char name[LONGEST_WORD + 1] = "";
    memset(name, 'x', LONGEST_WORD);
    assert_in_range(subwords_of(name, longest), 1, MOST_SUBWORDS);
    assert_int_equal(subwords_of("a", cat), 1); /* <a> is the word and its only part */
}

static void common_words_are_passed_over(void **state) {
    (void)state;
    char content[4096] = "";
    for (int i = 0; i < 1000; i++) strcat(content, "a ");
    text_t text;
    sampler_t sampler;
    int passed = 0, rare = 0;
    read_text(&text, strcat(content, "b"));
    assert_int_equal(sampler_create(&sampler, &text, 1), 0);
    for (int i = 0; i < 100000; i++) passed += sampler_passes(&sampler, 0);
    for (int i = 0; i < 100000; i++) rare += sampler_noise(&sampler) == 1;
    assert_in_range(passed, 98500, 99500); /* 1 - sqrt(1e-4) */
    assert_in_range(rare, 400, 700);       /* 1 / (1000^(3/4) + 1) = 0.56 % */
    sampler_free(&sampler);
    text_free(&text);
}

/* Against central differences. */
static void derivatives_are_those_of_the_loss(void **state) {
    (void)state;
    batch_t *batch = calloc(1, sizeof *batch), *copy = malloc(sizeof *copy);
    sampler_t random = {.state = 7};
    assert_int_equal(batch_add(batch, "word"), 1);
    batch->out_end[0] = 2 * (1 + NEGATIVES);
    const int in = batch_in(batch, 1), out = batch_out(batch, 1);
    for (int i = 0; i < in; i++)
        for (int d = 0; d < DIM; d++)
            batch->in_rows[i][d] = (float)(sampler_next(&random) % 100) / 50 - 1;
    for (int i = 0; i < out; i++)
        for (int d = 0; d < DIM; d++)
            batch->out_rows[i][d] = (float)(sampler_next(&random) % 100) / 50 - 1;
    memcpy(copy, batch, sizeof *copy);
    batch_learn(copy); /* now the derivatives */
    for (int i = 0; i < in + out; i++) {
        float *value = i < in ? &batch->in_rows[i][i] : &batch->out_rows[i - in][i - in];
        const float derivative = i < in ? copy->in_rows[i][i] : copy->out_rows[i - in][i - in];
        const float kept = *value, step = 1e-2f;
        batch_t *moved = malloc(sizeof *moved);
        double loss[2];
        for (int side = 0; side < 2; side++) {
            *value = kept + (side == 0 ? -step : step);
            memcpy(moved, batch, sizeof *moved);
            loss[side] = batch_learn(moved);
        }
        *value = kept;
        free(moved);
        assert_true(fabs((loss[1] - loss[0]) / (2 * (double)step) - derivative) < 5e-3);
    }
    free(batch);
    free(copy);
}

static void batches_are_bounded(void **state) {
    (void)state;
    batch_t *batch = calloc(1, sizeof *batch);
    char name[LONGEST_WORD + 1] = "";
    memset(name, 'x', LONGEST_WORD);
    while (batch_add(batch, name)) batch->out_end[batch->words - 1] += MOST_OUT;
    assert_in_range(batch->words, 1, BATCH_WORDS);
    assert_in_range(batch_in(batch, batch->words), 1, BATCH_ROWS);
    assert_in_range(batch_out(batch, batch->words), 1, BATCH_ROWS);
    free(batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_numbered_and_found),
        cmocka_unit_test(words_share_their_parts),
        cmocka_unit_test(common_words_are_passed_over),
        cmocka_unit_test(derivatives_are_those_of_the_loss),
        cmocka_unit_test(batches_are_bounded),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
