// Checks a call and chooses its way.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/ways.h"

#include "collectives/communicator/wide_average.h"
#include "collectives/window/window_allreduce.h"
#include "collectives/window/window_exchange.h"
#include "collectives/window/window_transfer.h"

namespace dtrain::collectives {

Status Ways::prepare_anew(const Call &call, Prepared &p) const {
    p.is_valid = false;
    p.plan.reset();
    if (Status s = check_call(call, int32_t(ranks_.rank), ranks_.size(), p.spec); s != DTRAIN_OK)
        return s;
    p.call = call;
    p.record = record_of(call, ranks_.size());
    p.result_bytes = output_bytes(p.spec);
    p.is_valid = !call.ragged; // counts may change behind the pointer
    p.way =
        needs_wide_sums(p.spec, call.dtype) ? Prepared::Way::wide_average : Prepared::Way::schedule;
    bool by_messages =
        call.kind == Kind::allreduce && (limits_.allreduce_by_messages || p.spec.adasum);
    if (!memory_.is_used() || by_messages) return DTRAIN_OK;
    const Window &window = *memory_.window();
    if (WindowExchange::suits(p.spec, call.ragged, window, limits_.exchange_bytes)) {
        p.way = Prepared::Way::exchange;
        p.block_bytes = WindowExchange::block_bytes(p.spec);
        p.blocks = 1;
    } else if (WindowAllreduce::suits(p.spec)) {
        p.way = Prepared::Way::allreduce;
        p.block_bytes = WindowAllreduce::block_bytes(p.spec, window);
        p.blocks = WindowAllreduce::blocks(p.spec, window);
    } else if (WindowTransfer::suits(p.spec, call.ragged)) {
        p.way = Prepared::Way::transfer;
        p.block_bytes = WindowTransfer::block_bytes(p.spec, window);
        p.blocks = WindowTransfer::blocks(p.spec, window);
    }
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
