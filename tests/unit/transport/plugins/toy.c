/* A plugin that can be opened and asked, no more. Macros spoil its tables at compile time, option
 * plugin.toy.spoil what it says of its device at run time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain_transport.h"

#include <signal.h>
#include <stdlib.h>

#ifndef ABI
#define ABI DTRAIN_TP_ABI
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(dtrain_tp_plugin_t)
#endif
#ifndef OPS_SIZE /* as of a plugin from before event_fd() was added; 0: no operations */
#define OPS_SIZE offsetof(dtrain_tp_ops_t, event_fd)
#endif

struct dtrain_tp_dev {
    const dtrain_tp_host_t *host;
    char spoil[16];
};

static int is(const char *option, const char *value) { return strcmp(option, value) == 0; }

static dtrain_status_t list(const dtrain_tp_host_t *host, char *names, size_t len) {
    char spoil[16] = "";
    (void)host->option(host->self, "plugin.toy.spoil", spoil, sizeof spoil);
    const char *text = is(spoil, "list") ? "" : "first,second";
    if (len <= strlen(text)) return DTRAIN_ERR_TRUNCATED;
    strcpy(names, text);
    return DTRAIN_OK;
}

static dtrain_status_t dev_open(const dtrain_tp_host_t *host, const char *name,
                                dtrain_tp_dev_t **dev_p) {
    if (!is(name, "first") && !is(name, "second")) return DTRAIN_ERR_NOT_FOUND;
    dtrain_tp_dev_t *dev = calloc(1, sizeof *dev);
    if (dev == NULL) return DTRAIN_ERR_NO_MEMORY;
    dev->host = host;
    (void)host->option(host->self, "plugin.toy.spoil", dev->spoil, sizeof dev->spoil);
    if (is(dev->spoil, "open") || is(dev->spoil, "open_text")) {
        int with_text = is(dev->spoil, "open_text");
        free(dev);
        return with_text ? host->fail(host->self, DTRAIN_ERR_IO, "the toy is broken")
                         : DTRAIN_ERR_IO;
    }
    *dev_p = dev;
    return DTRAIN_OK;
}

static void dev_close(dtrain_tp_dev_t *dev) {
    dev->host->log(dev->host->self, DTRAIN_LOG_ERROR, "closed");
    free(dev);
}

static dtrain_status_t query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
    const char *spoil = dev->spoil;
    if (is(spoil, "query")) return DTRAIN_ERR_IO;
    attr->max_iov = is(spoil, "max_iov") ? 0 : 4;
    attr->max_message = is(spoil, "max_message") ? 0 : 1 << 20;
    attr->address_len = is(spoil, "no_address") ? 0 : is(spoil, "long_address") ? 513 : 8;
    attr->rkey_len = is(spoil, "rkey") ? 1u << 31 : 0;
    attr->window_handle_len = is(spoil, "handle") ? 513 : 0;
    if (is(spoil, "put")) attr->caps = DTRAIN_TP_CAP_PUT;
    if (is(spoil, "get")) attr->caps = DTRAIN_TP_CAP_GET;
    if (is(spoil, "window")) attr->caps = DTRAIN_TP_CAP_WINDOW;
    if (is(spoil, "event_fd")) attr->caps = DTRAIN_TP_CAP_EVENT_FD;
    if (is(spoil, "dmabuf")) attr->caps = DTRAIN_TP_CAP_DMABUF;
    return DTRAIN_OK;
}

static dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    if (is(dev->spoil, "address")) return DTRAIN_ERR_IO;
    memset(buf, 0x5a, len);
    return DTRAIN_OK;
}

static dtrain_status_t reachable(dtrain_tp_dev_t *dev, const void *to, size_t len) {
    (void)dev, (void)to, (void)len;
    return DTRAIN_ERR_UNSUPPORTED;
}

static dtrain_status_t connect_to(dtrain_tp_dev_t *dev, const void *to, size_t len, uint64_t cookie,
                                  dtrain_tp_ep_t **ep_p) {
    (void)dev, (void)to, (void)len, (void)cookie, (void)ep_p;
    return DTRAIN_ERR_UNSUPPORTED;
}

static void disconnect(dtrain_tp_ep_t *ep) { (void)ep; }

static dtrain_status_t send_to(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov,
                               uint32_t n, uint64_t cookie) {
    (void)ep, (void)tag, (void)iov, (void)n, (void)cookie;
    return DTRAIN_ERR_UNSUPPORTED;
}

static dtrain_status_t receive(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                               const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    (void)dev, (void)wanted, (void)mask, (void)iov, (void)n, (void)cookie;
    return DTRAIN_ERR_UNSUPPORTED;
}

#ifndef NO_CANCEL
static void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) { (void)dev, (void)cookie; }
#endif

static void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
    (void)dev, (void)wanted, (void)mask;
}

static int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    (void)dev, (void)done, (void)max;
    return 0;
}

static const dtrain_tp_ops_t ops = {
    .struct_size = OPS_SIZE,
    .list = list,
    .open = dev_open,
    .close = dev_close,
    .query = query,
    .address = address,
    .reachable = reachable,
    .connect = connect_to,
    .disconnect = disconnect,
    .send = send_to,
    .recv = receive,
#ifndef NO_CANCEL
    .cancel = cancel,
#endif
    .purge = purge,
    .progress = progress,
};

static const dtrain_tp_plugin_t plugin = {
    .struct_size = TABLE_SIZE,
    .abi = ABI,
#ifdef OTHER_NAME
    .name = OTHER_NAME,
#else
    .name = NAME,
#endif
    .version = "0.0.1",
    .ops = OPS_SIZE == 0 ? NULL : &ops,
};

#ifdef CATCH_SIGNALS
static void caught(int number) { (void)number; }
__attribute__((constructor)) static void loaded(void) {
    signal(SIGTERM, caught);
    signal(SIGSEGV, caught);
}
#endif

const dtrain_tp_plugin_t *dtrain_transport_query(uint32_t core_abi) {
    (void)core_abi;
#ifdef NO_TABLE
    (void)plugin;
    return NULL;
#else
    return &plugin;
#endif
}
