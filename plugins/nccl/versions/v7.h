// Version 7 of NCCL's net plugin interface (NCCL 2.19 and later): device handles.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"

namespace dtrain::nccl {

struct Properties7 {
    char *name, *pci_path;
    uint64_t guid;
    int memory;
    int speed; // Mbit/s
    int port;
    float latency; // us
    int max_comms, max_receives;
    int device_type, device_version;
};

struct Table7 {
    static constexpr int version = 7;
    using Properties = Properties7;
    const char *name;
    Result (*init)(Logger);
    Result (*devices)(int *);
    Result (*properties)(int, Properties7 *);
    Result (*listen)(int, void *, void **);
    Result (*connect)(int, void *, void **, DeviceHandle **);
    Result (*accept)(void *, void **, DeviceHandle **);
    Result (*register_memory)(void *, void *, int, int, void **);
    Result (*register_dmabuf)(void *, void *, size_t, int, uint64_t, int, void **);
    Result (*deregister)(void *, void *);
    Result (*send)(void *, void *, int, int, void *, void **);
    Result (*receive)(void *, int, void **, int *, int *, void **, void **);
    Result (*flush)(void *, int, void **, int *, void **, void **);
    Result (*test)(void *, int *, int *);
    Result (*close_send)(void *);
    Result (*close_receive)(void *);
    Result (*close_listen)(void *);
    Result (*device_registration)(void *, void *, void **); // NULL: none
    Result (*receive_consumed)(void *, int, void *);        // NULL: as before
};
static_assert(sizeof(Properties7) == 56 && sizeof(Table7) == 152);

} // namespace dtrain::nccl
