// The table of version 11.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v11.h"
#include "nccl/adapters.h"

using namespace dtrain::nccl;

extern "C" {
DTRAIN_API extern const Table11 ncclNetPlugin_v11;
const Table11 ncclNetPlugin_v11 = {
    .name = name,
    .init = forms::init_context,
    .devices = devices,
    .properties = forms::properties<Properties11>,
    .listen = forms::listen_in_context,
    .connect = forms::connect_in_context,
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
    .finalize = finalize,
    .set_attributes = forms::set_attributes,
};
}
