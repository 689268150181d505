/* Plays a core of another release: opens a device of a plugin, asks all that has a struct_size, and
 * sends itself a message. usage: core PLUGIN [OPTION=VALUE ...]
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <dtrain_transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char **options;

static void must(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}
static void ok(dtrain_status_t status, const char *what) {
    if (status != DTRAIN_OK) fprintf(stderr, "status %d: ", status);
    must(status == DTRAIN_OK, what);
}

/* ---- services */

static void log_line(void *self, int32_t level, const char *line) {
    (void)self;
    if (level <= DTRAIN_LOG_WARN) fprintf(stderr, "%s\n", line);
}
static dtrain_status_t option(void *self, const char *key, char *buf, size_t len) {
    const size_t length = strlen(key);
    (void)self;
    for (char **at = options; *at != NULL; at++)
        if (strncmp(*at, key, length) == 0 && (*at)[length] == '=' && strlen(*at) - length <= len) {
            strcpy(buf, *at + length + 1);
            return DTRAIN_OK;
        }
    return DTRAIN_ERR_NOT_FOUND;
}
static dtrain_status_t fail_with(void *self, dtrain_status_t status, const char *text) {
    (void)self;
    fprintf(stderr, "%s\n", text);
    return status;
}
static int64_t now_ns(void *self) {
    struct timespec now;
    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static void random_bytes(void *self, void *buf, size_t len) {
    (void)self;
    for (size_t i = 0; i < len; i++) ((unsigned char *)buf)[i] = (unsigned char)rand();
}
static dtrain_status_t sign(void *self, const void *data, size_t len, uint8_t mac[32]) {
    (void)self, (void)data, (void)len, (void)mac;
    return DTRAIN_ERR_UNSUPPORTED;
}
static dtrain_status_t no_plugin(void *self, const char *name, const dtrain_tp_plugin_t **out) {
    (void)self, (void)name, (void)out;
    return DTRAIN_ERR_NOT_FOUND;
}
static dtrain_status_t copy(void *self, void *dst, const void *src, size_t len) {
    (void)self;
    memcpy(dst, src, len);
    return DTRAIN_OK;
}
#ifdef ADDED /* a newer core wants to hear of cards, too */
static void card(void *self, const dtrain_tp_card_t *found) {
    (void)self;
    must(found->struct_size < sizeof *found, "a card of a newer plugin than there is");
}
#endif

/* ---- what is written is no more than the struct_size says, and no more than the plugin knows */

static union {
    unsigned char bytes[sizeof(dtrain_tp_attr_t) + sizeof(dtrain_tp_counters_t) + 64];
    dtrain_tp_attr_t attr;
    dtrain_tp_counters_t counters;
} answer;

static void prepare(size_t size) {
    memset(&answer, 0xa5, sizeof answer);
    answer.attr.struct_size = (uint32_t)size;
}
static void untouched(size_t from, const char *what) {
    for (size_t i = from; i < sizeof answer.bytes; i++) must(answer.bytes[i] == 0xa5, what);
}
#ifdef ADDED
#define END(type) offsetof(type, added)
#else
#define END(type) sizeof(type)
#endif

static void message(const dtrain_tp_ops_t *ops, dtrain_tp_dev_t *dev, dtrain_tp_ep_t *ep) {
    enum { CONNECT = 1, SEND = 2, RECV = 4 };
    static char sent[100] = "hello", received[100];
    const dtrain_tp_iov_t from = {sent, sizeof sent, NULL},
                          into = {received, sizeof received, NULL};
    const int64_t end = now_ns(NULL) + INT64_C(20000000000);
    unsigned seen = 0, posted = 0;
    ok(ops->recv(dev, 5, UINT64_MAX, &into, 1, RECV), "recv");
    while (seen != (CONNECT | SEND | RECV)) {
        dtrain_tp_done_t done[8];
        if (!posted && ops->send(ep, 5, &from, 1, SEND) == DTRAIN_OK) posted = 1;
        const int32_t n = ops->progress(dev, done, 8);
        must(n >= 0, "progress");
        for (int32_t i = 0; i < n; i++) {
            ok(done[i].status, "completion");
            seen |= (unsigned)done[i].cookie;
        }
        must(now_ns(NULL) < end, "no message within 20 seconds");
    }
    must(memcmp(sent, received, sizeof sent) == 0, "the message");
}

int main(int argc, char **argv) {
    must(argc >= 2, "usage: core PLUGIN [OPTION=VALUE ...]");
    options = argv + 2;
    void *handle = dlopen(argv[1], RTLD_NOW);
    must(handle != NULL, "dlopen");
    const dtrain_tp_plugin_t *(*query)(uint32_t);
    *(void **)&query = dlsym(handle, "dtrain_transport_query");
    must(query != NULL, "dtrain_transport_query");
    /* Of an ABI that is not its own a plugin answers with that, so that it can be named. */
    must(query(DTRAIN_TP_ABI - 1)->abi == DTRAIN_TP_ABI, "asked for an older ABI");
    must(query(DTRAIN_TP_ABI + 1)->abi == DTRAIN_TP_ABI, "asked for a newer ABI");
    const dtrain_tp_ops_t *ops = query(DTRAIN_TP_ABI)->ops;

    dtrain_tp_host_t host = {.struct_size = sizeof host,
                             .abi = DTRAIN_TP_ABI,
                             .log = log_line,
                             .option = option,
                             .fail = fail_with,
                             .now_ns = now_ns,
                             .random = random_bytes,
                             .sign = sign,
                             .plugin = no_plugin,
#ifdef ADDED
                             .card = card,
                             .added = 1,
#endif
                             .copy = copy};
    char names[4096];
    ok(ops->list(&host, names, sizeof names), "list");
    names[strcspn(names, ",")] = 0;
    must(names[0] != 0, "no device");
    dtrain_tp_dev_t *dev;
    ok(ops->open(&host, names, &dev), "open");
    prepare(sizeof(dtrain_tp_attr_t));
    ok(ops->query(dev, &answer.attr), "query");
    untouched(END(dtrain_tp_attr_t), "query() wrote too much");
    const uint32_t length = answer.attr.address_len;
    char address[1024];
    must(length > 0 && length <= sizeof address, "address_len");
    ok(ops->address(dev, address, length), "address");
    ok(ops->reachable(dev, address, length), "reachable");
    dtrain_tp_ep_t *ep;
    ok(ops->connect(dev, address, length, 1, &ep), "connect");
    message(ops, dev, ep);
    if (DTRAIN_TP_HAS(ops, counters)) {
        prepare(sizeof(dtrain_tp_counters_t));
        ok(ops->counters(dev, &answer.counters), "counters");
        untouched(END(dtrain_tp_counters_t), "counters() wrote too much");
    }
    ops->disconnect(ep);
    ops->close(dev);
    return 0;
}
