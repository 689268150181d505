// Memory that the network card may access.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/memory.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_errno.h>

namespace dtrain::ofi {

std::unique_ptr<Registration> Registration::make(tp::Secrets &secrets, const Fabric &fabric,
                                                 void *address, uint64_t length, int *error) {
    const size_t key_bytes = fabric.info->domain_attr->mr_key_size;
    std::unique_ptr<Registration> made(new (std::nothrow) Registration);
    *error = -FI_ENOMEM;
    if (!made) return nullptr;
    made->start = reinterpret_cast<uintptr_t>(address);
    made->length = length;
    made->virtual_ = fabric.needs(FI_MR_VIRT_ADDR);
    uint64_t key = 0; // used if the provider does not choose the key
    if (!fabric.needs(FI_MR_PROV_KEY)) {
        const uint64_t secret = secrets.next();
        memcpy(&key, &secret, std::min(sizeof key, key_bytes));
    }
    fid_mr *handle;
    *error = fi_mr_reg(fabric.domain.get(), address, length,
                       FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                       key, 0, &handle, nullptr);
    if (*error) return nullptr;
    made->handle_.reset(handle);
    if (fabric.needs(FI_MR_ENDPOINT) && ((*error = fi_mr_bind(handle, &fabric.endpoint->fid, 0)) ||
                                         (*error = fi_mr_enable(handle))))
        return nullptr;
    return made;
}

bool Registration::renew(tp::Secrets &secrets, const Fabric &fabric) {
    handle_.reset();
    int error;
    const auto fresh = make(secrets, fabric, reinterpret_cast<void *>(start), length, &error);
    if (fresh) handle_ = std::move(fresh->handle_);
    return bool(fresh);
}

} // namespace dtrain::ofi
