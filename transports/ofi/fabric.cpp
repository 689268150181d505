// Finds and opens the objects of libfabric.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/fabric.h"
#include "ofi/libfabric_cache.h"

#include <cstring>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <utility>

namespace dtrain::ofi {
namespace {

constexpr uint32_t api_version = FI_VERSION(1, 17);
constexpr int mr_modes =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

dtrain_status_t failed(const tp::Host &host, const fi_info &info, const char *what, int error) {
    // The queues of a small device (soft-RoCE) do not hold what libfabric requests by default.
    const bool too_big = error == -FI_EINVAL && strstr(info.fabric_attr->prov_name, "verbs");
    return host.fail(error == -FI_ENOMEM ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_TRANSPORT,
                     "ofi: %s, domain %s: %s: %s%s", info.fabric_attr->prov_name,
                     info.domain_attr->name, what, fi_strerror(-error),
                     too_big
                         ? "(a device with small queues needs a setting such as FI_UNIVERSE_SIZE=8 "
                           "in the environment)"
                         : "");
}

int open_queue(Fabric &f, Handle<fid_cq> *queue, fi_wait_obj wait) {
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    attr.wait_obj = wait;
    attr.wait_set = f.waiting.get();
    fid_cq *made;
    const int error = fi_cq_open(f.domain.get(), &attr, &made, nullptr);
    if (!error) queue->reset(made);
    return error;
}

// Before 1.18.1, fi_trywait() of libfabric's own RDM over TCP ("net", in 1.18 "tcp") does nothing:
// the signal of a completion that was read remains. A wait set clears it when it is asked.
bool keeps_signals(const Fabric &f) {
    const char *provider = f.info->fabric_attr->prov_name;
    return !strcmp(provider, "net") || !strcmp(provider, "tcp");
}

void open_wait_set(Fabric &f) {
    fi_wait_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_wait *made;
    if (!fi_wait_open(f.fabric.get(), &attr, &made)) f.waiting.reset(made);
}

// Opens both queues with a descriptor to sleep on, their own or that of their wait set. False:
// there is none.
bool open_queues_to_sleep_on(Fabric &f) {
    const fi_wait_obj wait = f.waiting ? FI_WAIT_SET : FI_WAIT_FD;
    if (open_queue(f, &f.tx, wait) || open_queue(f, &f.rx, wait)) return false;
    f.events = tp::Fd(epoll_create1(EPOLL_CLOEXEC));
    const auto watch = [&f](fid *source) {
        int fd = -1;
        epoll_event event{};
        event.events = EPOLLIN;
        return !fi_control(source, FI_GETWAIT, &fd) &&
               !epoll_ctl(f.events.get(), EPOLL_CTL_ADD, fd, &event);
    };
    if (f.waiting ? watch(&f.waiting->fid) : watch(&f.tx->fid) && watch(&f.rx->fid)) return true;
    f.events.reset();
    return false;
}

int open_queues(Fabric &f) {
    if (keeps_signals(f)) open_wait_set(f);
    if (open_queues_to_sleep_on(f)) return 0;
    f.tx.reset();
    f.rx.reset();
    f.waiting.reset();
    const int error = open_queue(f, &f.tx, FI_WAIT_NONE);
    return error ? error : open_queue(f, &f.rx, FI_WAIT_NONE);
}

} // namespace

bool is_emulated(const char *provider) {
    for (const char *rdma : {"verbs", "efa", "cxi", "psm3", "opx", "gni", "bgq"})
        if (!strncmp(provider, rdma, strlen(rdma))) return false;
    return true;
}

Info find(const std::string &provider, const std::string &domain, int *error) {
    const Info hints(fi_allocinfo());
    fi_info *found = nullptr;
    *error = -FI_ENOMEM;
    if (!hints) return nullptr;
    hints->caps = FI_MSG | FI_RMA | FI_MULTI_RECV;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = mr_modes;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->cq_data_size = 4;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
    if (!domain.empty()) hints->domain_attr->name = strdup(domain.c_str());
    *error = fi_getinfo(api_version, nullptr, nullptr, 0, hints.get(), &found);
    return Info(*error ? nullptr : found);
}

dtrain_status_t Fabric::open(const tp::Host &host, const std::string &provider,
                             const std::string &domain_name) {
    int error;
    info = find(provider, domain_name, &error);
    // Some providers ignore the name of the domain: other cards follow it in the list.
    while (info && !domain_name.empty() && info->domain_attr->name != domain_name) {
        error = -FI_ENODATA;
        info.reset(std::exchange(info->next, nullptr));
    }
    if (!info)
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "ofi: found nothing for provider %s, domain %s: %s", provider.c_str(),
                         domain_name.c_str(), fi_strerror(-error));
    refuse_libfabric_cache(host);
    // The last one may be newer than this library supports; the first is the best.
    fid_fabric *made_fabric;
    if ((error = fi_fabric(info->fabric_attr, &made_fabric, nullptr)))
        return failed(host, *info, "fi_fabric", error);
    fabric.reset(made_fabric);
    fid_domain *made_domain;
    if ((error = fi_domain(fabric.get(), info.get(), &made_domain, nullptr)))
        return failed(host, *info, "fi_domain", error);
    domain.reset(made_domain);
    fi_av_attr av{};
    fid_av *made_av;
    if ((error = fi_av_open(domain.get(), &av, &made_av, nullptr)))
        return failed(host, *info, "fi_av_open", error);
    peers.reset(made_av);
    if ((error = open_queues(*this))) return failed(host, *info, "fi_cq_open", error);
    fid_ep *made_endpoint;
    if ((error = fi_endpoint(domain.get(), info.get(), &made_endpoint, nullptr)))
        return failed(host, *info, "fi_endpoint", error);
    endpoint.reset(made_endpoint);
    if ((error = fi_ep_bind(endpoint.get(), &peers->fid, 0)) ||
        (error = fi_ep_bind(endpoint.get(), &tx->fid, FI_TRANSMIT)) ||
        (error = fi_ep_bind(endpoint.get(), &rx->fid, FI_RECV)) ||
        (error = fi_enable(endpoint.get())))
        return failed(host, *info, "fi_enable", error);
    return DTRAIN_OK;
}

bool Fabric::can_wait() const {
    if (waiting) return fi_wait(waiting.get(), 0) == -FI_ETIMEDOUT;
    fid *queues[] = {&tx->fid, &rx->fid};
    return fi_trywait(fabric.get(), queues, 2) == FI_SUCCESS;
}

} // namespace dtrain::ofi
