// The plugin's functions, once for all versions: they check what NCCL passes, and turn a failure
// into a result of NCCL and one line in its log. Any thread may call them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/abi.h"
#include "nccl/card.h"

namespace dtrain::nccl {

inline constexpr char name[] = "dtrain"; // what NCCL_NET selects

// init() opens the devices when it is the first; finalize() of the last closes them.
Result init(Logger logger);
Result finalize(void *context);
Result devices(int *count);
Result describe(int device, Card &card);
Result listen(int device, void *handle, void **listener);
// These two never wait: *comm is nullptr until the connection is ready.
Result connect(int device, void *handle, void **comm);
Result accept(void *listener, void **comm);
Result register_memory(void *comm, void *data, size_t bytes, int type, void **registration);
Result register_dmabuf(void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd,
                       void **registration);
Result deregister(void *comm, void *registration);
// *request is nullptr if there is no room now.
Result send(void *comm, void *data, size_t bytes, int tag, void *registration, void **request);
Result receive(void *comm, int count, void **data, const size_t *bytes, const int *tags,
               void **registrations, void **request);
Result flush(void *comm, int count, void **data, int *bytes, void **registrations, void **request);
Result test(void *request, int *done, int *bytes);
Result close_comm(void *comm);
Result close_listen(void *listener);

} // namespace dtrain::nccl
