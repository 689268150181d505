// The forms that functions of the table have in some versions only. A version's table (versions/)
// is put together from these and from plugin.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nccl/plugin.h"

#include <algorithm>

namespace dtrain::nccl::forms {

template <class... Profiler> Result init(Logger logger, Profiler...) { return nccl::init(logger); }
inline Result init_context(void **context, uint64_t, CommConfig *, Logger logger, Profiler) {
    *context = const_cast<char *>(name); // any address will do: all contexts share the devices
    return nccl::init(logger);
}

inline Result listen_in_context(void *, int device, void *handle, void **listener) {
    return nccl::listen(device, handle, listener);
}
// Devices: (), or (DeviceHandle **), which is left as it is.
template <class... Devices> Result connect(int device, void *handle, void **comm, Devices...) {
    return nccl::connect(device, handle, comm);
}
inline Result connect_configured(int device, CommConfig *, void *handle, void **comm,
                                 DeviceHandle **) {
    return nccl::connect(device, handle, comm);
}
inline Result connect_in_context(void *, int device, void *handle, void **comm, DeviceHandle **) {
    return nccl::connect(device, handle, comm);
}
template <class... Devices> Result accept(void *listener, void **comm, Devices...) {
    return nccl::accept(listener, comm);
}

// A negative length becomes a huge one, which is refused.
template <class Size>
Result register_memory(void *comm, void *data, Size bytes, int type, void **registration) {
    return nccl::register_memory(comm, data, size_t(bytes), type, registration);
}
template <class Size>
Result send(void *comm, void *data, Size bytes, int tag, void *registration, void **request) {
    return nccl::send(comm, data, size_t(bytes), tag, registration, request);
}
inline Result send_planned(void *comm, void *data, size_t bytes, int tag, void *registration,
                           void *, void **request) {
    return nccl::send(comm, data, bytes, tag, registration, request);
}
template <class Size>
Result receive(void *comm, int count, void **data, Size *bytes, int *tags, void **registrations,
               void **request) {
    size_t sizes[most_receives] = {}; // a wrong count is refused
    if (bytes != nullptr) std::copy_n(bytes, std::clamp(count, 0, most_receives), sizes);
    return nccl::receive(comm, count, data, static_cast<const size_t *>(sizes), tags, registrations,
                         request);
}
inline Result receive_planned(void *comm, int count, void **data, size_t *bytes, int *tags,
                              void **registrations, void **, void **request) {
    return nccl::receive(comm, count, data, static_cast<const size_t *>(bytes), tags, registrations,
                         request);
}
inline Result set_attributes(void *, Attributes *) { return Result::success; } // hints

template <class Properties> Result properties(int device, Properties *out) {
    Card card;
    if (const Result result = nccl::describe(device, card); result != Result::success)
        return result;
    *out = {};
    out->name = card.name;
    out->pci_path = card.pci_path;
    out->guid = card.guid;
    out->memory = memory_host;
    out->speed = card.speed_mbps;
    out->port = 1;
    out->latency = card.latency_us;
    out->max_comms = card.max_comms;
    out->max_receives = most_receives;
    if constexpr (requires { out->device_type; }) out->device_type = device_host;
    if constexpr (requires { out->parts; }) {
        out->parts.count = 1;
        out->parts.devices[0] = device;
        out->max_p2p_bytes = out->max_collective_bytes = card.max_message;
    }
    if constexpr (requires { out->max_multi_request; }) out->max_multi_request = 1;
    if constexpr (requires { out->rail; }) out->rail = out->plane = -1; // unknown
    return Result::success;
}

} // namespace dtrain::nccl::forms
