/* Word vectors from text, in two sparse tables: skip-gram with negative sampling (Mikolov et al.,
 * Distributed representations of words and phrases and their compositionality, 2013).
 * usage: dtrain-run -n WORKERS -s SERVERS -- word_vectors EPOCHS LEAST FILE...
 * Each worker reads all of the text and trains on a part of it, when it likes. One word in 20 is
 * set aside: at the end rank 0 tells how often such a word fits its neighbours better than a random
 * one does, and fails if that is less often than LEAST, a number up to 1. SPDX-License-Identifier:
 * Apache-2.0 */
#include "text.h"

#include <dtrain.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DIM = 32,
    WINDOW = 4,
    NEGATIVES = 5,
    PAIRS = 512,
    OUT = PAIRS * (1 + NEGATIVES),
    ASIDE = 20
};
static const double rare_enough = 1e-3; /* share of the text from which on words are left out */

typedef float vector_t[DIM];

/* A pair: the key of a word, and those of a neighbour and of random words. */
typedef struct batch {
    int pairs;
    uint64_t in[PAIRS], out[OUT];
    vector_t in_rows[PAIRS], out_rows[OUT]; /* vectors, then their gradients */
    dtrain_request_t *requests[2];
} batch_t;

typedef struct job {
    text_t text;
    dtrain_comm_t *comm;
    dtrain_table_t *in, *out;
    uint64_t random;
    batch_t *batch;
    double loss;
    uint64_t pairs;
} job_t;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != DTRAIN_OK) return complain(#call);                                           \
    } while (0)

static int complain(const char *what) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    return -1;
}

static uint64_t next_random(job_t *job) { /* Steele et al. 2014: SplitMix */
    uint64_t x = job->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static float dot(const vector_t a, const vector_t b) {
    float sum = 0;
    for (int d = 0; d < DIM; d++) sum += a[d] * b[d];
    return sum;
}

static uint64_t random_key(job_t *job) { /* words as often as the text has them */
    return job->text.words[job->text.tokens[next_random(job) % job->text.token_count]].key;
}

/* Replaces the vectors by what the loss says against them. */
static void differentiate(job_t *job, batch_t *batch) {
    for (int p = 0; p < batch->pairs; p++) {
        vector_t sum = {0};
        for (int k = 0; k <= NEGATIVES; k++) {
            float *out = batch->out_rows[p * (1 + NEGATIVES) + k];
            const float score = dot(batch->in_rows[p], out), label = k == 0 ? 1 : 0;
            const float g = 1 / (1 + expf(-score)) - label;
            job->loss += log1p(exp(k == 0 ? -score : score));
            for (int d = 0; d < DIM; d++) {
                sum[d] += g * out[d];
                out[d] = g * batch->in_rows[p][d];
            }
        }
        memcpy(batch->in_rows[p], sum, sizeof sum);
    }
    job->pairs += (uint64_t)batch->pairs;
}

/* Words that repeat in a batch travel once: the library adds up what is pushed for them. */
static int train_on(job_t *job, batch_t *batch) {
    const uint64_t in = (uint64_t)batch->pairs, out = in * (1 + NEGATIVES);
    dtrain_request_t **requests = batch->requests;
    TRY(dtrain_table_pull_rows(job->in, batch->in, in, batch->in_rows, NULL, &requests[0]));
    TRY(dtrain_table_pull_rows(job->out, batch->out, out, batch->out_rows, NULL, &requests[1]));
    for (int i = 0; i < 2; i++) TRY(dtrain_request_wait(requests[i], -1));
    for (int i = 0; i < 2; i++) dtrain_request_free(requests[i]);
    differentiate(job, batch);
    TRY(dtrain_table_push_rows(job->in, batch->in, in, batch->in_rows, NULL, &requests[0]));
    TRY(dtrain_table_push_rows(job->out, batch->out, out, batch->out_rows, NULL, &requests[1]));
    for (int i = 0; i < 2; i++) TRY(dtrain_request_wait(requests[i], -1));
    for (int i = 0; i < 2; i++) dtrain_request_free(requests[i]);
    batch->pairs = 0;
    return 0;
}

static int add_pair(job_t *job, size_t word, size_t neighbour) {
    batch_t *batch = job->batch;
    uint64_t *out = &batch->out[batch->pairs * (1 + NEGATIVES)];
    batch->in[batch->pairs++] = job->text.words[job->text.tokens[word]].key;
    out[0] = job->text.words[job->text.tokens[neighbour]].key;
    for (int k = 1; k <= NEGATIVES; k++) out[k] = random_key(job);
    return batch->pairs == PAIRS ? train_on(job, batch) : 0;
}

static int left_out(job_t *job, size_t token) {
    const double share =
        (double)job->text.words[job->text.tokens[token]].count / (double)job->text.token_count;
    const double kept = sqrt(rare_enough / share);
    return (double)(next_random(job) >> 11) * 0x1p-53 >= kept;
}

static int train(job_t *job, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        if (i % ASIDE == 0 || left_out(job, i)) continue;
        const size_t reach = 1 + next_random(job) % WINDOW;
        const size_t from = i < reach ? 0 : i - reach;
        for (size_t j = from; j <= i + reach && j < job->text.token_count; j++)
            if (j != i && j % ASIDE != 0 && add_pair(job, i, j) != 0) return -1;
    }
    return job->batch->pairs > 0 ? train_on(job, job->batch) : 0;
}

