/* SPDX-License-Identifier: Apache-2.0 */
#include "callbacks.h"

#include "_cgo_export.h" /* by cgo, of callbacks.go */

void callback_log(void *number, int32_t level, const char *line) {
    goLog((uintptr_t)number, level, (char *)line);
}

int32_t callback_allgather(void *number, const void *send, void *recv, size_t len) {
    return goAllGather((uintptr_t)number, (void *)send, recv, len);
}

uint32_t callback_place(void *number, uint64_t first, uint64_t count, uint32_t servers) {
    return goPlace((uintptr_t)number, first, count, servers);
}
