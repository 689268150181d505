/* Trains a classifier of handwritten digits on GPUs: dtrain-run -n 4 -- gpu_digits KERNELS DATA
 * Each rank computes the gradients of its slice of each batch. They are summed over the ranks from
 * GPU memory to GPU memory, in the order of the stream: the host submits a whole epoch, and waits
 * for nothing before its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset.h"
#include "driver.h"
#include "mlp.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>

enum { HIDDEN = 256, BATCH = 64, SEED = 1 };
static const float rate = 0.1f, momentum = 0.9f;

typedef struct trainer {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    int device;
    size_t rank, size;
    size_t samples, tests, most; /* most: samples of a kernel */
    unsigned count;              /* of parameters */
    stream_t stream;
    module_t module;
    kernel_t hidden, output, gradient, step;
    /* On the GPU. Images and labels: the test's behind those for training. */
    void *images, *labels, *order, *parameters, *velocity, *activation, *error, *delta, *score;
    dtrain_mem_t *summed; /* by the ranks: the gradient */
    void *slope;          /* its address */
    dtrain_request_t **requests;
} trainer_t;

static int join(trainer_t *t) {
    const char *local = getenv("DTRAIN_LOCAL_RANK"); /* several ranks may share a GPU */
    int devices;
    if (driver_devices(&devices) != 0) return -1;
    t->device = (local != NULL ? atoi(local) : 0) % devices;
    if (driver_open(t->device) != 0 ||
        report(dtrain_context_create(DTRAIN_API_VERSION, NULL, &t->context), "starting") != 0 ||
        report(dtrain_comm_create(t->context, NULL, NULL, &t->comm), "joining the job") != 0)
        return -1;
    t->rank = (size_t)dtrain_comm_rank(t->comm);
    t->size = (size_t)dtrain_comm_size(t->comm);
    return stream_create(&t->stream);
}

static int find_kernels(trainer_t *t, const char *file) {
    return module_load(&t->module, file) != 0 ||
                   kernel_find(&t->hidden, t->module, "digits_hidden") != 0 ||
                   kernel_find(&t->output, t->module, "digits_output") != 0 ||
                   kernel_find(&t->gradient, t->module, "digits_gradient") != 0 ||
                   kernel_find(&t->step, t->module, "digits_step") != 0
               ? -1
               : 0;
}

static int copy_samples(trainer_t *t, const dataset_t *train, const dataset_t *test) {
    const size_t all = train->count + test->count;
    float(*images)[PIXELS] = calloc(all, sizeof *images);
    int32_t *labels = calloc(all, sizeof *labels);
    int result = images != NULL && labels != NULL ? 0 : report_text("out of memory");
    for (size_t i = 0; result == 0 && i < all; i++) {
        const sample_t *sample =
            i < train->count ? &train->samples[i] : &test->samples[i - train->count];
        for (int p = 0; p < PIXELS; p++) images[i][p] = sample->image[p];
        labels[i] = sample->label;
    }
    if (result == 0) result = device_array(&t->images, images, all * sizeof *images);
    if (result == 0) result = device_array(&t->labels, labels, all * sizeof *labels);
    free(images);
    free(labels);
    t->samples = train->count;
    t->tests = test->count;
    t->most = test->count > BATCH ? test->count : BATCH;
    return result;
}

static int load(trainer_t *t, const char *folder) {
    dataset_t train = {0}, test = {0};
    int result = dataset_load(&train, folder, "train-*.tfrecord", 0, 1);
    if (result == 0) result = dataset_load(&test, folder, "test.tfrecord", 0, 1);
    if (result == 0) result = copy_samples(t, &train, &test);
    dataset_free(&train);
    dataset_free(&test);
    return result;
}

/* Ranks on the same GPU sum memory that is shared without copying it. */
static int share_gradient(trainer_t *t) {
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.mem_type = DTRAIN_MEM_CUDA;
    params.device = t->device;
    params.length = t->count * sizeof(float);
    params.flags = DTRAIN_MEM_SHARED;
    if (report(dtrain_mem_create(t->context, &params, &t->summed), "memory for gradients") != 0)
        return -1;
    t->slope = dtrain_mem_address(t->summed);
    return 0;
}

