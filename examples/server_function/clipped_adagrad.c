/* An update rule of one's own, as a shared object that servers load:
 *     DTRAIN_PS_FUNCTIONS=/path/to/libclipped_adagrad.so dtrain-server ...
 * Adagrad whose rows are scaled down to the table's clip_norm before they are applied.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain_function.h>
#include <math.h>
#include <stdio.h>

static dtrain_status_t update(void *user, const dtrain_function_batch_t *batch) {
    const dtrain_table_params_t *params = batch->params;
    (void)user;
    if (batch->dtype != DTRAIN_F32) {
        snprintf(batch->error, batch->error_size, "only tables of F32 are served");
        return DTRAIN_ERR_UNSUPPORTED;
    }
    for (uint64_t row = 0; row < batch->count; row++) {
        float *w = batch->rows[row].values;
        const float *g = batch->rows[row].pushed;
        float *sum = batch->rows[row].state[0];
        double square = 0, scale = 1;
        for (uint64_t i = 0; i < batch->dim; i++) square += (double)g[i] * g[i];
        if (!isfinite(square)) { /* nothing of the request will have been applied */
            snprintf(batch->error, batch->error_size, "the gradient of row %llu is not finite",
                     (unsigned long long)batch->rows[row].key);
            return DTRAIN_ERR_INVALID;
        }
        if (params->clip_norm > 0 && sqrt(square) > params->clip_norm)
            scale = params->clip_norm / sqrt(square);
        for (uint64_t i = 0; i < batch->dim; i++) {
            const float clipped = (float)(scale * g[i]);
            sum[i] += clipped * clipped;
            w[i] -=
                (float)params->learning_rate * clipped / (sqrtf(sum[i]) + (float)params->epsilon);
        }
    }
    return DTRAIN_OK;
}

const dtrain_function_t *dtrain_function_query(uint32_t core_abi, uint32_t index) {
    static const dtrain_function_state_t states[] = {{"sum", DTRAIN_F32, 0}};
    static const dtrain_function_t function = {.struct_size = sizeof function,
                                               .abi = DTRAIN_FUNCTION_ABI,
                                               .name = "clipped_adagrad",
                                               .states = states,
                                               .state_count = 1,
                                               .update = update};
    (void)core_abi;
    return index == 0 ? &function : NULL;
}
