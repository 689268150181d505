// The table of version 10.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v10.h"
#include "nccl/adapters.h"

using namespace dtrain::nccl;

extern "C" {
DTRAIN_API extern const Table10 ncclNetPlugin_v10;
const Table10 ncclNetPlugin_v10 = {
    .name = name,
    .init = forms::init<Profiler>,
    .devices = devices,
    .properties = forms::properties<Properties10>,
    .listen = listen,
    .connect = forms::connect_configured,
    .accept = forms::accept<DeviceHandle **>,
    .register_memory = forms::register_memory<size_t>,
    .register_dmabuf = register_dmabuf,
    .deregister = deregister,
    .send = forms::send_planned,
    .receive = forms::receive_planned,
    .flush = flush,
    .test = test,
    .close_send = close_comm,
    .close_receive = close_comm,
    .close_listen = close_listen,
    .device_registration = nullptr,
    .receive_consumed = nullptr,
    .make_virtual = nullptr,
};
}
