// Compares a table with what is left of it.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/legacy.h"

#include "ps/table/table_wire.h"

namespace dtrain::ps {

bool goes_on(TableParams had, const TableParams &now) {
    had.states = now.states;
    TableParams wanted = now;
    take_mode(mode_bits(had), wanted);
    wanted.memory = had.memory;
    return first_difference(had, wanted) == field_count;
}

} // namespace dtrain::ps
