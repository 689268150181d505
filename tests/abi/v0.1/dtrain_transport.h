/* dtrain_transport.h - what a transport plugin and the core promise each other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plugin is libdtrain_transport_<name>.so. It exports one symbol, dtrain_transport_query(), and
 * links neither libdtrain nor another plugin: all it needs comes through dtrain_tp_host_t. Both
 * tables start with struct_size and grow only at the tail; a member past struct_size, or NULL, is
 * "not provided" (DTRAIN_TP_HAS). A plugin writes no more of an attr than its struct_size says.
 *
 * The model is that of tagged messages on reliable, unordered-between-tags endpoints, which
 * libfabric and UCX have natively; transports/common holds a matching engine for those that do not.
 *
 * LOCKING: the core calls a device's operations one at a time (any thread, with happens-before
 * between calls), so a plugin needs no lock. No operation blocks (close() excepted), calls back
 * into the core (host services excepted), throws, or prints. DTRAIN_ERR_BUSY means "nothing
 * happened; call again after progress()". Each operation that was accepted (DTRAIN_OK) completes
 * exactly once through progress(), with its cookie. */
#ifndef DTRAIN_TRANSPORT_H
#define DTRAIN_TRANSPORT_H
#ifndef DTRAIN_BASICS_H
#include "dtrain.h"
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define DTRAIN_TP_ABI 1u /* grows when a rule here changes; the core keeps serving older ones */
#define DTRAIN_TP_HAS(t, member)                                                                   \
    ((t)->struct_size >= offsetof(__typeof__(*(t)), member) + sizeof((t)->member) &&               \
     (t)->member != NULL)

typedef struct dtrain_tp_dev dtrain_tp_dev_t; /* plugin's own: one opened NIC, or the host       */
typedef struct dtrain_tp_ep dtrain_tp_ep_t;   /* plugin's own: the way to one peer               */
typedef struct dtrain_tp_mr dtrain_tp_mr_t;   /* plugin's own: one registration                  */
typedef struct dtrain_tp_win dtrain_tp_win_t; /* plugin's own: memory shared with other processes */
typedef struct dtrain_tp_plugin dtrain_tp_plugin_t;

/* A network card that list() has found, for people. Texts are the caller's. */
typedef struct dtrain_tp_card {
    uint32_t struct_size;
    int32_t numa_node;      /* -1: unknown                                        */
    uint64_t bandwidth_bps; /* bytes (not bits) per second; 0: unknown            */
    const char *transport;  /* "ofi"                                              */
    const char *name;       /* "mlx5_0"                                           */
    const char *address;    /* "10.0.0.4"; "": unknown                            */
    const char *state;      /* "up"                                               */
    const char *why;        /* it is used, or is not                              */
    uint32_t chosen;        /* 1: list() names it                                 */
    uint32_t reserved;
} dtrain_tp_card_t;

/* Services of the core, valid from open() until close() returns; thread-safe. */
typedef struct dtrain_tp_host {
    uint32_t struct_size;
    uint32_t abi;
    void *self; /* first argument of every service */
    void (*log)(void *self, int32_t level, const char *line);
    /* The value of an option ("tcp.interface"); DTRAIN_ERR_NOT_FOUND when there is none. Besides
     * these there is "local.address", the numeric address of this host on the way to the other
     * hosts of the job, as soon as it is known; then the device is asked for its address again.
     * What the environment tells before that: "route.address", the address that packets to the
     * rendezvous leave by; "local.rank" and "local.size", which of how many ranks of this host. */
    dtrain_status_t (*option)(void *self, const char *key, char *buf, size_t len);
    /* Keeps msg as the text of the call that fails now; returns status. */
    dtrain_status_t (*fail)(void *self, dtrain_status_t status, const char *msg);
    int64_t (*now_ns)(void *self); /* monotonic; virtual in a simulation */
    void (*random)(void *self, void *buf, size_t len);
    /* HMAC-SHA256 of data under the job's secret, for a handshake of the plugin's own;
     * DTRAIN_ERR_UNSUPPORTED when the job has no secret (then no handshake is asked for). */
    dtrain_status_t (*sign)(void *self, const void *data, size_t len, uint8_t mac[32]);
    /* The table of another transport, for wrappers. */
    dtrain_status_t (*plugin)(void *self, const char *name, const dtrain_tp_plugin_t **plugin_p);
    /* Copy that may touch device memory. */
    dtrain_status_t (*copy)(void *self, void *dst, const void *src, size_t len);
    /* Tells what list() has found, and what it chose; logged and shown by dtrain-info. */
    void (*card)(void *self, const dtrain_tp_card_t *card);
} dtrain_tp_host_t;

