/* Two functions in one file; or, wrongly, one and the same again and again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain_function.h"

#include <stddef.h>

static dtrain_status_t add(void *factor, const dtrain_function_batch_t *batch) {
    for (uint64_t row = 0; row < batch->count; row++) {
        float *values = batch->rows[row].values;
        const float *pushed = batch->rows[row].pushed;
        for (uint64_t i = 0; i < batch->dim; i++) values[i] += *(const float *)factor * pushed[i];
    }
    return DTRAIN_OK;
}

const dtrain_function_t *dtrain_function_query(uint32_t core_abi, uint32_t index) {
    static float factors[] = {1, -1};
    static const dtrain_function_t functions[] = {{.struct_size = sizeof functions[0],
                                                   .abi = DTRAIN_FUNCTION_ABI,
                                                   .name = "plus",
                                                   .user = &factors[0],
                                                   .update = add},
                                                  {.struct_size = sizeof functions[0],
                                                   .abi = DTRAIN_FUNCTION_ABI,
                                                   .name = "minus",
                                                   .user = &factors[1],
                                                   .update = add}};
#ifdef ENDLESS_FUNCTION
    index = 0;
#endif
    (void)core_abi;
    return index < 2 ? &functions[index] : NULL;
}
