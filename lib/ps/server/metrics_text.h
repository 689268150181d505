// Formats a server's counters in the text format of Prometheus.
// SPDX-License-Identifier: Apache-2.0
//
// Source: prometheus.io/docs/instrumenting/exposition_formats, "Text-based format".
#pragma once
#include "ps/server/peer_memory.h"
#include "ps/table/counters.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

struct TableReport {
    std::string name;
    uint64_t bytes = 0, device_bytes = 0, updates = 0;
    std::vector<Counters> workers; // by worker
};

struct ServerReport {
    std::vector<TableReport> tables;
    std::vector<PeerMemory> peers; // by worker
};

std::string metrics_text(uint32_t server, const ServerReport &report);

} // namespace dtrain::ps
