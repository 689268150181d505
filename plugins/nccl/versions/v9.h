// Version 9 of NCCL's net plugin interface (NCCL 2.24 and later): longer messages, virtual devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"

namespace dtrain::nccl {

struct Properties9 {
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
    VirtualDevice<4> parts;
    size_t max_p2p_bytes, max_collective_bytes;
};

struct Table9 {
    static constexpr int version = 9;
    using Properties = Properties9;
    const char *name;
    Result (*init)(Logger);
    Result (*devices)(int *);
    Result (*properties)(int, Properties9 *);
    Result (*listen)(int, void *, void **);
    Result (*connect)(int, void *, void **, DeviceHandle **);
    Result (*accept)(void *, void **, DeviceHandle **);
    Result (*register_memory)(void *, void *, size_t, int, void **);
    Result (*register_dmabuf)(void *, void *, size_t, int, uint64_t, int, void **);
    Result (*deregister)(void *, void *);
    Result (*send)(void *, void *, size_t, int, void *, void **);
    Result (*receive)(void *, int, void **, size_t *, int *, void **, void **);
    Result (*flush)(void *, int, void **, int *, void **, void **);
    Result (*test)(void *, int *, int *);
    Result (*close_send)(void *);
    Result (*close_receive)(void *);
    Result (*close_listen)(void *);
    Result (*device_registration)(void *, void *, void **); // NULL: none
    Result (*receive_consumed)(void *, int, void *);        // NULL: as before
    Result (*make_virtual)(int *, VirtualDevice<4> *);      // NULL: none
};
static_assert(sizeof(Properties9) == 104 && sizeof(Table9) == 160);

} // namespace dtrain::nccl
