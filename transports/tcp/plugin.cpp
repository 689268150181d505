// The table of the TCP transport.
// SPDX-License-Identifier: Apache-2.0
#include "common/operations.h"
#include "tcp/device.h"

namespace dtrain::tcp {
namespace {

constexpr dtrain_tp_ops_t ops = tp::Operations<Device>::table();

} // namespace
} // namespace dtrain::tcp

extern "C" {
extern const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;
const dtrain_tp_plugin_t dtrain_tp_plugin_tcp{sizeof(dtrain_tp_plugin_t), DTRAIN_TP_ABI, "tcp",
                                              "0.1.0", &dtrain::tcp::ops};
}
