// The table of version 7.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v7.h"
#include "nccl/adapters.h"

using namespace dtrain::nccl;

extern "C" {
DTRAIN_API extern const Table7 ncclNetPlugin_v7;
const Table7 ncclNetPlugin_v7 = {
    .name = name,
    .init = forms::init<>,
    .devices = devices,
    .properties = forms::properties<Properties7>,
    .listen = listen,
    .connect = forms::connect<DeviceHandle **>,
    .accept = forms::accept<DeviceHandle **>,
    .register_memory = forms::register_memory<int>,
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
