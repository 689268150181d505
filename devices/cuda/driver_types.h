// What we call of the CUDA driver: our own declarations of its binary interface, with its numbers.
// SPDX-License-Identifier: Apache-2.0
//
// No file of NVIDIA is needed to build. Where cuda.h is, tests/device/cuda_header.cpp compares.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dtrain::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
// Handles of the driver.
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;

struct Uuid {
    char bytes[16];
};
struct IpcHandle {
    char bytes[64];
};
using HostFunction = void (*)(void *);

enum : Result {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    deinitialized = 4,
    no_device = 100,
    invalid_device = 101,
    invalid_image = 200,
    invalid_context = 201,
    map_failed = 205,
    unsupported_ptx_version = 222,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    already_registered = 712,
    not_registered = 713,
    not_permitted = 800,
    not_supported = 801,
    capture_unsupported = 900,
    capture_invalidated = 901,
    capture_implicit = 906,
    unknown_error = 999
};
enum DeviceAttribute : int {
    multiprocessors = 16,
    pci_bus = 33,
    pci_device = 34,
    memory_clock_khz = 36,
    memory_bus_bits = 37,
    pci_domain = 50,
    compute_major = 75,
    compute_minor = 76,
    concurrent_managed = 89,
    dma_buf_supported = 124,
    host_numa_node = 134
};
enum PointerAttribute : int {
    memory_type = 2,
    device_pointer = 3,
    buffer_id = 7,
    is_managed = 8,
    device_ordinal = 9,
    is_ipc_capable = 10,
    range_start = 11,
    range_size = 12
};
enum : unsigned { memory_host = 1, memory_device = 2 };
enum : unsigned { context_sync_memops = 0x80 }; // synchronous calls wait for what they do
enum : unsigned { stream_non_blocking = 1 };
enum : unsigned { wait_at_least = 0, write_default = 0 };
enum : unsigned { register_portable = 1, register_map = 2 };
enum : unsigned { ipc_lazy_peer_access = 1 };
enum : int { capture_none = 0, capture_active = 1 };
enum : int { range_dma_buf = 1 };
enum : int { flush_current_context = 0, flush_to_owner = 100 };
// Tags in the last argument of cuLaunchKernel().
enum : uintptr_t { launch_end = 0, launch_buffer = 1, launch_buffer_size = 2 };
// The default streams.
enum : uintptr_t { stream_legacy = 1, stream_per_thread = 2 };

} // namespace dtrain::cuda
