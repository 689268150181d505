// The objects of libfabric that one device uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "common/host.h"

#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <string>

namespace dtrain::ofi {

struct InfoFree {
    void operator()(fi_info *info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFree>;

template <class T> struct Close {
    void operator()(T *object) const { fi_close(&object->fid); }
};
template <class T> using Handle = std::unique_ptr<T, Close<T>>;

// The usable choices of this provider ("net", "verbs;ofi_rxm"; "": any) and domain ("": any), best
// first. nullptr: none; *error is libfabric's error.
Info find(const std::string &provider, const std::string &domain, int *error);
// Whether the provider only emulates RDMA (over sockets or shared memory).
bool is_emulated(const char *provider);

// One endpoint and its objects. The order matters: the last member is closed first.
struct Fabric {
    Info info;
    Handle<fid_fabric> fabric;
    Handle<fid_domain> domain;
    Handle<fid_av> peers;
    Handle<fid_wait> waiting; // for both queues, if they cannot tell whether it is safe to sleep
    // Separate, since some providers' completions cannot be told apart in one queue.
    Handle<fid_cq> tx, rx;
    Handle<fid_ep> endpoint;
    tp::Fd
        events; // readable when either queue has something; none: the provider has no descriptors

    // On failure the error text is set.
    dtrain_status_t open(const tp::Host &host, const std::string &provider,
                         const std::string &domain);
    bool needs(uint64_t mr_mode) const { return info->domain_attr->mr_mode & int(mr_mode); }
    // Whether writes of one endpoint arrive in the order in which they were made.
    bool orders_writes() const {
        return info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_WAW;
    }
    // Whether it is safe to sleep on `events`.
    bool can_wait() const;
};

} // namespace dtrain::ofi
