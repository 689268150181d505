/* The functions of the CUDA driver that the example needs, found at run time, so that it is built
 * and linked without CUDA.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DRIVER_H
#define DRIVER_H
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *stream_t;
typedef struct CUfunc_st *kernel_t;
typedef struct CUmod_st *module_t;

/* All that return an int return 0, or -1 with the reason on stderr. */
int driver_open(int device); /* whose context is current in this thread until driver_close() */
void driver_close(void);
int driver_devices(int *count);
int stream_create(stream_t *stream);
int stream_wait(stream_t stream); /* the host waits until all in it is done */
void stream_free(stream_t stream);
/* Memory of the device, with a copy of data, or zeroed. */
int device_array(void **array, const void *data, size_t bytes);
void device_free(void *array);
int device_write(void *array, const void *data, size_t bytes);
int device_read(void *data, const void *array, size_t bytes);

int module_load(module_t *module, const char *file); /* of PTX */
void module_free(module_t module);
int kernel_find(kernel_t *kernel, module_t module, const char *name);
/* arguments: the kernel's, one after the other, as in a struct. */
int kernel_launch(kernel_t kernel, size_t threads, void *arguments, size_t bytes, stream_t stream);

#endif