static int prepare(trainer_t *t) {
    const mlp_t mlp = {.hidden = HIDDEN};
    const size_t units = t->most * HIDDEN * sizeof(float);
    t->count = (unsigned)mlp_parameters(&mlp);
    const size_t bytes = t->count * sizeof(float);
    float *parameters = malloc(bytes);
    t->requests = calloc(t->samples / BATCH + 1, sizeof(dtrain_request_t *));
    if (parameters == NULL || t->requests == NULL) {
        free(parameters);
        return report_text("out of memory");
    }
    mlp_initialize(&mlp, parameters, SEED); /* the same on all ranks */
    int result = device_array(&t->parameters, parameters, bytes) != 0 ||
                 device_array(&t->velocity, NULL, bytes) != 0 ||
                 device_array(&t->order, NULL, (t->samples + t->tests) * sizeof(uint32_t)) != 0 ||
                 device_array(&t->activation, NULL, units) != 0 ||
                 device_array(&t->delta, NULL, units) != 0 ||
                 device_array(&t->error, NULL, t->most * CLASSES * sizeof(float)) != 0 ||
                 device_array(&t->score, NULL, t->most * 2 * sizeof(float)) != 0 ||
                 share_gradient(t) != 0;
    free(parameters);
    return result == 0 ? 0 : -1;
}

/* The samples of an epoch in a random order, the same on all ranks; then those of the test. */
static int write_order(trainer_t *t, int epoch) {
    size_t *order = malloc(t->samples * sizeof *order);
    uint32_t *numbers = malloc((t->samples + t->tests) * sizeof *numbers);
    int result = order != NULL && numbers != NULL ? 0 : report_text("out of memory");
    if (result == 0) shuffle(order, t->samples, SEED + (uint64_t)epoch);
    for (size_t i = 0; result == 0 && i < t->samples + t->tests; i++)
        numbers[i] = (uint32_t)(i < t->samples ? order[i] : i);
    if (result == 0)
        result = device_write(t->order, numbers, (t->samples + t->tests) * sizeof *numbers);
    free(order);
    free(numbers);
    return result;
}

/* Puts the forward pass of the samples order[first], ... into the stream, with the errors. */
static int forward(trainer_t *t, size_t first, size_t count) {
    void *const order = (uint32_t *)t->order + first;
    struct {
        void *parameters, *images, *order, *activation;
        unsigned count, hidden;
    } hidden = {t->parameters, t->images, order, t->activation, (unsigned)count, HIDDEN};
    struct {
        void *parameters, *labels, *order, *activation, *error, *delta, *score;
        unsigned count, hidden;
    } output = {t->parameters, t->labels, order,           t->activation, t->error,
                t->delta,      t->score,  (unsigned)count, HIDDEN};
    if (kernel_launch(t->hidden, count * HIDDEN, &hidden, sizeof hidden, t->stream) != 0) return -1;
    return kernel_launch(t->output, count, &output, sizeof output, t->stream);
}

/* Puts a step into the stream: the gradient of this rank's samples, the sum over all ranks, and the
 * descent, which begins when the sum is there. */
static int step(trainer_t *t, size_t first, size_t count, size_t batch,
                dtrain_request_t **request) {
    struct {
        void *images, *order, *activation, *error, *delta, *gradient;
        unsigned count, hidden;
    } gradient = {t->images,       (uint32_t *)t->order + first,
                  t->activation,   t->error,
                  t->delta,        t->slope,
                  (unsigned)count, HIDDEN};
    struct {
        void *parameters, *velocity, *gradient;
        float scale, rate, momentum;
        unsigned count;
    } descent = {t->parameters, t->velocity, t->slope, 1.0f / (float)batch,
                 rate,          momentum,    t->count};
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.stream_type = DTRAIN_STREAM_CUDA;
    params.stream = t->stream;
    if (count > 0 && forward(t, first, count) != 0) return -1;
    if (kernel_launch(t->gradient, t->count, &gradient, sizeof gradient, t->stream) != 0 ||
        report(dtrain_allreduce(t->comm, t->slope, t->slope, t->count, DTRAIN_F32, DTRAIN_SUM,
                                &params, request),
               "summing gradients") != 0)
        return -1;
    return kernel_launch(t->step, t->count, &descent, sizeof descent, t->stream);
}