/* Capabilities choose the protocol; the core never asks for a transport by name. */
enum {
    DTRAIN_TP_CAP_PUT = 1 << 0,       /* put() to registered remote memory                     */
    DTRAIN_TP_CAP_GET = 1 << 1,       /* get() from registered remote memory                   */
    DTRAIN_TP_CAP_WINDOW = 1 << 2,    /* memory that all members load and store                */
    DTRAIN_TP_CAP_EVENT_FD = 1 << 3,  /* event_fd() and arm()                                  */
    DTRAIN_TP_CAP_PEER_LOST = 1 << 4, /* reports DTRAIN_TP_PEER_LOST by itself                 */
    DTRAIN_TP_CAP_CUDA = 1 << 5,      /* addresses may be GPU memory                           */
    DTRAIN_TP_CAP_DMABUF = 1 << 6     /* mr_reg() takes DTRAIN_MEM_DMABUF                      */
};
typedef struct dtrain_tp_attr { /* filled by query(); struct_size set by the core */
    uint32_t struct_size;
    uint32_t max_iov;       /* pieces per message, >= 1                               */
    uint64_t caps;          /* DTRAIN_TP_CAP_*                                        */
    uint64_t max_message;   /* bytes of one message                                   */
    uint64_t eager_limit;   /* up to here, at most, a send completes without its receiver */
    uint64_t latency_ns;    /* one way, smallest message; a model, 0: unknown          */
    uint64_t bandwidth_bps; /* bytes (not bits) per second; a model, 0: unknown        */
    uint32_t address_len;   /* bytes of address()                                      */
    uint32_t rkey_len;      /* bytes of mr_rkey()                                      */
    uint32_t window_handle_len;
    int32_t numa_node; /* -1: unknown                                             */
    /* The same between two hosts, where that is slower than inside of one; 0: it is not.   */
    uint64_t remote_latency_ns;
    uint64_t remote_bandwidth_bps;
} dtrain_tp_attr_t;

typedef struct dtrain_tp_iov {
    void *addr;
    uint64_t len;
    dtrain_tp_mr_t *mr; /* NULL: not registered */
} dtrain_tp_iov_t;

typedef struct dtrain_tp_counters { /* filled by counters(); struct_size set by the core */
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t copied;   /* bytes of messages, puts and gets that the plugin has copied         */
    uint64_t in_place; /* and those that the network took from, or brought to, the caller's
                          memory: nothing of this process has touched them                   */
    uint64_t registrations; /* that it made for single operations, for want of the caller's     */
    /* Of the caller's memory, now: by mr_reg(), and what the plugin keeps for operations to come.
     */
    uint64_t registered, registered_bytes;
    uint64_t kept, kept_bytes;
    uint64_t hits;      /* pieces of operations that were in what is kept                       */
    uint64_t evictions; /* of what was kept: for want of room, or because memory has changed    */
} dtrain_tp_counters_t;

