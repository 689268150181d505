// How a message may be tampered with before it is passed to the wrapped transport.
// SPDX-License-Identifier: Apache-2.0
#include "common/random.h"
#include "device.h"

namespace dtrain::tp::fault {

bool Device::chance(uint64_t per_thousand) {
    return per_thousand && next_random(random_) % 1000 < per_thousand;
}

// In a copy, since the caller's memory is not ours to change. The message goes unharmed if there is
// no memory for one.
void Device::flip(Operation &operation) {
    IovCursor rest;
    uint64_t length = 0;
    if (!iov_length(operation.iov, operation.n, &length) || !length) return;
    operation.changed.reset(new (std::nothrow) uint8_t[length]);
    if (!operation.changed) return;
    rest.assign(operation.iov, operation.n, length);
    rest.gather(operation.changed.get(), length);
    const uint64_t bit = next_random(random_) % (8 * length);
    operation.changed[bit / 8] = uint8_t(operation.changed[bit / 8] ^ 1u << bit % 8);
    operation.iov[0] = {operation.changed.get(), length, nullptr};
    operation.n = 1;
    counts_.flipped++;
}

// Decides on everything except drop and reset.
void Device::tamper(Operation &operation) {
    if (operation.length && chance(settings.truncate)) {
        counts_.truncated++;
        uint64_t left = next_random(random_) % operation.length;
        for (uint32_t i = 0; i < operation.n; i++) {
            operation.iov[i].len = std::min(operation.iov[i].len, left);
            left -= operation.iov[i].len;
        }
    }
    if (operation.length && chance(settings.flip)) flip(operation);
    if (chance(settings.duplicate)) {
        counts_.duplicated++;
        operation.to_post++;
    }
    if (settings.delay) operation.hold = next_random(random_) % (settings.delay + 1);
    if (operation.hold) counts_.delayed++;
}

dtrain_status_t Device::send(Endpoint &endpoint, uint64_t tag, const dtrain_tp_iov_t *iov,
                             uint32_t n, uint64_t cookie) {
    if (!endpoint.inner) return refuse_broken();
    uint64_t length = 0;
    // Checked here, since a message that is held back cannot be refused any more.
    if (!iov_length(iov, n, &length) || length > max_message)
        return host.fail(DTRAIN_ERR_INVALID, "fault: the list of %u pieces is not valid", n);
    Operation *operation = accept(endpoint, DTRAIN_TP_SEND, cookie);
    if (!operation) return DTRAIN_ERR_NO_MEMORY;
    operation->tag = tag;
    operation->length = length;
    operation->n = n;
    operation->to_post = 1;
    std::copy_n(iov, n, operation->iov);
    if (++counts_.sends > settings.after) {
        if (chance(settings.reset)) {
            break_endpoint(endpoint);
            complete(operation, DTRAIN_ERR_PEER);
            return DTRAIN_OK;
        }
        if (chance(settings.drop)) {
            counts_.dropped++;
            complete(operation, DTRAIN_OK);
            return DTRAIN_OK;
        }
        tamper(*operation);
    }
    if (operation->hold || must_wait(*operation)) {
        held_.push_back(operation);
        return DTRAIN_OK;
    }
    const dtrain_status_t status = post(*operation);
    if (status == DTRAIN_OK) return DTRAIN_OK;
    if (operation->posted) { // the duplicate was not posted
        operation->to_post = 0;
        return DTRAIN_OK;
    }
    counts_.sends--;
    forget(operation);
    return status;
}

// Passes it to the wrapped transport as often as necessary; stops at the first refusal.
dtrain_status_t Device::post(Operation &operation) {
    while (operation.to_post) {
        const dtrain_status_t status =
            ops.send(operation.endpoint->inner, operation.tag, operation.iov, operation.n,
                     inner_cookie(&operation));
        if (status != DTRAIN_OK) return status;
        operation.to_post--;
        operation.posted++;
    }
    return DTRAIN_OK;
}

// Messages of one endpoint and tag stay in order.
bool Device::must_wait(const Operation &operation) const {
    for (const Operation *o = held_.front(); o && o != &operation; o = decltype(held_)::next(o))
        if (o->endpoint == operation.endpoint && o->tag == operation.tag) return true;
    return false;
}

void Device::release_held() {
    for (Operation *o = held_.front(), *next = nullptr; o; o = next) {
        next = decltype(held_)::next(o);
        if (o->hold && --o->hold) continue;
        if (must_wait(*o)) continue;
        const dtrain_status_t status = post(*o);
        if (status == DTRAIN_ERR_BUSY) continue;
        held_.remove(o);
        if (status == DTRAIN_OK) continue;
        o->to_post = 0; // refused: if it was posted before, that still completes
        o->status = status;
        if (!o->posted) complete(o, status);
    }
}

} // namespace dtrain::tp::fault
