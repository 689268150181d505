/* The transport "queue": devices of one process that exchange messages through queues in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain_transport.h>
#include <pthread.h>
#include <stdlib.h>

#define MAX_MESSAGE ((uint64_t)1 << 30)
#define MAX_EAGER   ((uint64_t)64 << 10) /* longer messages stay with the sender until received */
#define MAX_KEPT    ((uint64_t)4 << 20)  /* bytes a device keeps of what nobody waits for yet */
#define MAX_IOV     8u

/* One type serves for what waits (a receive, a message) and what is to be reported: completing an
 * operation allocates nothing, so that it cannot fail. */
struct item {
    struct item *next;
    dtrain_tp_done_t done;
    uint64_t mask;      /* of a receive */
    dtrain_tp_ep_t *ep; /* of a message whose bytes are still the sender's; else NULL */
    uint32_t n;
    dtrain_tp_iov_t iov[MAX_IOV];
    unsigned char data[]; /* of a message that was copied */
};
struct list {
    struct item *head, **tail;
};
struct dtrain_tp_dev {
    dtrain_tp_dev_t *next;
    const dtrain_tp_host_t *host;
    uint64_t id, kept_bytes;
    struct list receives, kept, done;
};
struct dtrain_tp_ep {
    dtrain_tp_dev_t *dev;
    uint64_t peer; /* an id, since the peer may close its device */
};
struct address {
    uint64_t process, device;
};

/* Devices reach into each other, and each may run in a thread of its own. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dtrain_tp_dev_t *devices;
static struct address last; /* a random number for this process; the newest device */

static void list_init(struct list *list) {
    list->head = NULL;
    list->tail = &list->head;
}
static void list_push(struct list *list, struct item *item) {
    item->next = NULL;
    *list->tail = item;
    list->tail = &item->next;
}
/* `at` is what points to the item. */
static struct item *list_take(struct list *list, struct item **at) {
    struct item *item = *at;
    *at = item->next;
    if (list->tail == &item->next) list->tail = at;
    return item;
}
static void list_clear(struct list *list) {
    while (list->head != NULL) free(list_take(list, &list->head));
}

static dtrain_tp_dev_t *find(uint64_t id) {
    dtrain_tp_dev_t *dev = devices;
    while (dev != NULL && dev->id != id) dev = dev->next;
    return dev;
}

static dtrain_status_t refuse(dtrain_tp_dev_t *dev, dtrain_status_t status, const char *text) {
    return dev->host->fail(dev->host->self, status, text);
}

static int matches(const struct item *item, uint64_t tag, uint64_t mask) {
    return ((item->done.tag ^ tag) & mask) == 0;
}

/* The whole length, or more than MAX_MESSAGE when the pieces are not acceptable. */
static uint64_t length_of(const dtrain_tp_iov_t *iov, uint32_t n) {
    uint64_t length = 0;
    if (n > MAX_IOV) return UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        if (iov[i].len > MAX_MESSAGE) return UINT64_MAX;
        length += iov[i].len; /* at most MAX_IOV * MAX_MESSAGE: no overflow */
    }
    return length;
}

/* A message is done with: its sender learns, or its copy goes. */
static void finish(struct item *message, dtrain_status_t status) {
    if (message->ep == NULL) {
        free(message);
        return;
    }
    message->done.status = status;
    list_push(&message->ep->dev->done, message);
}

static void deliver(dtrain_tp_dev_t *dev, struct item *receive, struct item *message) {
    uint64_t from = 0, into = 0; /* offsets in the pieces i and k */
    uint32_t i = 0, k = 0;
    while (i < message->n && k < receive->n) {
        uint64_t left = message->iov[i].len - from, room = receive->iov[k].len - into;
        uint64_t part = left < room ? left : room;
        if (part > 0)
            memcpy((char *)receive->iov[k].addr + into, (char *)message->iov[i].addr + from, part);
        from += part;
        into += part;
        if (from == message->iov[i].len) i++, from = 0;
        if (k < receive->n && into == receive->iov[k].len) k++, into = 0;
    }
    receive->done.status = message->done.bytes > length_of(receive->iov, receive->n)
                               ? DTRAIN_ERR_TRUNCATED
                               : DTRAIN_OK;
    receive->done.bytes = message->done.bytes;
    receive->done.tag = message->done.tag;
    list_push(&dev->done, receive);
    finish(message, DTRAIN_OK);
}

/* Finishes kept messages with that tag and, unless it is NULL, of that endpoint. */
static void drop(dtrain_tp_dev_t *dev, uint64_t tag, uint64_t mask, const dtrain_tp_ep_t *ep,
                 dtrain_status_t status) {
    for (struct item **at = &dev->kept.head; *at != NULL;) {
        if (!matches(*at, tag, mask) || (ep != NULL && (*at)->ep != ep)) {
            at = &(*at)->next;
            continue;
        }
        if ((*at)->ep == NULL) dev->kept_bytes -= (*at)->done.bytes;
        finish(list_take(&dev->kept, at), status);
    }
}

