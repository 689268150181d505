/* Plugins for accelerators that the loader refuses; a macro each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain_device.h"

#ifndef ABI
#define ABI DTRAIN_DV_ABI
#endif

/* Nothing is called before the table has been checked. */
static dtrain_status_t list(const dtrain_dv_host_t *host, char *names, size_t len) {
    (void)host, (void)names, (void)len;
    return DTRAIN_ERR_INTERNAL;
}

static const dtrain_dv_ops_t ops = {.struct_size = sizeof ops, .list = list};
static const dtrain_dv_plugin_t plugin = {
    .struct_size = sizeof plugin, .abi = ABI, .name = NAME, .version = "1", .ops = &ops};

DTRAIN_API const dtrain_dv_plugin_t *dtrain_device_query(uint32_t core_abi) {
    (void)core_abi;
    return &plugin;
}
