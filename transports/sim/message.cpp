// Tagged messages.
// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

namespace dtrain::tp::sim {

std::unique_ptr<Transfer> make_transfer(Endpoint &endpoint, uint32_t kind,
                                        const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie,
                                        dtrain_status_t &status) {
    Device &source = *endpoint.source;
    uint64_t length = 0;
    if (!iov_length(iov, n, &length) || length > max_message) {
        status = source.host.fail(DTRAIN_ERR_INVALID, "sim: the list of %u pieces is not valid", n);
        return nullptr;
    }
    if (!endpoint.target || endpoint.target->closed) {
        status = source.host.fail(DTRAIN_ERR_PEER, "sim: the peer has closed its device");
        return nullptr;
    }
    auto transfer = std::make_unique<Transfer>();
    transfer->kind = kind;
    transfer->source = &source;
    transfer->target = endpoint.target;
    transfer->endpoint = &endpoint;
    transfer->length = length;
    transfer->cookie = cookie;
    transfer->iov.assign(iov, n, length);
    return transfer;
}

dtrain_status_t start(std::unique_ptr<Transfer> transfer, uint64_t bytes) {
    Device &source = *transfer->source;
    if (!source.completions.reserve()) return DTRAIN_ERR_NO_MEMORY;
    const bool eager = transfer->eager;
    const dtrain_tp_done_t done = transfer->done(DTRAIN_OK);
    try {
        source.network.launch(std::move(transfer), bytes);
    } catch (const std::bad_alloc &) {
        source.completions.unreserve();
        return DTRAIN_ERR_NO_MEMORY;
    }
    source.quiet = false;
    if (eager) source.network.complete(source, done);
    return DTRAIN_OK;
}

dtrain_status_t send(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                     uint64_t cookie) {
    Endpoint &endpoint = from(ep);
    Network &network = endpoint.source->network;
    std::lock_guard lock(network.mutex());
    return guard([&]() -> dtrain_status_t {
        dtrain_status_t status = DTRAIN_OK;
        auto transfer = make_transfer(endpoint, DTRAIN_TP_SEND, iov, n, cookie, status);
        if (!transfer) return status;
        transfer->tag = tag;
        const uint64_t length = transfer->length;
        const Device &target = *transfer->target;
        // If the peer's buffer is full, a sender waits as for a long message.
        const uint64_t cost = target.matcher.kept_cost() + target.incoming + length;
        if (length <= endpoint.source->most_eager &&
            cost + Matcher::message_cost <= network.settings().buffer) {
            transfer->eager = true;
            transfer->data.reset(new uint8_t[length]);
            transfer->iov.peek(transfer->data.get(), length);
        }
        return start(std::move(transfer), length);
    });
}

dtrain_status_t recv(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                     const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    uint64_t length = 0;
    if (!iov_length(iov, n, &length))
        return device.host.fail(DTRAIN_ERR_INVALID, "sim: the list of %u pieces is not valid", n);
    if (!device.completions.reserve()) return DTRAIN_ERR_NO_MEMORY;
    Receive *receive = device.matcher.create(wanted, mask, iov, n, length, cookie);
    if (!receive) {
        device.completions.unreserve();
        return DTRAIN_ERR_NO_MEMORY;
    }
    device.quiet = false;
    if (Message *message = device.matcher.post(receive)) {
        if (message->announced) {
            auto *transfer = static_cast<Transfer *>(message->origin);
            device.announced.remove(transfer);
            network.deliver(transfer, receive);
        } else {
            receive->into.scatter(message->data, message->length);
            network.complete(device, receive->done(message->tag, message->length));
            device.matcher.release(receive);
        }
        device.matcher.release(message);
    }
    network.settle(device);
    return DTRAIN_OK;
}

void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) {
    Device &device = from(dev);
    std::lock_guard lock(device.network.mutex());
    Receive *receive = device.matcher.cancel(cookie);
    if (!receive) return;
    device.network.complete(device, receive->failed(DTRAIN_ERR_CANCELED));
    device.matcher.release(receive);
}

// Ends a receive that has matched.
void withdraw(dtrain_tp_dev_t *dev, uint64_t cookie) {
    cancel(dev, cookie);
    Device &device = from(dev);
    std::lock_guard lock(device.network.mutex());
    device.network.withdraw(device, cookie);
}

void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    while (Message *message = device.matcher.take(wanted, mask)) {
        if (message->announced) {
            auto *transfer = static_cast<Transfer *>(message->origin);
            device.announced.remove(transfer);
            network.finish(transfer, DTRAIN_OK);
        }
        device.matcher.release(message);
    }
    for (Transfer *t = device.held.front(), *next = nullptr; t; t = next) {
        next = Transfers::next(t);
        if (((t->tag ^ wanted) & mask) != 0) continue;
        device.held.remove(t);
        network.finish(t, DTRAIN_OK);
    }
    network.settle(device);
}

} // namespace dtrain::tp::sim
