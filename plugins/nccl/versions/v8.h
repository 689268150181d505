// Version 8 of NCCL's net plugin interface (NCCL 2.20 and later): longer registrations.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"

namespace dtrain::nccl {

struct Properties8 {
    char *name, *pci_path;
    uint64_t guid;
    int memory;
    int registration_is_global;
    int speed; // Mbit/s
    int port;
    float latency; // us
    int max_comms, max_receives;
    int device_type, device_version;
};

struct Table8 {
    static constexpr int version = 8;
    using Properties = Properties8;
    const char *name;
    Result (*init)(Logger);
    Result (*devices)(int *);
    Result (*properties)(int, Properties8 *);
    Result (*listen)(int, void *, void **);
    Result (*connect)(int, void *, void **, DeviceHandle **);
    Result (*accept)(void *, void **, DeviceHandle **);
    Result (*register_memory)(void *, void *, size_t, int, void **);
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
static_assert(sizeof(Properties8) == 64 && sizeof(Table8) == 152);

} // namespace dtrain::nccl
