// SPDX-License-Identifier: Apache-2.0
#include "ps/partition.h"

#include <algorithm>

namespace dtrain::ps {

Range intersect(const Range &a, const Range &b) {
    uint64_t first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
    return end > first ? Range{first, end - first} : Range{first, 0};
}

namespace {

uint64_t unit_of(uint64_t length, uint32_t servers, uint64_t row) {
    uint64_t least = std::max<uint64_t>(row, 1), unit = (15 + least) / least * least;
    return length / servers >= unit ? unit : least;
}

} // namespace

Partition::Partition(uint64_t length, uint32_t servers, uint32_t version, uint64_t row)
    : length_(length), unit_(unit_of(length, servers, row)), servers_(servers), version_(version) {
    uint64_t units = length / unit_ + (length % unit_ != 0);
    per_server_ = units / servers;
    longer_ = units % servers;
}

uint64_t Partition::start(uint32_t server) const {
    uint64_t units = per_server_ * server + std::min<uint64_t>(server, longer_);
    return std::min(units * unit_, length_);
}

Range Partition::part(uint32_t server) const {
    uint64_t first = start(server);
    return {first, start(server + 1) - first};
}

uint32_t Partition::server_of(uint64_t element) const {
    uint64_t unit = element / unit_, in_longer = longer_ * (per_server_ + 1);
    if (unit < in_longer) return static_cast<uint32_t>(unit / (per_server_ + 1));
    return static_cast<uint32_t>(longer_ + (unit - in_longer) / per_server_);
}

} // namespace dtrain::ps
