// The rates and numbers of updates, of dense and sparse shards alike.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/storage.h"

#include "ps/table/rules.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dtrain::ps {

Storage::Storage(const TableParams &params, const dtrain_function_t *function)
    : params_(params), rule_(params),
      function_(function != nullptr ? std::make_unique<FunctionCall>(*function, params) : nullptr),
      segments_(is_segmented(params) ? std::make_unique<SegmentRules>(params) : nullptr),
      rate_(params), numbered_(numbers_updates(params)) {
    set_rate(params.learning_rate);
}

void Storage::set_rate(double rate) {
    rate_.set(rate);
    use_rate(rate_.of(std::max<uint64_t>(updates_, 1)));
}

void Storage::set_updates(uint64_t count) {
    updates_ = count;
    use_rate(rate_.of(std::max<uint64_t>(updates_, 1)));
}

Reason Storage::write_steps(StepCounts &steps, const Range &items, const void *numbers) {
    std::vector<uint64_t> counts(items.count); // aligned
    std::memcpy(counts.data(), numbers, items.count * sizeof counts[0]);
    if (*std::max_element(counts.begin(), counts.end()) > most_updates) return Reason::bad_steps;
    steps.write(items, counts.data());
    return Reason::none;
}

// The number is at least 1, also for a push whose first request was refused or has not come yet.
void Storage::begin_update(uint64_t number) {
    number_ = std::max<uint64_t>(number, 1);
    use_rate(rate_.of(number_));
}

void Storage::begin_clock(uint64_t clock) {
    ++updates_;
    std::optional<double> &rate = rates_[clock % open_clocks];
    if (rate.has_value()) set_rate(*rate);
    rate.reset();
    if (numbered_) begin_update(updates_);
}

void Storage::use_rate(double rate) {
    rule_.set_rate(rate);
    if (function_ != nullptr) function_->set_rate(rate);
    if (segments_ != nullptr) segments_->set_rate(rate);
}

} // namespace dtrain::ps
