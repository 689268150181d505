// The key-value store of a launcher, through which processes that it has started learn where
// worker 0 listens.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "cluster/host/variables.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dtrain::cluster {

class Exchange {
  public:
    virtual ~Exchange() = default;
    // Collective over all processes of the launcher's job, and blocking. first: this is process 0,
    // whose `text` (at most max_text bytes, of any kind) all processes get.
    virtual Status pass(bool first, std::string &text, int64_t deadline_ns) = 0;

    static constexpr size_t max_text = 300;
};

// One row per protocol.
struct ExchangeKind {
    const char *rendezvous; // "pmi": how a rendezvous names it
    const char *title;      // for people
    // Whether the environment offers it to the process with this rank of this many.
    bool (*offered)(const Variables &env, int32_t rank, int32_t size);
    // Opens it, or returns the one that is open: a process has one connection to its launcher, as
    // long as it lives. *out is valid as long as the process.
    Status (*open)(const Variables &env, Exchange *&out);
};

extern const ExchangeKind pmi_exchange, pmix_exchange;

// The kind that a rendezvous names; nullptr: it names none.
const ExchangeKind *exchange_named(std::string_view rendezvous);
// The first kind that is offered, or nullptr.
const ExchangeKind *exchange_offered(const Variables &env, int32_t rank, int32_t size);

} // namespace dtrain::cluster