/* How often the word next to one that was set aside fits better than a random one. */
static int fit(job_t *job, double *share_p) {
    batch_t *batch = job->batch;
    uint64_t better = 0, all = 0;
    for (size_t i = ASIDE; i + 1 < job->text.token_count; i += (size_t)ASIDE * PAIRS) {
        uint64_t n = 0;
        for (size_t at = i; n < PAIRS && at + 1 < job->text.token_count; at += ASIDE, n++) {
            batch->in[n] = job->text.words[job->text.tokens[at]].key;
            batch->out[2 * n] = job->text.words[job->text.tokens[at + 1]].key;
            batch->out[2 * n + 1] = random_key(job);
        }
        TRY(dtrain_table_pull_rows(job->in, batch->in, n, batch->in_rows, NULL, NULL));
        TRY(dtrain_table_pull_rows(job->out, batch->out, 2 * n, batch->out_rows, NULL, NULL));
        for (uint64_t k = 0; k < n; k++)
            better += dot(batch->in_rows[k], batch->out_rows[2 * k]) >
                      dot(batch->in_rows[k], batch->out_rows[2 * k + 1]);
        all += n;
    }
    *share_p = all > 0 ? (double)better / (double)all : 0;
    return 0;
}

/* The words whose vectors point most nearly the same way. */
static void print_neighbours(const text_t *text, vector_t *vectors, size_t word) {
    enum { SHOWN = 4 };
    size_t best[SHOWN] = {0};
    float scores[SHOWN] = {-2, -2, -2, -2};
    for (size_t w = 0; w < text->word_count; w++) {
        if (w == word || text->words[w].count < 10) continue;
        const float score =
            dot(vectors[w], vectors[word]) / sqrtf(dot(vectors[w], vectors[w]) + 1e-9f);
        int at = SHOWN;
        for (; at > 0 && score > scores[at - 1]; at--) {
            if (at == SHOWN) continue;
            scores[at] = scores[at - 1];
            best[at] = best[at - 1];
        }
        if (at == SHOWN) continue;
        scores[at] = score;
        best[at] = w;
    }
    printf("%-14s", text->words[word].name);
    for (int i = 0; i < SHOWN; i++) printf(" %s", text->words[best[i]].name);
    printf("\n");
}

static int show(job_t *job) {
    const text_t *text = &job->text;
    uint64_t *keys = malloc(text->word_count * sizeof *keys), rows[2];
    vector_t *vectors = malloc(text->word_count * sizeof *vectors);
    if (keys == NULL || vectors == NULL) return -1;
    for (size_t w = 0; w < text->word_count; w++) keys[w] = text->words[w].key;
    TRY(dtrain_table_pull_rows(job->in, keys, text->word_count, vectors, NULL, NULL));
    TRY(dtrain_table_count_rows(job->in, &rows[0], NULL, NULL));
    TRY(dtrain_table_count_rows(job->out, &rows[1], NULL, NULL));
    printf("%zu words, %llu and %llu rows; near to some of them:\n", text->word_count,
           (unsigned long long)rows[0], (unsigned long long)rows[1]);
    uint32_t most = UINT32_MAX;
    for (int shown = 0; shown < 8; shown++) { /* frequent ones that are not too short */
        size_t next = text->word_count;
        for (size_t w = 0; w < text->word_count; w++)
            if (strlen(text->words[w].name) > 5 && text->words[w].count < most &&
                (next == text->word_count || text->words[w].count > text->words[next].count))
                next = w;
        if (next == text->word_count) break;
        most = text->words[next].count;
        print_neighbours(text, vectors, next);
    }
    free(keys);
    free(vectors);
    return 0;
}

static int open_tables(job_t *job) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = DIM;
    params.rule = DTRAIN_RULE_ADAGRAD;
    params.learning_rate = 0.1;
    TRY(dtrain_table_create(job->comm, "out", &params, &job->out)); /* begins with zeros */
    params.distribution = DTRAIN_INITIAL_UNIFORM;
    params.spread = 0.5 / DIM;
    params.seed = 1;
    TRY(dtrain_table_create(job->comm, "in", &params, &job->in));
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run(job_t *job, int epochs, double least) {
    const int rank = dtrain_comm_rank(job->comm), size = dtrain_comm_size(job->comm);
    const size_t part = job->text.token_count / (size_t)size, first = (size_t)rank * part;
    job->random = (uint64_t)rank + 1;
    if (open_tables(job) != 0) return -1;
    for (int epoch = 0; epoch < epochs; epoch++) {
        const double begin = now();
        job->loss = 0;
        job->pairs = 0;
        if (train(job, first, first + part) != 0) return -1;
        if (rank == 0)
            printf("epoch %d: loss %.3f, %.0f words/s of this worker\n", epoch,
                   job->loss / (double)job->pairs, (double)part / (now() - begin));
    }
    TRY(dtrain_barrier(job->comm, NULL, NULL));
    double share = 1;
    if (rank == 0) {
        if (fit(job, &share) != 0 || show(job) != 0) return -1;
        printf("what was set aside fits better than a random word: %.1f %%\n", 100 * share);
    }
    TRY(dtrain_table_destroy(job->in));
    TRY(dtrain_table_destroy(job->out));
    return share >= least ? 0 : -1;
}

int main(int argc, char **argv) {
    job_t job = {.batch = calloc(1, sizeof *job.batch)};
    dtrain_context_t *context = NULL;
    int result = -1;
    if (argc < 4 || job.batch == NULL) {
        fprintf(stderr, "usage: word_vectors EPOCHS LEAST FILE...\n");
        return EXIT_FAILURE;
    }
    if (text_read(&job.text, argv + 3, argc - 3, 3) != 0) return EXIT_FAILURE;
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &job.comm) != DTRAIN_OK)
        complain("joining the job");
    else
        result = run(&job, atoi(argv[1]), atof(argv[2]));
    dtrain_comm_destroy(job.comm);
    dtrain_context_destroy(context);
    text_free(&job.text);
    free(job.batch);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
