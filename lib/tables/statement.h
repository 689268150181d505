// Lists what one worker wants, for the agreement of all workers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/agreement.h"
#include "ps/table/table_params.h"

#include <string_view>

namespace dtrain::tables {

// Adds the parameters in the order in which a reader would look for a difference.
void state(const ps::TableParams &params, std::string_view name, collectives::Agreement &agreement);

} // namespace dtrain::tables