/* ---- devices ----------------------------------------------------------------------------------
 */

static dtrain_status_t list_devices(const dtrain_tp_host_t *host, char *names, size_t len) {
    if (len < sizeof "queue") return host->fail(host->self, DTRAIN_ERR_TRUNCATED, "queue: list");
    memcpy(names, "queue", sizeof "queue");
    return DTRAIN_OK;
}

static dtrain_status_t open_device(const dtrain_tp_host_t *host, const char *name,
                                   dtrain_tp_dev_t **dev_p) {
    if (strcmp(name, "queue") != 0)
        return host->fail(host->self, DTRAIN_ERR_NOT_FOUND, "queue: no such device");
    dtrain_tp_dev_t *dev = calloc(1, sizeof *dev);
    if (dev == NULL) return host->fail(host->self, DTRAIN_ERR_NO_MEMORY, "queue: no memory");
    dev->host = host;
    list_init(&dev->receives);
    list_init(&dev->kept);
    list_init(&dev->done);
    pthread_mutex_lock(&lock);
    if (last.device == 0) host->random(host->self, &last.process, sizeof last.process);
    dev->id = ++last.device;
    dev->next = devices;
    devices = dev;
    pthread_mutex_unlock(&lock);
    *dev_p = dev;
    return DTRAIN_OK;
}

static void close_device(dtrain_tp_dev_t *dev) {
    pthread_mutex_lock(&lock);
    dtrain_tp_dev_t **at = &devices;
    while (*at != dev) at = &(*at)->next;
    *at = dev->next;
    drop(dev, 0, 0, NULL, DTRAIN_ERR_PEER);
    pthread_mutex_unlock(&lock);
    list_clear(&dev->receives);
    list_clear(&dev->done);
    free(dev);
}

static dtrain_status_t query(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr) {
    (void)dev;
    dtrain_tp_attr_t full = {.struct_size = attr->struct_size,
                             .max_iov = MAX_IOV,
                             .max_message = MAX_MESSAGE,
                             .eager_limit = MAX_EAGER,
                             .address_len = sizeof(struct address),
                             .numa_node = -1};
    memcpy(attr, &full, attr->struct_size < sizeof full ? attr->struct_size : sizeof full);
    return DTRAIN_OK;
}

static dtrain_status_t address(dtrain_tp_dev_t *dev, void *buf, size_t len) {
    struct address own = {last.process, dev->id};
    if (len < sizeof own) return refuse(dev, DTRAIN_ERR_TRUNCATED, "queue: address");
    memcpy(buf, &own, sizeof own);
    return DTRAIN_OK;
}

static dtrain_status_t reachable(dtrain_tp_dev_t *dev, const void *to, size_t len) {
    struct address peer;
    if (len != sizeof peer) return refuse(dev, DTRAIN_ERR_INVALID, "queue: not an address");
    memcpy(&peer, to, sizeof peer);
    return peer.process == last.process
               ? DTRAIN_OK
               : refuse(dev, DTRAIN_ERR_UNSUPPORTED, "queue: the peer is in another process");
}

/* ---- endpoints --------------------------------------------------------------------------------
 */

static dtrain_status_t connect_to(dtrain_tp_dev_t *dev, const void *to, size_t len, uint64_t cookie,
                                  dtrain_tp_ep_t **ep_p) {
    dtrain_status_t status = reachable(dev, to, len);
    if (status != DTRAIN_OK) return status;
    struct item *item = calloc(1, sizeof *item);
    dtrain_tp_ep_t *ep = malloc(sizeof *ep);
    if (item == NULL || ep == NULL) {
        free(item);
        free(ep);
        return refuse(dev, DTRAIN_ERR_NO_MEMORY, "queue: no memory");
    }
    struct address peer;
    memcpy(&peer, to, sizeof peer);
    *ep = (dtrain_tp_ep_t){dev, peer.device};
    pthread_mutex_lock(&lock);
    item->done.cookie = cookie;
    item->done.kind = DTRAIN_TP_CONNECT;
    item->done.status = find(ep->peer) != NULL ? DTRAIN_OK : DTRAIN_ERR_PEER;
    list_push(&dev->done, item);
    pthread_mutex_unlock(&lock);
    *ep_p = ep;
    return DTRAIN_OK;
}

