/* Gradients that travel while the next layer's are computed: dtrain-run -n 4 bin/gradient_queue
 * Each worker fits a small linear model per "layer" to data of its own, has another number of
 * batches than the others, and joins when it has run out of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain.h>

#include <stdio.h>
#include <stdlib.h>

enum { layers = 12, width = 5000 };

typedef struct layer {
    char name[32];
    float weight[width], gradient[width];
    dtrain_request_t *request; /* of the gradient on its way */
} layer_t;

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

/* The gradient of (weight - target)^2 / 2; every worker has other targets. */
static void compute(layer_t *layer, int rank, int batch) {
    for (int i = 0; i < width; i++)
        layer->gradient[i] = layer->weight[i] - (float)((i + 3 * rank + batch) % 7);
}

/* From the last layer to the first, as a backward pass computes them. The first layer's weights are
 * needed first in the next step: its gradient overtakes what still waits. */
static int backward(dtrain_gradients_t *queue, layer_t *all, int rank, int batch) {
    for (int l = layers - 1; l >= 0; l--) {
        dtrain_op_params_t op;
        DTRAIN_INIT(&op);
        op.priority = layers - l;
        compute(&all[l], rank, batch);
        TRY(dtrain_gradients_submit(queue, all[l].name, all[l].gradient, all[l].gradient, width,
                                    DTRAIN_F32, DTRAIN_AVG, &op, &all[l].request));
    }
    return 0;
}

/* From the first layer to the last, as a forward pass needs them. */
static int update(layer_t *all) {
    for (int l = 0; l < layers; l++) {
        dtrain_status_t status = dtrain_request_wait(all[l].request, -1);
        dtrain_request_free(all[l].request);
        if (status != DTRAIN_OK) return complain(all[l].name);
        for (int i = 0; i < width; i++) all[l].weight[i] -= 0.5f * all[l].gradient[i];
    }
    return 0;
}

static int train(dtrain_comm_t *comm, dtrain_gradients_t *queue, layer_t *all) {
    const int rank = dtrain_comm_rank(comm), batches = 20 + 5 * rank;
    for (int l = 0; l < layers; l++) snprintf(all[l].name, sizeof all[l].name, "layer%d", l);
    for (int batch = 0; batch < batches; batch++)
        if (backward(queue, all, rank, batch) != 0 || update(all) != 0) return -1;
    /* The others may have more; whoever joined last has seen every update. */
    int32_t last = 0;
    TRY(dtrain_gradients_join(queue, NULL, &last, NULL));
    for (int l = 0; l < layers; l++)
        TRY(dtrain_broadcast(comm, all[l].weight, width, DTRAIN_F32, last, NULL, NULL));

    dtrain_gradients_counters_t n;
    DTRAIN_INIT(&n);
    TRY(dtrain_gradients_stats(queue, &n));
    printf("rank %d: %d batches; %llu tensors in %llu all-reduces, %llu of %llu cycles with names; "
           "weight[0] %.4f\n",
           rank, batches, (unsigned long long)n.tensors, (unsigned long long)n.buckets,
           (unsigned long long)n.exchanges, (unsigned long long)n.cycles, all[0].weight[0]);
    return 0;
}

static int run(dtrain_comm_t *comm) {
    dtrain_gradients_t *queue;
    layer_t *all = calloc(layers, sizeof *all);
    if (all == NULL) return -1;
    int result = dtrain_gradients_create(comm, NULL, &queue) == DTRAIN_OK ? 0 : complain("queue");
    if (result == 0) {
        result = train(comm, queue, all);
        dtrain_gradients_destroy(queue); /* from here on nothing uses the gradients */
    }
    free(all);
    return result;
}

int main(void) {
    dtrain_context_t *context;
    dtrain_comm_t *comm;
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK)
        return complain("context") != 0;
    if (dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK) return complain("join") != 0;
    int result = run(comm);
    dtrain_comm_destroy(comm);
    return dtrain_context_destroy(context) != DTRAIN_OK || result != 0;
}
