// Compares our declarations of the CUDA driver with NVIDIA's, where its header is. Compiled only.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include "devices/cuda/driver_functions.h"

#include <type_traits>

namespace {

// Both are passed in the same registers.
template <class A, class B> constexpr bool same() {
    if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>)
        return true;
    else
        return sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B> &&
               std::is_pointer_v<A> == std::is_pointer_v<B>;
}
template <class Ours, class Theirs> struct Compare : std::false_type {};
template <class R, class... A, class S, class... B>
struct Compare<R(A...), S(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && same<R, S>()> {
    static constexpr bool arguments = [] {
        if constexpr (sizeof...(A) == sizeof...(B))
            return (same<A, B>() && ...);
        else
            return false;
    }();
};

using namespace dtrain::cuda;
#define CHECK(member, symbol, must, ...)                                                           \
    static_assert(Compare<__VA_ARGS__, std::remove_pointer_t<decltype(&::symbol)>>::value &&       \
                      Compare<__VA_ARGS__, std::remove_pointer_t<decltype(&::symbol)>>::arguments, \
                  #symbol);
DTRAIN_CUDA_FUNCTIONS(CHECK)

#define EQUAL(ours, theirs) static_assert(int(ours) == int(theirs), #theirs)
EQUAL(invalid_value, CUDA_ERROR_INVALID_VALUE);
EQUAL(out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
EQUAL(not_initialized, CUDA_ERROR_NOT_INITIALIZED);
EQUAL(deinitialized, CUDA_ERROR_DEINITIALIZED);
EQUAL(no_device, CUDA_ERROR_NO_DEVICE);
EQUAL(invalid_device, CUDA_ERROR_INVALID_DEVICE);
EQUAL(invalid_image, CUDA_ERROR_INVALID_IMAGE);
EQUAL(invalid_context, CUDA_ERROR_INVALID_CONTEXT);
EQUAL(map_failed, CUDA_ERROR_MAP_FAILED);
EQUAL(unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
EQUAL(invalid_handle, CUDA_ERROR_INVALID_HANDLE);
EQUAL(not_found, CUDA_ERROR_NOT_FOUND);
EQUAL(not_ready, CUDA_ERROR_NOT_READY);
EQUAL(illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
EQUAL(already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
EQUAL(not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
EQUAL(not_permitted, CUDA_ERROR_NOT_PERMITTED);
EQUAL(not_supported, CUDA_ERROR_NOT_SUPPORTED);
EQUAL(capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
EQUAL(capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
EQUAL(capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
EQUAL(unknown_error, CUDA_ERROR_UNKNOWN);
EQUAL(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUAL(pci_bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
EQUAL(pci_device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
EQUAL(pci_domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
EQUAL(memory_clock_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
EQUAL(memory_bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
EQUAL(compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUAL(compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUAL(concurrent_managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
EQUAL(dma_buf_supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
EQUAL(host_numa_node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
EQUAL(memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
EQUAL(device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
EQUAL(buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
EQUAL(is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
EQUAL(device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
EQUAL(is_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
EQUAL(range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
EQUAL(range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
EQUAL(memory_host, CU_MEMORYTYPE_HOST);
EQUAL(memory_device, CU_MEMORYTYPE_DEVICE);
EQUAL(stream_non_blocking, CU_STREAM_NON_BLOCKING);
EQUAL(wait_at_least, CU_STREAM_WAIT_VALUE_GEQ);
EQUAL(write_default, CU_STREAM_WRITE_VALUE_DEFAULT);
EQUAL(register_portable, CU_MEMHOSTREGISTER_PORTABLE);
EQUAL(register_map, CU_MEMHOSTREGISTER_DEVICEMAP);
EQUAL(ipc_lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
EQUAL(capture_none, CU_STREAM_CAPTURE_STATUS_NONE);
EQUAL(capture_active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
EQUAL(range_dma_buf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
EQUAL(flush_current_context, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
EQUAL(flush_to_owner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
EQUAL(launch_end, CU_LAUNCH_PARAM_END_AS_INT);
EQUAL(launch_buffer, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT);
EQUAL(launch_buffer_size, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT);

} // namespace