/* After a sum has failed, the stream has gone on with undefined gradients: the request tells. */
static int check_sums(trainer_t *t, size_t count) {
    int result = 0;
    for (size_t i = 0; i < count; i++) {
        char text[512];
        if (dtrain_request_wait(t->requests[i], -1) != DTRAIN_OK && result == 0) {
            dtrain_request_error(t->requests[i], text, sizeof text);
            fprintf(stderr, "summing gradients: %s\n", text);
            result = -1;
        }
        dtrain_request_free(t->requests[i]);
    }
    return result;
}

static int run_epoch(trainer_t *t, int epoch) {
    size_t steps = 0;
    int result = write_order(t, epoch);
    for (size_t first = 0; result == 0 && first < t->samples; first += BATCH) {
        const size_t left = t->samples - first, now = left < BATCH ? left : BATCH;
        const size_t begin = now * t->rank / t->size, end = now * (t->rank + 1) / t->size;
        result = step(t, first + begin, end - begin, now, &t->requests[steps]);
        steps += t->requests[steps] != NULL;
    }
    if (check_sums(t, steps) != 0) result = -1;
    for (size_t i = 0; i < steps; i++) t->requests[i] = NULL;
    return result;
}

/* The share of right answers on the test's samples. */
static int test(trainer_t *t, int epoch, double *accuracy) {
    float *scores = malloc(t->tests * 2 * sizeof *scores);
    int result = scores != NULL ? 0 : report_text("out of memory");
    if (result == 0) result = forward(t, t->samples, t->tests);
    if (result == 0) result = stream_wait(t->stream);
    if (result == 0) result = device_read(scores, t->score, t->tests * 2 * sizeof *scores);
    score_t sum = {0, 0};
    for (size_t i = 0; result == 0 && i < t->tests; i++) {
        sum.loss += scores[2 * i];
        sum.correct += scores[2 * i + 1];
    }
    *accuracy = sum.correct / (double)t->tests;
    if (result == 0 && t->rank == 0)
        printf("epoch %d  loss %.4f  accuracy %.1f %%\n", epoch, sum.loss / (double)t->tests,
               100 * *accuracy);
    free(scores);
    return result;
}

static int clean_up(trainer_t *t) {
    void *const arrays[] = {t->images,     t->labels, t->order, t->parameters, t->velocity,
                            t->activation, t->error,  t->delta, t->score};
    int result = t->stream != NULL ? stream_wait(t->stream) : 0; /* it may still use the arrays */
    if (t->summed != NULL) result |= report(dtrain_mem_deregister(t->summed), "freeing gradients");
    if (t->comm != NULL) result |= report(dtrain_comm_destroy(t->comm), "leaving the job");
    if (t->context != NULL) result |= report(dtrain_context_destroy(t->context), "stopping");
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) device_free(arrays[i]);
    free(t->requests);
    module_free(t->module);
    stream_free(t->stream);
    driver_close();
    return result;
}

int main(int argc, char **argv) {
    trainer_t t = {0};
    double accuracy = 0;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: gpu_digits KERNELS.ptx FOLDER [EPOCHS]\n");
        return EXIT_FAILURE;
    }
    const int epochs = argc > 3 ? atoi(argv[3]) : 20;
    int result = join(&t);
    if (result == 0) result = find_kernels(&t, argv[1]);
    if (result == 0) result = load(&t, argv[2]);
    if (result == 0) result = prepare(&t);
    for (int epoch = 0; result == 0 && epoch < epochs; epoch++) {
        result = run_epoch(&t, epoch);
        if (result == 0) result = test(&t, epoch + 1, &accuracy);
    }
    if (result == 0 && accuracy < 0.95) {
        fprintf(stderr, "it has not learned: %.1f %% of the answers are right\n", 100 * accuracy);
        result = -1;
    }
    result |= clean_up(&t);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