enum {
    DTRAIN_TP_SEND = 1, /* the buffer may be used again                                         */
    DTRAIN_TP_RECV = 2, /* bytes and tag tell what came; DTRAIN_ERR_TRUNCATED: bytes is what was
                           sent, the buffer holds its beginning                                 */
    DTRAIN_TP_PUT = 3,
    DTRAIN_TP_GET = 4,
    DTRAIN_TP_CONNECT = 5,    /* cookie of connect(); status tells whether it worked             */
    DTRAIN_TP_PEER_LOST = 6,  /* cookie of connect(); its pending operations complete, too       */
    DTRAIN_TP_PUT_ARRIVED = 7 /* somebody's put() with an immediate: imm, never 0               */
};
typedef struct dtrain_tp_done { /* 48 bytes, frozen */
    uint64_t cookie;
    uint64_t bytes;
    uint64_t tag;
    uint64_t imm;
    dtrain_status_t status;
    uint32_t kind; /* DTRAIN_TP_SEND, ... */
    uint64_t reserved;
} dtrain_tp_done_t;

typedef struct dtrain_tp_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* Comma-separated device names that open() takes; "" when there is nothing to use here. */
    dtrain_status_t (*list)(const dtrain_tp_host_t *host, char *names, size_t len);
    dtrain_status_t (*open)(const dtrain_tp_host_t *host, const char *name,
                            dtrain_tp_dev_t **dev_p);
    /* Everything made from dev is gone before. May block for 200 ms at most, so that what completed
     * sends left behind still gets to its peers (tcp: until it is acknowledged). */
    void (*close)(dtrain_tp_dev_t *dev);
    dtrain_status_t (*query)(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr);
    /* Writes attr.address_len bytes that a peer's connect() takes. */
    dtrain_status_t (*address)(dtrain_tp_dev_t *dev, void *buf, size_t len);
    /* DTRAIN_OK when that address can be connected to from here (same host, same fabric);
     * a guess from the address alone, without traffic. Addresses come from peers: check them. */
    dtrain_status_t (*reachable)(dtrain_tp_dev_t *dev, const void *address, size_t len);
    /* Starts connecting; sends may follow at once and go out when it is up. Connecting to the
     * own address works. */
    dtrain_status_t (*connect)(dtrain_tp_dev_t *dev, const void *address, size_t len,
                               uint64_t cookie, dtrain_tp_ep_t **ep_p);
    /* Pending operations on ep complete with DTRAIN_ERR_CANCELED, at the latest when close()
     * returns; until they do the network may still reach their memory. A send that was accepted and
     * whose completion was reported before still reaches the peer. */
    void (*disconnect)(dtrain_tp_ep_t *ep);
    /* Registration, for put and get and for zero-copy. NULL where nothing needs it. */
    dtrain_status_t (*mr_reg)(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem,
                              dtrain_tp_mr_t **mr_p);
    void (*mr_dereg)(dtrain_tp_mr_t *mr);
    dtrain_status_t (*mr_rkey)(dtrain_tp_mr_t *mr, void *buf, size_t len);
    /* Messages of one (endpoint, tag) arrive in order; others may overtake. iov is copied, what
     * it points to is not. */
    dtrain_status_t (*send)(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov,
                            uint32_t n, uint64_t cookie);
    /* The next message, from any peer, whose (tag & mask) == (wanted & mask). Receives match in
     * the order in which they were posted. Messages that nobody waits for are kept up to a bound,
     * beyond which their senders are held back; small control messages never deadlock. */
    dtrain_status_t (*recv)(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                            const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie);
    /* Asks the recv with this cookie to complete with DTRAIN_ERR_CANCELED; nothing when it has
     * already matched (it then completes as usual). */
    void (*cancel)(dtrain_tp_dev_t *dev, uint64_t cookie);
    /* Forgets kept messages whose (tag & mask) == (wanted & mask). */
    void (*purge)(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask);
    /* remote_addr: in the peer's memory that rkey is of. imm: what the peer's DTRAIN_TP_PUT_ARRIVED
     * tells, once the bytes are there; 0: no immediate, the peer is told nothing. */
    dtrain_status_t (*put)(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                           uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie);
    dtrain_status_t (*get)(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                           uint64_t remote_addr, const void *rkey, uint64_t cookie);
    /* Moves bytes and writes up to max completions; returns their number, or < 0 when the device
     * itself is broken. */
    int32_t (*progress)(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max);
    /* Readable when progress() has work, provided that arm() returned DTRAIN_OK since the last
     * progress(). Belongs to the device. arm() returns DTRAIN_ERR_BUSY when there is work now. */
    int32_t (*event_fd)(dtrain_tp_dev_t *dev);
    dtrain_status_t (*arm)(dtrain_tp_dev_t *dev);
    /* Windows: zeroed memory that `members` processes of one host load and store. The creator
     * passes `handle` on; each other member attaches through an endpoint to the creator's device,
     * calling again after progress() while it returns DTRAIN_ERR_BUSY. member is the caller's
     * number, creator included. */
    dtrain_status_t (*window_create)(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members,
                                     uint32_t member, void *handle, dtrain_tp_win_t **win_p);
    dtrain_status_t (*window_attach)(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator,
                                     const void *handle, uint64_t bytes, uint32_t members,
                                     uint32_t member, dtrain_tp_win_t **win_p);
    void *(*window_address)(dtrain_tp_win_t *win); /* page-aligned */
    /* Call after storing something that another member may sleep for: wakes the members whose
     * device is armed. Cheap (a fence and a few loads) when nobody sleeps. The only operation
     * that may run at the same time as others of its device. */
    void (*window_ring)(dtrain_tp_win_t *win);
    void (*window_free)(dtrain_tp_win_t *win); /* local; others keep their mapping */
    /* Bytes of messages that progress() has moved so far, in and out: while they grow nobody falls
     * asleep, although nothing completes. NULL: only completions tell. */
    uint64_t (*moved)(dtrain_tp_dev_t *dev);
    /* What it has done with bytes since it was opened. NULL: it does not count. */
    dtrain_status_t (*counters)(dtrain_tp_dev_t *dev, dtrain_tp_counters_t *counters);
    /* For people, when no connection to that address can be made: from where to where it was tried,
     * and which option chooses otherwise, as in "from 10.0.0.4 (eth0) to 10.0.1.9 ...". NULL:
     * there is nothing to tell. */
    dtrain_status_t (*route)(dtrain_tp_dev_t *dev, const void *address, size_t len, char *text,
                             size_t text_len);
    /* From now on messages of more bytes wait for their receiver. More than attr.eager_limit: as
     * at the beginning. Peers need not agree. NULL: the limit stays as it is. */
    void (*limit_eager)(dtrain_tp_dev_t *dev, uint64_t bytes);
    /* Ends the operations with this cookie (recv, send, put, get) at whatever stage they are: they
     * complete with DTRAIN_ERR_CANCELED, or as usual if they were over. That takes 50 ms of
     * progress() at most, whatever the peer does; at worst the connection ends, and is reported as
     * lost. From the completion on nobody touches their memory. A peer whose receive had matched a
     * send that is taken back gets DTRAIN_ERR_PEER for it. NULL: the core asks cancel(), and then
     * disconnects. */
    void (*withdraw)(dtrain_tp_dev_t *dev, uint64_t cookie);
} dtrain_tp_ops_t;

struct dtrain_tp_plugin {
    uint32_t struct_size;
    uint32_t abi;        /* DTRAIN_TP_ABI that it was compiled with     */
    const char *name;    /* "tcp"                                       */
    const char *version; /* "0.1.0"                                     */
    const dtrain_tp_ops_t *ops;
};

/* The one exported symbol: the table for a core of that ABI, or, where the plugin has none, its
 * own, so that the core can refuse it by both numbers. NULL is refused, too. */
DTRAIN_API const dtrain_tp_plugin_t *dtrain_transport_query(uint32_t core_abi);

#ifdef __cplusplus
}
#endif
#endif