static void disconnect(dtrain_tp_ep_t *ep) {
    pthread_mutex_lock(&lock);
    dtrain_tp_dev_t *peer = find(ep->peer);
    if (peer != NULL) drop(peer, 0, 0, ep, DTRAIN_ERR_CANCELED);
    pthread_mutex_unlock(&lock);
    free(ep);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

/* NULL when there is no room, or no memory: then the bytes stay with the sender. */
static struct item *copy_of(const dtrain_tp_dev_t *peer, const struct item *message) {
    uint64_t length = message->done.bytes, at = 0;
    if (length > MAX_EAGER || peer->kept_bytes + length > MAX_KEPT) return NULL;
    struct item *copy = calloc(1, sizeof *copy + length);
    if (copy == NULL) return NULL;
    copy->done = message->done;
    copy->iov[0] = (dtrain_tp_iov_t){copy->data, length, NULL};
    copy->n = 1;
    for (uint32_t i = 0; i < message->n; at += message->iov[i++].len)
        if (message->iov[i].len > 0)
            memcpy(copy->data + at, message->iov[i].addr, message->iov[i].len);
    return copy;
}

/* A send or a receive that is not yet anywhere; NULL when it is refused. */
static struct item *make(dtrain_tp_dev_t *dev, dtrain_tp_done_t done, const dtrain_tp_iov_t *iov,
                         uint32_t n, dtrain_status_t *status) {
    struct item *item = NULL;
    done.bytes = length_of(iov, n);
    if (done.bytes > MAX_MESSAGE)
        *status = refuse(dev, DTRAIN_ERR_INVALID, "queue: bad list of pieces");
    else if ((item = calloc(1, sizeof *item)) == NULL)
        *status = refuse(dev, DTRAIN_ERR_NO_MEMORY, "queue: no memory");
    if (item == NULL) return NULL;
    item->done = done;
    item->n = n;
    if (n > 0) memcpy(item->iov, iov, n * sizeof *iov);
    return item;
}

static dtrain_status_t send_to(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov,
                               uint32_t n, uint64_t cookie) {
    dtrain_status_t status = DTRAIN_OK;
    dtrain_tp_done_t done = {.cookie = cookie, .tag = tag, .kind = DTRAIN_TP_SEND};
    struct item *message = make(ep->dev, done, iov, n, &status), *copy;
    if (message == NULL) return status;
    message->ep = ep;
    pthread_mutex_lock(&lock);
    dtrain_tp_dev_t *peer = find(ep->peer);
    struct item **at = peer != NULL ? &peer->receives.head : NULL;
    while (at != NULL && *at != NULL && !matches(*at, tag, (*at)->mask)) at = &(*at)->next;
    if (peer == NULL) {
        finish(message, DTRAIN_ERR_PEER);
    } else if (*at != NULL) {
        deliver(peer, list_take(&peer->receives, at), message);
    } else if ((copy = copy_of(peer, message)) != NULL) {
        peer->kept_bytes += copy->done.bytes;
        list_push(&peer->kept, copy);
        finish(message, DTRAIN_OK);
    } else {
        list_push(&peer->kept, message);
    }
    pthread_mutex_unlock(&lock);
    return DTRAIN_OK;
}

static dtrain_status_t receive(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                               const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie) {
    dtrain_status_t status = DTRAIN_OK;
    dtrain_tp_done_t done = {.cookie = cookie, .tag = wanted, .kind = DTRAIN_TP_RECV};
    struct item *item = make(dev, done, iov, n, &status);
    if (item == NULL) return status;
    item->mask = mask;
    pthread_mutex_lock(&lock);
    struct item **at = &dev->kept.head;
    while (*at != NULL && !matches(*at, wanted, mask)) at = &(*at)->next;
    if (*at != NULL) {
        if ((*at)->ep == NULL) dev->kept_bytes -= (*at)->done.bytes;
        deliver(dev, item, list_take(&dev->kept, at));
    } else {
        list_push(&dev->receives, item);
    }
    pthread_mutex_unlock(&lock);
    return DTRAIN_OK;
}

static void cancel(dtrain_tp_dev_t *dev, uint64_t cookie) {
    pthread_mutex_lock(&lock);
    struct item **at = &dev->receives.head;
    while (*at != NULL && (*at)->done.cookie != cookie) at = &(*at)->next;
    if (*at != NULL) {
        (*at)->done.status = DTRAIN_ERR_CANCELED;
        list_push(&dev->done, list_take(&dev->receives, at));
    }
    pthread_mutex_unlock(&lock);
}

static void purge(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask) {
    pthread_mutex_lock(&lock);
    drop(dev, wanted, mask, NULL, DTRAIN_OK);
    pthread_mutex_unlock(&lock);
}

static int32_t progress(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max) {
    uint32_t n = 0;
    pthread_mutex_lock(&lock);
    for (; n < max && dev->done.head != NULL; n++) {
        done[n] = dev->done.head->done;
        free(list_take(&dev->done, &dev->done.head));
    }
    pthread_mutex_unlock(&lock);
    return (int32_t)n;
}

static const dtrain_tp_ops_t ops = {
    .struct_size = sizeof ops,
    .list = list_devices,
    .open = open_device,
    .close = close_device,
    .query = query,
    .address = address,
    .reachable = reachable,
    .connect = connect_to,
    .disconnect = disconnect,
    .send = send_to,
    .recv = receive,
    .cancel = cancel,
    .purge = purge,
    .progress = progress,
};
static const dtrain_tp_plugin_t plugin = {
    .struct_size = sizeof plugin,
    .abi = DTRAIN_TP_ABI,
    .name = "queue",
    .version = "0.1.0",
    .ops = &ops,
};

const dtrain_tp_plugin_t *dtrain_transport_query(uint32_t core_abi) {
    (void)core_abi;
    return &plugin;
}
