// Tells other ranks of a communicator that will not be made.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/unmade.h"

#include "cluster/host/names.h"

#include <new>

namespace dtrain::collectives {

void Unmade::tell() noexcept {
    const KeptErrorText kept;
    try {
        const auto self = int32_t(session_.self());
        const std::string text = cluster::member_name(self, int32_t(session_.workers())) +
                                 " of the job could not make this communicator: " + error_text();
        (void)session_.job().abort(uid_, ids_, text);
    } catch (const std::bad_alloc &) { // they wait until their time is over
    }
}

} // namespace dtrain::collectives
