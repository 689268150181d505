// Guards as transports see them: the protection of a connection behind C functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_transport.h"
#include "protection/guard.h"

#include <string_view>

namespace dtrain::transport {

// The services of dtrain_tp_host_t that need the job's secret, which is not empty.
Status new_guard(const protection::Least &demand, void *offer, dtrain_tp_guard_t **guard_p);
Status agree(std::string_view secret, dtrain_tp_guard_t *guard, uint32_t place,
             const void *peer_offer, std::span<const uint8_t> transcript, uint32_t *level_p);
// The others, for the table as they are; `self` is not used.
void seal(void *self, dtrain_tp_guard_t *guard, void *record, size_t len);
Status open(void *self, dtrain_tp_guard_t *guard, void *record, size_t len);
void free_guard(void *self, dtrain_tp_guard_t *guard);

} // namespace dtrain::transport
