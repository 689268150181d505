// The table of version 8.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v8.h"
#include "nccl/adapters.h"

using namespace dtrain::nccl;

extern "C" {
DTRAIN_API extern const Table8 ncclNetPlugin_v8;
const Table8 ncclNetPlugin_v8 = {
    .name = name,
    .init = forms::init<>,
    .devices = devices,
    .properties = forms::properties<Properties8>,
    .listen = listen,
    .connect = forms::connect<DeviceHandle **>,
    .accept = forms::accept<DeviceHandle **>,
    .register_memory = forms::register_memory<size_t>,
    .register_dmabuf = register_dmabuf,
    .deregister = deregister,
    .send = forms::send<int>,
    .receive = forms::receive<int>,
    .flush = flush,
    .test = test,
    .close_send = close_comm,
    .close_receive = close_comm,
    .close_listen = close_listen,
    .device_registration = nullptr,
    .receive_consumed = nullptr,
};
}
