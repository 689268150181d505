// The operations of the plugin's table, by topic.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network.h"

#include <mutex>
#include <new>

namespace dtrain::tp::sim {

inline Device &from(dtrain_tp_dev_t *dev) { return *reinterpret_cast<Device *>(dev); }
inline Endpoint &from(dtrain_tp_ep_t *ep) { return *reinterpret_cast<Endpoint *>(ep); }

// Keeps exceptions from passing through the ABI.
template <class F> dtrain_status_t guard(F &&operation) {
    try {
        return operation();
    } catch (const std::bad_alloc &) {
        return DTRAIN_ERR_NO_MEMORY;
    }
}

// Makes a transfer on this endpoint with a reserved completion; nullptr (and status set) if
// refused. If the caller fails afterwards, it must unreserve the completion.
std::unique_ptr<Transfer> make_transfer(Endpoint &endpoint, uint32_t kind,
                                        const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie,
                                        dtrain_status_t &status);
dtrain_status_t start(std::unique_ptr<Transfer> transfer, uint64_t bytes);

// message.cpp
dtrain_status_t send(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                     uint64_t cookie);
dtrain_status_t recv(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                     const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie);
void cancel(dtrain_tp_dev_t *dev, uint64_t cookie);
void withdraw(dtrain_tp_dev_t *dev, uint64_t cookie);
void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask);

// memory.cpp
dtrain_status_t mr_reg(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem, dtrain_tp_mr_t **mr_p);
void mr_dereg(dtrain_tp_mr_t *mr);
dtrain_status_t mr_rkey(dtrain_tp_mr_t *mr, void *buf, size_t len);
dtrain_status_t put(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie);
dtrain_status_t get(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                    uint64_t remote_addr, const void *rkey, uint64_t cookie);

// window.cpp
dtrain_status_t window_create(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members,
                              uint32_t member, void *handle, dtrain_tp_win_t **win_p);
dtrain_status_t window_attach(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator, const void *handle,
                              uint64_t bytes, uint32_t members, uint32_t member,
                              dtrain_tp_win_t **win_p);
void *window_address(dtrain_tp_win_t *win);
void window_ring(dtrain_tp_win_t *win);
void window_free(dtrain_tp_win_t *win);

} // namespace dtrain::tp::sim
