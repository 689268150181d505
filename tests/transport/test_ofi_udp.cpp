// The libfabric transport over provider "udp;ofi_rxd".
// SPDX-License-Identifier: Apache-2.0
#include "ofi.h"

int main() {
    constexpr char blocked[] =
        "a write to memory that was taken back can end all traffic to that peer";
    dtrain::test::subject.library_is_slow = true;
    return dtrain::test::run_over_ofi(
        "udp;ofi_rxd", {{"a_completed_send_survives_disconnect_and_close",
                         "what is on its way moves only while both ends look after it"},
                        {"a_receive_can_be_withdrawn_at_any_stage", blocked},
                        {"a_send_can_be_withdrawn_at_any_stage", blocked}});
}
