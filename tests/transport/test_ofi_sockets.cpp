// The libfabric transport over provider "sockets".
// SPDX-License-Identifier: Apache-2.0
#include "ofi.h"

int main() {
    constexpr char slow[] = "each of them takes milliseconds";
    dtrain::test::subject.library_is_slow = true;
    return dtrain::test::run_over_ofi("sockets", {{"a_flood_of_empty_messages_is_bounded", slow},
                                                  {"a_flood_of_small_messages_is_bounded", slow},
                                                  {"a_flood_of_middle_messages_is_bounded", slow},
                                                  {"many_messages_are_under_way_both_ways", slow},
                                                  {"withdrawing_one_leaves_the_others",
                                                   "what is withdrawn may cost the connection"}});
}
