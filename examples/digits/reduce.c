/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce.h"

#include "status.h"

#include <string.h>

static const struct way {
    const char *name;
    uint32_t kind; /* of compression; 0: none */
    uint32_t op;
    double ratio; /* topk: small models lose more */
} ways[] = {
    {"none", 0, DTRAIN_SUM, 0},
    {"f16", DTRAIN_COMPRESS_F16, DTRAIN_SUM, 0},
    {"bf16", DTRAIN_COMPRESS_BF16, DTRAIN_SUM, 0},
    {"int8", DTRAIN_COMPRESS_INT8, DTRAIN_SUM, 0},
    {"topk", DTRAIN_COMPRESS_TOPK, DTRAIN_SUM, 0.05},
    {"onebit", DTRAIN_COMPRESS_ONEBIT, DTRAIN_SUM, 0},
    {"powersgd", DTRAIN_COMPRESS_POWERSGD, DTRAIN_SUM, 0},
    {"scaled", 0, DTRAIN_SUM, 0},
    {"adasum", 0, DTRAIN_ADASUM, 0},
};

static const struct way *find(const char *name) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0) return &ways[i];
    return NULL;
}

static int is_way(const trainer_t *t, const char *name) {
    return t->comm != NULL && strcmp(t->settings.compression, name) == 0;
}

const char *reduce_find(const char *name) {
    const struct way *way = find(name);
    return way != NULL ? way->name : NULL;
}

/* Matrices of low rank want the layers' own shapes; the others take the gradient as a whole. */
static tensor_t part(const trainer_t *t, uint32_t kind, int index) {
    const tensor_t whole = {0, index == 0 ? t->count : 0, 0};
    return kind == DTRAIN_COMPRESS_POWERSGD ? mlp_tensor(&t->mlp, index) : whole;
}

int reduce_open(trainer_t *t) {
    const struct way *way = find(t->settings.compression);
    dtrain_compressor_params_t params;
    for (int i = 0; i < TENSORS && t->comm != NULL && way->kind != 0; i++) {
        const tensor_t tensor = part(t, way->kind, i);
        if (tensor.count == 0) continue;
        DTRAIN_INIT(&params);
        params.kind = way->kind;
        params.count = tensor.count;
        params.rows = tensor.rows;
        params.ratio = way->ratio;
        params.seed = t->settings.seed;
        if (report(dtrain_compressor_create(t->comm, &params, &t->compressors[i]),
                   "making a compressor") != 0)
            return -1;
    }
    return 0;
}

int reduce_close(trainer_t *t) {
    int result = 0;
    for (int i = 0; i < TENSORS; i++)
        if (report(dtrain_compressor_destroy(t->compressors[i]), "destroying a compressor") != 0)
            result = -1;
    return result;
}

static int reduce_compressed(trainer_t *t) {
    const uint32_t kind = find(t->settings.compression)->kind;
    dtrain_compression_stats_t stats;
    t->sent = 0;
    for (int i = 0; i < TENSORS; i++) {
        if (t->compressors[i] == NULL) continue;
        float *at = t->gradient + part(t, kind, i).first;
        if (report(dtrain_compressor_allreduce(t->compressors[i], at, at, DTRAIN_SUM, NULL, NULL),
                   "compressed all-reduce") != 0 ||
            report(dtrain_compressor_stats(t->compressors[i], &stats), "statistics") != 0)
            return -1;
        t->sent += (double)stats.sent_bytes;
    }
    return 0;
}

/* The mean over the batch at once. For Adasum the mean over this worker's samples: it decides
 * between the workers' mean and sum. */
static int reduce_scaled(trainer_t *t, uint32_t op, size_t batch) {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.prescale = (op == DTRAIN_ADASUM ? (double)t->size : 1.0) / (double)batch;
    return report(dtrain_allreduce(t->comm, t->gradient, t->gradient, t->count, DTRAIN_F32, op,
                                   &params, NULL),
                  "all-reduce of the gradient");
}

static int reduce_plainly(trainer_t *t, float *from, size_t count) {
    return report(dtrain_allreduce(t->comm, from, from, count, DTRAIN_F32, DTRAIN_SUM, NULL, NULL),
                  "all-reduce");
}

int reduce_gradient(trainer_t *t, score_t *score, size_t batch) {
    const struct way *way = find(t->settings.compression);
    float *two = t->gradient + t->count; /* go with a plain sum, else alone */
    int result;
    if (t->comm == NULL) return 0;
    two[0] = (float)score->loss;
    two[1] = (float)score->correct;
    t->bytes += 2.0 * sizeof(float) * (double)(t->count + 2);
    t->sent += 2.0 * (t->size - 1) / t->size * (double)(t->count + 2) * sizeof(float);
    if (is_way(t, "none")) {
        result = reduce_plainly(t, t->gradient, t->count + 2);
    } else {
        result = reduce_plainly(t, two, 2);
        if (result == 0)
            result = way->kind != 0 ? reduce_compressed(t) : reduce_scaled(t, way->op, batch);
    }
    *score = (score_t){two[0], two[1]};
    return result;
}

float reduce_scale(const trainer_t *t, size_t batch) {
    return is_way(t, "scaled") || is_way(t, "adasum") ? 1.0f : 1.0f / (float)batch;
}
