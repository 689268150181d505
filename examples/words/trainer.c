/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer.h"

#include "progress.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

static int open_tables(trainer_t *t) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F64;
    params.length = sizeof(totals_t) / sizeof(double);
    TRY(dtrain_table_create(t->comm, "totals", &params, &t->totals));
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = DIM;
    params.rule = DTRAIN_RULE_ADAGRAD;
    params.learning_rate = 0.3;
    TRY(dtrain_table_create(t->comm, "out", &params, &t->out)); /* begins with zeros */
    params.distribution = DTRAIN_INITIAL_UNIFORM;
    params.spread = 0.5 / DIM;
    params.seed = 1;
    TRY(dtrain_table_create(t->comm, "in", &params, &t->in));
    return 0;
}

int trainer_create(trainer_t *t, const text_t *text, dtrain_comm_t *comm, int epochs) {
    const int rank = dtrain_comm_rank(comm), size = dtrain_comm_size(comm);
    *t = (trainer_t){.text = text, .comm = comm, .rank = rank, .size = size, .epochs = epochs};
    t->count = text->token_count / (size_t)size;
    t->first = t->count * (size_t)rank;
    t->all = t->count * (size_t)epochs;
    t->slots = calloc(IN_FLIGHT, sizeof *t->slots);
    if (sampler_create(&t->sampler, text, (uint64_t)rank + 1) != 0 || t->slots == NULL) {
        fprintf(stderr, "out of memory\n");
        return -1;
    }
    return open_tables(t);
}

static void add_neighbors(trainer_t *t, batch_t *batch, size_t at) {
    const text_t *text = t->text;
    const size_t reach = 1 + sampler_next(&t->sampler) % WINDOW;
    int *end = &batch->out_end[batch->words - 1];
    for (size_t n = at < reach ? 0 : at - reach; n <= at + reach && n < text->token_count; n++) {
        if (n == at || sampler_passes(&t->sampler, text->tokens[n])) continue;
        batch->out[(*end)++] = text->words[text->tokens[n]].key;
        for (int k = 0; k < NEGATIVES; k++)
            batch->out[(*end)++] = text->words[sampler_noise(&t->sampler)].key;
    }
}

/* The next batch of this worker's part, which begins again after its end. */
static void fill(trainer_t *t, slot_t *slot) {
    batch_t *batch = &slot->batch;
    const size_t begin = t->done;
    batch->words = 0;
    for (; t->done < t->all; t->done++) {
        const size_t at = t->first + t->done % t->count;
        const uint32_t word = t->text->tokens[at];
        if (sampler_passes(&t->sampler, word)) continue;
        if (!batch_add(batch, t->text->words[word].name)) break;
        add_neighbors(t, batch, at);
    }
    slot->done.words = (double)(t->done - begin);
    slot->done.neighbors = (double)batch_out(batch, batch->words) / (1 + NEGATIVES);
}

static int pull(trainer_t *t, slot_t *slot) {
    batch_t *b = &slot->batch;
    const uint64_t in = (uint64_t)batch_in(b, b->words), out = (uint64_t)batch_out(b, b->words);
    TRY(dtrain_table_pull_rows(t->in, b->in, in, b->in_rows, NULL, &slot->requests[0]));
    TRY(dtrain_table_pull_rows(t->out, b->out, out, b->out_rows, NULL, &slot->requests[1]));
    return 0;
}

/* A row that is in a batch several times travels once: the library adds up what is pushed. */
static int push(trainer_t *t, slot_t *slot) {
    batch_t *b = &slot->batch;
    const uint64_t in = (uint64_t)batch_in(b, b->words), out = (uint64_t)batch_out(b, b->words);
    const uint64_t totals = sizeof slot->done / sizeof(double);
    TRY(dtrain_table_push_rows(t->in, b->in, in, b->in_rows, NULL, &slot->requests[0]));
    TRY(dtrain_table_push_rows(t->out, b->out, out, b->out_rows, NULL, &slot->requests[1]));
    TRY(dtrain_table_push(t->totals, 0, totals, &slot->done, NULL, &slot->requests[2]));
    return 0;
}

static int wait_for(slot_t *slot) {
    for (int i = 0; i < 3; i++) {
        if (slot->requests[i] == NULL) continue;
        TRY(dtrain_request_wait(slot->requests[i], -1));
        dtrain_request_free(slot->requests[i]);
        slot->requests[i] = NULL;
    }
    return 0;
}

/* The rows of the next batch are on their way while this one is computed, and the changes of those
 * before, too. */
int trainer_run(trainer_t *t) {
    slot_t *now = &t->slots[0], *next;
    progress_begin(t);
    fill(t, now);
    if (pull(t, now) != 0) return -1;
    for (int turn = 1; now->batch.words > 0; turn++, now = next) {
        next = &t->slots[turn % IN_FLIGHT];
        if (wait_for(next) != 0) return -1;
        fill(t, next);
        if (pull(t, next) != 0 || wait_for(now) != 0) return -1;
        now->done.loss = batch_learn(&now->batch);
        if (push(t, now) != 0 || progress_tell(t) != 0) return -1;
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        if (wait_for(&t->slots[i]) != 0) return -1;
    TRY(dtrain_barrier(t->comm, NULL, NULL));
    return progress_end(t);
}

int trainer_destroy(trainer_t *t) {
    free(t->slots);
    sampler_free(&t->sampler);
    TRY(dtrain_table_destroy(t->in));
    TRY(dtrain_table_destroy(t->out));
    TRY(dtrain_table_destroy(t->totals));
    return 0;
}
