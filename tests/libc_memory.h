// The C library's allocator, for programs that define malloc() and the like themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}
