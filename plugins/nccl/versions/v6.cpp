// The table of version 6.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/versions/v6.h"
#include "nccl/adapters.h"

using namespace dtrain::nccl;

extern "C" {
DTRAIN_API extern const Table6 ncclNetPlugin_v6;
const Table6 ncclNetPlugin_v6 = {
    .name = name,
    .init = forms::init<>,
    .devices = devices,
    .properties = forms::properties<Properties6>,
    .listen = listen,
    .connect = forms::connect<>,
    .accept = forms::accept<>,
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
};
}
