// Version 6 of NCCL's net plugin interface (NCCL 2.13 and later).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"

namespace dtrain::nccl {

struct Properties6 {
    char *name, *pci_path;
    uint64_t guid;
    int memory;
    int speed; // Mbit/s
    int port;
    float latency; // us
    int max_comms, max_receives;
};

struct Table6 {
    static constexpr int version = 6;
    using Properties = Properties6;
    const char *name;
    Result (*init)(Logger);
    Result (*devices)(int *);
    Result (*properties)(int, Properties6 *);
    Result (*listen)(int, void *, void **);
    Result (*connect)(int, void *, void **);
    Result (*accept)(void *, void **);
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
};
static_assert(sizeof(Properties6) == 48 && sizeof(Table6) == 136);

} // namespace dtrain::nccl
