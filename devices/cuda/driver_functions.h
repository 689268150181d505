// The table of the driver's functions: f(member of Driver, symbol, whether it must be there, type).
// SPDX-License-Identifier: Apache-2.0
//
// Symbols are versioned by their names: cuMemAlloc_v2 is one function in every driver that has it,
// so the names say which versions these types are of, and no header's macros choose others.
#pragma once
#include "driver_types.h"

// clang-format off
#define DTRAIN_CUDA_FUNCTIONS(f)                                                                                      \
    f(init, cuInit, true, Result(unsigned))                                                                           \
    f(get_version, cuDriverGetVersion, true, Result(int *))                                                           \
    f(error_name, cuGetErrorName, true, Result(Result, const char **))                                                \
    f(error_text, cuGetErrorString, true, Result(Result, const char **))                                              \
    f(device_count, cuDeviceGetCount, true, Result(int *))                                                            \
    f(device_get, cuDeviceGet, true, Result(DeviceNumber *, int))                                                     \
    f(device_name, cuDeviceGetName, true, Result(char *, int, DeviceNumber))                                          \
    f(device_uuid, cuDeviceGetUuid, true, Result(Uuid *, DeviceNumber))                                               \
    f(device_memory, cuDeviceTotalMem_v2, true, Result(size_t *, DeviceNumber))                                       \
    f(device_attribute, cuDeviceGetAttribute, true, Result(int *, DeviceAttribute, DeviceNumber))                     \
    f(primary_retain, cuDevicePrimaryCtxRetain, true, Result(Context *, DeviceNumber))                                \
    f(primary_release, cuDevicePrimaryCtxRelease_v2, true, Result(DeviceNumber))                                      \
    f(context_push, cuCtxPushCurrent_v2, true, Result(Context))                                                       \
    f(context_pop, cuCtxPopCurrent_v2, true, Result(Context *))                                                       \
    f(context_flags, cuCtxGetFlags, true, Result(unsigned *))                                                         \
    f(set_context_flags, cuCtxSetFlags, true, Result(unsigned))                                                       \
    f(priority_range, cuCtxGetStreamPriorityRange, true, Result(int *, int *))                                        \
    f(mem_alloc, cuMemAlloc_v2, true, Result(Address *, size_t))                                                      \
    f(mem_free, cuMemFree_v2, true, Result(Address))                                                                  \
    f(mem_range, cuMemGetAddressRange_v2, true, Result(Address *, size_t *, Address))                                 \
    f(host_register, cuMemHostRegister_v2, true, Result(void *, size_t, unsigned))                                    \
    f(host_unregister, cuMemHostUnregister, true, Result(void *))                                                     \
    f(host_address, cuMemHostGetDevicePointer_v2, true, Result(Address *, void *, unsigned))                          \
    f(pointer_attributes, cuPointerGetAttributes, true, Result(unsigned, PointerAttribute *, void **, Address))       \
    f(copy, cuMemcpyAsync, true, Result(Address, Address, size_t, Stream))                                            \
    f(fill, cuMemsetD8Async, true, Result(Address, unsigned char, size_t, Stream))                                    \
    f(stream_create, cuStreamCreateWithPriority, true, Result(Stream *, unsigned, int))                               \
    f(stream_destroy, cuStreamDestroy_v2, true, Result(Stream))                                                       \
    f(stream_query, cuStreamQuery, true, Result(Stream))                                                              \
    f(stream_synchronize, cuStreamSynchronize, true, Result(Stream))                                                  \
    f(stream_context, cuStreamGetCtx, true, Result(Stream, Context *))                                                \
    f(stream_capturing, cuStreamIsCapturing, true, Result(Stream, int *))                                             \
    f(write_value, cuStreamWriteValue32_v2, true, Result(Stream, Address, uint32_t, unsigned))                        \
    f(wait_value, cuStreamWaitValue32_v2, true, Result(Stream, Address, uint32_t, unsigned))                          \
    f(host_function, cuLaunchHostFunc, true, Result(Stream, HostFunction, void *))                                    \
    f(module_load, cuModuleLoadData, true, Result(Module *, const void *))                                            \
    f(module_unload, cuModuleUnload, true, Result(Module))                                                            \
    f(module_function, cuModuleGetFunction, true, Result(Function *, Module, const char *))                           \
    f(function_load, cuFuncLoad, false, Result(Function))                                                             \
    f(launch, cuLaunchKernel, true, Result(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
                                           unsigned, Stream, void **, void **))                                       \
    f(ipc_export, cuIpcGetMemHandle, true, Result(IpcHandle *, Address))                                              \
    f(ipc_open, cuIpcOpenMemHandle_v2, true, Result(Address *, IpcHandle, unsigned))                                  \
    f(ipc_close, cuIpcCloseMemHandle, true, Result(Address))                                                          \
    f(range_handle, cuMemGetHandleForAddressRange, false, Result(void *, Address, size_t, int, unsigned long long))   \
    f(flush_writes, cuFlushGPUDirectRDMAWrites, false, Result(int, int))
// clang-format on
