/* Functions of another ABI than the library's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain_function.h"

#include <stddef.h>

const dtrain_function_t *dtrain_function_query(uint32_t core_abi, uint32_t index) {
    (void)core_abi;
    (void)index;
#ifdef OLD_FUNCTION /* which knows no newer core */
    return NULL;
#else
    static const dtrain_function_t function = {.struct_size = sizeof function,
                                               .abi = DTRAIN_FUNCTION_ABI + 6};
    return &function;
#endif
}
