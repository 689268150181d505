// Passes transports' calls on to their guards.
// SPDX-License-Identifier: Apache-2.0
#include "transport/guard.h"

#include <cstring>
#include <new>

struct dtrain_tp_guard {
    explicit dtrain_tp_guard(const dtrain::protection::Least &demand) : guard(demand) {}
    dtrain::protection::Guard guard;
};

namespace dtrain::transport {
namespace {

static_assert(sizeof(protection::Offer) == DTRAIN_TP_OFFER_LEN);
static_assert(protection::max_payload == DTRAIN_TP_RECORD_MAX &&
              protection::header_bytes == DTRAIN_TP_RECORD_HEADER &&
              protection::tag_bytes == DTRAIN_TP_RECORD_TAG);
static_assert(DTRAIN_TP_PLAIN == int(protection::Level::none) &&
              DTRAIN_TP_INTEGRITY == int(protection::Level::integrity) &&
              DTRAIN_TP_ENCRYPTED == int(protection::Level::encrypted));

} // namespace

// No exception may pass through a plugin.
Status new_guard(const protection::Least &demand, void *offer, dtrain_tp_guard_t **guard_p) {
    try {
        *guard_p = new dtrain_tp_guard(demand);
    } catch (const std::bad_alloc &) {
        return fail(DTRAIN_ERR_NO_MEMORY, "no memory for the keys of a connection");
    }
    std::memcpy(offer, &(*guard_p)->guard.offer(), DTRAIN_TP_OFFER_LEN);
    return DTRAIN_OK;
}

Status agree(std::string_view secret, dtrain_tp_guard_t *guard, uint32_t place,
             const void *peer_offer, std::span<const uint8_t> transcript, uint32_t *level_p) {
    using protection::Role;
    protection::Offer peer;
    std::memcpy(&peer, peer_offer, sizeof peer);
    const Role role = (place & DTRAIN_TP_INITIATOR) != 0 ? Role::initiator : Role::responder;
    Status s = DTRAIN_OK;
    try {
        s = guard->guard.agree(role, secret, peer, (place & DTRAIN_TP_INSIDE) != 0, transcript);
    } catch (const std::bad_alloc &) {
        s = fail(DTRAIN_ERR_NO_MEMORY, "no memory for the keys of a connection");
    }
    *level_p = uint32_t(guard->guard.level());
    return s;
}

void seal(void *, dtrain_tp_guard_t *guard, void *record, size_t len) {
    guard->guard.seal(static_cast<uint8_t *>(record), len);
}

Status open(void *, dtrain_tp_guard_t *guard, void *record, size_t len) {
    return guard->guard.open(static_cast<uint8_t *>(record), len) ? DTRAIN_OK : DTRAIN_ERR_CORRUPT;
}

void free_guard(void *, dtrain_tp_guard_t *guard) { delete guard; }

} // namespace dtrain::transport
