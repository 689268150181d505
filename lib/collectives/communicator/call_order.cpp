// Looks up calls that have been made.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/call_order.h"

namespace dtrain::collectives {

uint64_t CallOrder::last() {
    std::lock_guard lock(mutex_);
    return seq_;
}

std::string CallOrder::describe(uint64_t seq) const {
    const cluster::CallRecord record = records_[seq % kept];
    std::string text = record.seq == seq ? cluster::describe(record) : "collective";
    return text + " (call " + std::to_string(seq) + ")";
}

std::vector<cluster::CallRecord> CallOrder::recent(uint64_t up_to, size_t most) {
    std::vector<cluster::CallRecord> calls;
    std::lock_guard lock(mutex_);
    if (up_to == 0) up_to = seq_;
    for (uint64_t seq = up_to > most ? up_to - most + 1 : 1; seq <= up_to; seq++)
        if (records_[seq % kept].seq == seq) calls.push_back(records_[seq % kept]);
    return calls;
}

} // namespace dtrain::collectives
