// Posts calls that may work on their buffers on an accelerator, or on copies of these.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/communicator.h"
#include "engine/landing.h"

namespace dtrain::collectives {

Status Communicator::post_undecided(const Call &call, const CallOptions &options) {
    Turn turn = order_.begin();
    Prepared &prepared = ways_.last(turn);
    if (Status s = ways_.prepare(turn, call, prepared); s != DTRAIN_OK) return s;
    return post_undecided(prepared, options, turn);
}

Status Communicator::post_undecided(Prepared &prepared, const CallOptions &options) {
    Turn turn = order_.begin();
    return post_undecided(prepared, options, turn);
}

Status Communicator::post_undecided(Prepared &prepared, const CallOptions &options, Turn &turn) {
    engine::Landing *const landing = options.request->landing;
    const bool decides = prepared.way == Way::allreduce || prepared.way == Way::transfer;
    bool gated = true;
    if (decides) memory_.peers().accelerators.import_wanted(*landing->undecided()->domain);
    if (Status s = decides ? landing->begin_to_decide(gated) : landing->use_copies();
        s != DTRAIN_OK)
        return s;
    if (gated) options.request->gate = landing;
    return post_prepared(prepared, options, turn);
}

} // namespace dtrain::collectives
