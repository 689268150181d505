// What happens to a transfer when it arrives.
// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <unistd.h>

namespace dtrain::tp::sim {

void Network::wake(Device &device) {
    if (!device.armed) return;
    device.armed = false;
    armed--;
    const uint64_t one = 1;
    // If it is full, the eventfd is readable, too.
    [[maybe_unused]] ssize_t ignored = write(device.event_fd.get(), &one, sizeof one);
}

void Network::complete(Device &device, const dtrain_tp_done_t &done) {
    device.completions.push(done);
    device.quiet = false;
    wake(device);
}

void Network::finish(Transfer *transfer, dtrain_status_t status) {
    std::unique_ptr<Transfer> owner(transfer);
    if (!transfer->eager) complete(*transfer->source, transfer->done(status));
}

void Network::deliver(Transfer *transfer, Receive *receive) {
    Device &target = *transfer->target;
    if (transfer->eager) {
        receive->into.scatter(transfer->data.get(), transfer->length);
    } else {
        uint64_t part;
        for (IovCursor from = transfer->iov; from.remaining(); from.advance(part)) {
            const uint8_t *piece = from.piece(&part);
            receive->into.scatter(piece, part);
        }
    }
    complete(target, receive->done(transfer->tag, transfer->length));
    target.matcher.release(receive);
    finish(transfer, DTRAIN_OK);
}

// False: there is no room.
bool Network::keep(Transfer *transfer) {
    Device &target = *transfer->target;
    if (!transfer->eager && transfer->length > transfer->source->most_eager) {
        Message *message = target.matcher.announce(transfer->tag, transfer->length);
        if (!message) return false;
        message->origin = transfer;
        target.held.remove(transfer);
        target.announced.push_back(transfer);
        return true;
    }
    Message *message = target.matcher.keep(transfer->tag, transfer->length);
    if (!message) return false;
    if (transfer->eager && transfer->length)
        memcpy(message->data, transfer->data.get(), transfer->length);
    else
        transfer->iov.gather(message->data, transfer->length);
    target.held.remove(transfer);
    finish(transfer, DTRAIN_OK);
    return true;
}

void Network::settle(Device &device) {
    bool room = true; // after a message that finds no room, a later one must not overtake it
    for (Transfer *t = device.held.front(), *next = nullptr; t; t = next) {
        next = Transfers::next(t);
        if (Receive *receive = device.matcher.match(t->tag)) {
            device.held.remove(t);
            deliver(t, receive);
        } else if (room) {
            room = keep(t);
        }
    }
}

void Network::put_or_get(Transfer *t) {
    auto found = regions.find(t->region);
    const Registration *region = found != regions.end() ? found->second : nullptr;
    if (!region || region->device != t->target || t->remote_addr < region->address ||
        t->remote_addr - region->address > region->length ||
        t->length > region->length - (t->remote_addr - region->address))
        return finish(t, DTRAIN_ERR_INVALID);
    if (t->kind == DTRAIN_TP_GET) {
        t->iov.scatter(reinterpret_cast<const void *>(t->remote_addr), t->length);
        return finish(t, DTRAIN_OK);
    }
    Device &target = *t->target;
    if (t->imm && !target.completions.reserve()) return finish(t, DTRAIN_ERR_NO_MEMORY);
    t->iov.gather(reinterpret_cast<void *>(t->remote_addr), t->length);
    if (t->imm) {
        complete(target, {0, t->length, 0, t->imm, DTRAIN_OK, DTRAIN_TP_PUT_ARRIVED, 0});
    }
    finish(t, DTRAIN_OK);
}

} // namespace dtrain::tp::sim
