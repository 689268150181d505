// The list of launchers' key-value stores.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/exchange/exchange.h"

namespace dtrain::cluster {
namespace {

// PMI first: its connection is the process's own, while PMIx needs a library.
const ExchangeKind *const kinds[] = {&pmi_exchange, &pmix_exchange};

} // namespace

const ExchangeKind *exchange_named(std::string_view rendezvous) {
    for (const ExchangeKind *kind : kinds)
        if (rendezvous == kind->rendezvous) return kind;
    return nullptr;
}

const ExchangeKind *exchange_offered(const Variables &env, int32_t rank, int32_t size) {
    for (const ExchangeKind *kind : kinds)
        if (kind->offered(env, rank, size)) return kind;
    return nullptr;
}

} // namespace dtrain::cluster
