/* Functions of Go's that the library calls, by their numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTRAIN_GO_CALLBACKS_H
#define DTRAIN_GO_CALLBACKS_H
#include <stddef.h>
#include <stdint.h>

void callback_log(void *number, int32_t level, const char *line);
int32_t callback_allgather(void *number, const void *send, void *recv, size_t len);
uint32_t callback_place(void *number, uint64_t first, uint64_t count, uint32_t servers);

#endif
