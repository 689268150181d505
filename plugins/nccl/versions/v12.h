// Version 12 of NCCL's net plugin interface (NCCL 2.30 and later): more parts of a virtual device,
// rails.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"

namespace dtrain::nccl {

struct Properties12 {
    char *name, *pci_path;
    uint64_t guid;
    int memory;
    int registration_is_global;
    int force_flush;
    int speed; // Mbit/s
    int port;
    float latency; // us
    int max_comms, max_receives;
    int device_type, device_version;
    VirtualDevice<8> parts;
    size_t max_p2p_bytes, max_collective_bytes;
    int max_multi_request;
    int16_t rail, plane;
};

struct Table12 {
    static constexpr int version = 12;
    using Properties = Properties12;
    const char *name;
    Result (*init)(void **, uint64_t, CommConfig *, Logger, Profiler);
    Result (*devices)(int *);
    Result (*properties)(int, Properties12 *);
    Result (*listen)(void *, int, void *, void **);
    Result (*connect)(void *, int, void *, void **, DeviceHandle **);
    Result (*accept)(void *, void **, DeviceHandle **);
    Result (*register_memory)(void *, void *, size_t, int, void **);
    Result (*register_dmabuf)(void *, void *, size_t, int, uint64_t, int, void **);
    Result (*deregister)(void *, void *);
    Result (*send)(void *, void *, size_t, int, void *, void *, void **);
    Result (*receive)(void *, int, void **, size_t *, int *, void **, void **, void **);
    Result (*flush)(void *, int, void **, int *, void **, void **);
    Result (*test)(void *, int *, int *);
    Result (*close_send)(void *);
    Result (*close_receive)(void *);
    Result (*close_listen)(void *);
    Result (*device_registration)(void *, void *, void **); // NULL: none
    Result (*receive_consumed)(void *, int, void *);        // NULL: as before
    Result (*make_virtual)(int *, VirtualDevice<8> *);      // NULL: none
    Result (*finalize)(void *);
    Result (*set_attributes)(void *, Attributes *);
};
static_assert(sizeof(Properties12) == 128 && sizeof(Table12) == 176);

} // namespace dtrain::nccl
