// What NCCL and a net plugin agree on in all versions of the plugin interface. These declarations
// are our own: NCCL's headers are not needed to build the plugin, and no CUDA.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace dtrain::nccl {

enum class Result : int { // ncclResult_t
    success = 0,
    system_error = 2,
    internal_error = 3,
    invalid_argument = 4,
    remote_error = 6
};

// Levels and the subsystem of ncclDebugLogger_t.
inline constexpr int log_warn = 2, log_info = 3;
inline constexpr unsigned long log_net = 16;
using Logger = void (*)(int level, unsigned long subsystem, const char *file, int line,
                        const char *format, ...);
using Profiler = Result (*)(void **handle, int type, void *parent, int64_t plugin, void *data);

inline constexpr int memory_host = 1;       // NCCL_PTR_HOST; a bit of Properties::memory
inline constexpr size_t handle_bytes = 128; // what listen() may write for connect()
inline constexpr int device_host = 0;       // no part of the plugin runs on a GPU
inline constexpr int most_receives = 8;     // that one irecv() groups

struct DeviceHandle; // for plugins with a part that runs on a GPU; never made here

struct CommConfig {
    int traffic_class;
};
struct CommAttributes {
    int32_t max_peers, min_peers, max_flows, min_flows;
};
struct Attributes {
    CommAttributes send, receive;
    uint32_t operation, algorithm, protocol;
};
// A virtual device made of several; here each has one.
template <int most> struct VirtualDevice {
    int count;
    int devices[most];
};

} // namespace dtrain::nccl
