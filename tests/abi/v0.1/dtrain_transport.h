/* dtrain_transport.h - the interface between a transport plugin and the core.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plugin is libdtrain_transport_<name>.so. It exports one symbol, dtrain_transport_query(), and
 * links neither libdtrain nor another plugin: it gets all services through dtrain_tp_host_t. Both
 * tables start with struct_size and grow only at the tail. A member that is NULL or lies past
 * struct_size is "not provided" (DTRAIN_TP_HAS). A plugin writes no more bytes of an attr than its
 * struct_size says.
 *
 * The model is tagged messages over reliable endpoints, ordered within a tag only. libfabric and
 * UCX match tags natively; transports/common has a matching engine for networks that do not.
 *
 * LOCKING: the core calls a device's operations one at a time (any thread, with happens-before
 * between calls), so a plugin needs no lock. Operations must not block (except close()), call the
 * core (except host services), throw, or print. DTRAIN_ERR_BUSY means "nothing
 * happened; call again after progress()". Each accepted operation (DTRAIN_OK) completes exactly
 * once, through progress(), with its cookie. */
#ifndef DTRAIN_TRANSPORT_H
#define DTRAIN_TRANSPORT_H
#ifndef DTRAIN_BASICS_H
#include "dtrain.h"
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define DTRAIN_TP_ABI 1u /* grows when a rule here changes; the core supports older ones */
#define DTRAIN_TP_HAS(t, member)                                                                   \
    ((t)->struct_size >= offsetof(__typeof__(*(t)), member) + sizeof((t)->member) &&               \
     (t)->member != NULL)

typedef struct dtrain_tp_dev dtrain_tp_dev_t; /* plugin's type: one opened NIC, or the host      */
typedef struct dtrain_tp_ep dtrain_tp_ep_t;   /* plugin's type: the endpoint of one peer          */
typedef struct dtrain_tp_mr dtrain_tp_mr_t;   /* plugin's type: one registration                 */
typedef struct dtrain_tp_win dtrain_tp_win_t; /* plugin's type: memory shared by processes       */
typedef struct dtrain_tp_plugin dtrain_tp_plugin_t;
typedef struct dtrain_tp_guard dtrain_tp_guard_t; /* core's type: the protection of a connection  */

/* Describes a network card that list() has found, in texts for people. The caller owns the
 * texts. */
typedef struct dtrain_tp_card {
    uint32_t struct_size;
    int32_t numa_node;      /* -1: unknown                                        */
    uint64_t bandwidth_bps; /* bytes (not bits) per second; 0: unknown            */
    const char *transport;  /* "ofi"                                              */
    const char *name;       /* "mlx5_0"                                           */
    const char *address;    /* "10.0.0.4"; "": unknown                            */
    const char *state;      /* "up"                                               */
    const char *why;        /* why it is used, or why not                         */
    uint32_t chosen;        /* 1: list() returns it                               */
    uint32_t reserved;
} dtrain_tp_card_t;

#define DTRAIN_TP_OFFER_LEN     36u    /* bytes of an offer                                       */
#define DTRAIN_TP_RECORD_MAX    65536u /* bytes of a record's payload                             */
#define DTRAIN_TP_RECORD_HEADER 4u     /* bytes in front of it: its length, little-endian         */
#define DTRAIN_TP_RECORD_TAG    16u    /* bytes behind it                                         */
enum { DTRAIN_TP_PLAIN = 0, DTRAIN_TP_INTEGRITY = 1, DTRAIN_TP_ENCRYPTED = 2 };
/* Where a guard is: on the side that began the connection, or the other (0); where protection=auto
 * demands nothing: between ends that are proven to be in one kernel's network, or to use RDMA. */
enum { DTRAIN_TP_INITIATOR = 1 << 0, DTRAIN_TP_INSIDE = 1 << 1 };

/* Services of the core, valid from open() until close() returns; thread-safe. */
typedef struct dtrain_tp_host {
    uint32_t struct_size;
    uint32_t abi;
    void *self; /* first argument of every service */
    void (*log)(void *self, int32_t level, const char *line);
    /* Copies the value of an option ("tcp.interface"); DTRAIN_ERR_NOT_FOUND when there is none.
     * Further keys: "local.address" is the numeric address that this host uses towards the other
     * hosts of the job, as soon as it is known; then the core asks the device for its address
     * again. Known from the environment before that: "route.address", the local address of packets
     * to the rendezvous; "local.rank" and "local.size", this rank's number among the ranks of this
     * host and their count. */
    dtrain_status_t (*option)(void *self, const char *key, char *buf, size_t len);
    /* Stores msg as the error text of the current call; returns status. */
    dtrain_status_t (*fail)(void *self, dtrain_status_t status, const char *msg);
    int64_t (*now_ns)(void *self); /* monotonic; virtual in a simulation */
    void (*random)(void *self, void *buf, size_t len);
    /* Writes the HMAC-SHA256 of data under the job's secret, for a plugin's handshake;
     * DTRAIN_ERR_UNSUPPORTED when the job has no secret (then no handshake is needed). */
    dtrain_status_t (*sign)(void *self, const void *data, size_t len, uint8_t mac[32]);
    /* Writes the table of another transport, for plugins that wrap one. */
    dtrain_status_t (*plugin)(void *self, const char *name, const dtrain_tp_plugin_t **plugin_p);
    /* Copies bytes; either side may be device memory. */
    dtrain_status_t (*copy)(void *self, void *dst, const void *src, size_t len);
    /* Reports a card that list() has found, and whether it chose it; logged, and shown by
     * dtrain-info. */
    void (*card)(void *self, const dtrain_tp_card_t *card);
    /* Protection of a connection against whoever can read or change what travels on it. Each side
     * makes a guard, and puts its offer into the part of the handshake that sign() covers on both
     * sides. DTRAIN_ERR_UNSUPPORTED: the job has no secret. These five are there, or none. */
    dtrain_status_t (*guard_new)(void *self, void *offer, dtrain_tp_guard_t **guard_p);
    /* Once, after both proofs are verified. place: DTRAIN_TP_INITIATOR, DTRAIN_TP_INSIDE; both
     * sides must find the latter alike. transcript: what both sides signed, the same bytes on both.
     * Writes the level; DTRAIN_TP_PLAIN: the connection carries no records. DTRAIN_ERR_AUTH, with
     * the text, if one side demands what the other cannot do. */
    dtrain_status_t (*guard_agree)(void *self, dtrain_tp_guard_t *guard, uint32_t place,
                                   const void *peer_offer, const void *transcript, size_t len,
                                   uint32_t *level_p);
    /* Makes a record of the len bytes (1 to DTRAIN_TP_RECORD_MAX) at record +
     * DTRAIN_TP_RECORD_HEADER: writes the header, and the tag behind the bytes. Records must arrive
     * in the order in which they were made, each once. */
    void (*guard_seal)(void *self, dtrain_tp_guard_t *guard, void *record, size_t len);
    /* Makes the payload of a whole record readable in place, after checking it. DTRAIN_ERR_CORRUPT:
     * this is not the peer's next record; the connection must end, as no other will open. */
    dtrain_status_t (*guard_open)(void *self, dtrain_tp_guard_t *guard, void *record, size_t len);
    void (*guard_free)(void *self, dtrain_tp_guard_t *guard);
} dtrain_tp_host_t;

/* The core chooses protocols by these capabilities, never by a transport's name. */
enum {
    DTRAIN_TP_CAP_PUT = 1 << 0,       /* put() to registered remote memory                     */
    DTRAIN_TP_CAP_GET = 1 << 1,       /* get() from registered remote memory                   */
    DTRAIN_TP_CAP_WINDOW = 1 << 2,    /* memory that all members can load and store            */
    DTRAIN_TP_CAP_EVENT_FD = 1 << 3,  /* event_fd() and arm()                                  */
    DTRAIN_TP_CAP_PEER_LOST = 1 << 4, /* reports DTRAIN_TP_PEER_LOST without being asked       */
    DTRAIN_TP_CAP_CUDA = 1 << 5,      /* addresses may be GPU memory                           */
    DTRAIN_TP_CAP_DMABUF = 1 << 6,    /* mr_reg() takes DTRAIN_MEM_DMABUF                      */
    /* Connections are protected as guards agree, or never leave the host; without it the device is
     * not used where option protection demands a level. */
    DTRAIN_TP_CAP_GUARDED = 1 << 7,
    /* A message's memory may change while it is sent, as that of a server's tables does: each
     * number of 1, 2, 4 or 8 bytes at a multiple of its size, both in memory and in the message,
     * arrives as it was at one moment. Servers copy their answers where a device lacks this. */
    DTRAIN_TP_CAP_WORDS = 1 << 8
};
typedef struct dtrain_tp_attr { /* filled by query(); struct_size set by the core */
    uint32_t struct_size;
    uint32_t max_iov;       /* pieces per message, >= 1                               */
    uint64_t caps;          /* DTRAIN_TP_CAP_*                                        */
    uint64_t max_message;   /* bytes of one message                                   */
    uint64_t eager_limit;   /* largest message whose send may complete without its receiver */
    uint64_t latency_ns;    /* one way, smallest message; a model, 0: unknown          */
    uint64_t bandwidth_bps; /* bytes (not bits) per second; a model, 0: unknown        */
    uint32_t address_len;   /* bytes of address()                                      */
    uint32_t rkey_len;      /* bytes of mr_rkey()                                      */
    uint32_t window_handle_len;
    int32_t numa_node; /* -1: unknown                                             */
    /* The same between two hosts, if that is slower than within one; 0: it is not. */
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
    uint64_t in_place; /* bytes that the network took from, or wrote to, the caller's memory; no
                          code of this process has touched them                              */
    uint64_t registrations; /* that it made for one operation, as the caller had made none       */
    /* Registrations of the caller's memory now: by mr_reg(), and those that the plugin keeps for
     * later operations. */
    uint64_t registered, registered_bytes;
    uint64_t kept, kept_bytes;
    uint64_t hits;      /* pieces of operations whose registration was kept                     */
    uint64_t evictions; /* of kept registrations: for lack of room, or because memory changed   */
} dtrain_tp_counters_t;

enum {
    DTRAIN_TP_SEND = 1, /* the buffer may be reused                                             */
    DTRAIN_TP_RECV = 2, /* bytes and tag are those of the message; DTRAIN_ERR_TRUNCATED: bytes
                           is the sent length, the buffer holds the beginning                   */
    DTRAIN_TP_PUT = 3,
    DTRAIN_TP_GET = 4,
    DTRAIN_TP_CONNECT = 5, /* cookie of connect(); status: whether it succeeded               */
    /* Cookie of connect(); pending operations complete, too. Status: DTRAIN_ERR_PEER; ERR_CORRUPT:
     * it carried what the peer did not send; ERR_NO_MEMORY, ERR_LIMIT: this process could not keep
     * the connection, and its peer is not to blame. */
    DTRAIN_TP_PEER_LOST = 6,
    DTRAIN_TP_PUT_ARRIVED = 7 /* a peer's put() with an immediate has arrived: imm, never 0      */
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
    /* Writes comma-separated device names for open(); "" when this machine has none to use. */
    dtrain_status_t (*list)(const dtrain_tp_host_t *host, char *names, size_t len);
    dtrain_status_t (*open)(const dtrain_tp_host_t *host, const char *name,
                            dtrain_tp_dev_t **dev_p);
    /* Called after everything made from dev is gone. May block for at most 200 ms, so that data of
     * completed sends still reaches the peers (tcp: until it is acknowledged). */
    void (*close)(dtrain_tp_dev_t *dev);
    dtrain_status_t (*query)(dtrain_tp_dev_t *dev, dtrain_tp_attr_t *attr);
    /* Writes attr.address_len bytes, for connect() of a peer. */
    dtrain_status_t (*address)(dtrain_tp_dev_t *dev, void *buf, size_t len);
    /* DTRAIN_OK when this device can connect to that address (same host, same fabric): a guess from
     * the address alone, without traffic. Addresses come from peers: check them. */
    dtrain_status_t (*reachable)(dtrain_tp_dev_t *dev, const void *address, size_t len);
    /* Starts to connect. Sends may follow at once and go out when the connection is up. Connecting
     * to the device's own address must work. */
    dtrain_status_t (*connect)(dtrain_tp_dev_t *dev, const void *address, size_t len,
                               uint64_t cookie, dtrain_tp_ep_t **ep_p);
    /* Pending operations on ep complete with DTRAIN_ERR_CANCELED, at the latest when close()
     * returns; until they do, the network may still access their memory. A send whose completion
     * was reported before still reaches the peer. */
    void (*disconnect)(dtrain_tp_ep_t *ep);
    /* Registers memory for put, get and zero-copy. NULL if nothing needs it. */
    dtrain_status_t (*mr_reg)(dtrain_tp_dev_t *dev, const dtrain_mem_params_t *mem,
                              dtrain_tp_mr_t **mr_p);
    void (*mr_dereg)(dtrain_tp_mr_t *mr);
    dtrain_status_t (*mr_rkey)(dtrain_tp_mr_t *mr, void *buf, size_t len);
    /* Messages of one (endpoint, tag) arrive in order; others may overtake them. The plugin copies
     * iov, but not the bytes that it points to. */
    dtrain_status_t (*send)(dtrain_tp_ep_t *ep, uint64_t tag, const dtrain_tp_iov_t *iov,
                            uint32_t n, uint64_t cookie);
    /* Receives the next message, from any peer, whose (tag & mask) == (wanted & mask). Receives
     * match in the order in which they were posted. Messages without a receive are kept up to a
     * limit; beyond it their senders are held back. Small control messages must never deadlock. */
    dtrain_status_t (*recv)(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask,
                            const dtrain_tp_iov_t *iov, uint32_t n, uint64_t cookie);
    /* Asks the recv with this cookie to complete with DTRAIN_ERR_CANCELED. No effect when it has
     * already matched (it then completes as usual). */
    void (*cancel)(dtrain_tp_dev_t *dev, uint64_t cookie);
    /* Discards kept messages whose (tag & mask) == (wanted & mask). */
    void (*purge)(dtrain_tp_dev_t *dev, uint64_t wanted, uint64_t mask);
    /* remote_addr: an address in the peer's memory that rkey belongs to. imm: the value that the
     * peer's DTRAIN_TP_PUT_ARRIVED reports once the bytes are there; 0: no immediate, and no
     * report. */
    dtrain_status_t (*put)(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                           uint64_t remote_addr, const void *rkey, uint64_t imm, uint64_t cookie);
    dtrain_status_t (*get)(dtrain_tp_ep_t *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                           uint64_t remote_addr, const void *rkey, uint64_t cookie);
    /* Moves bytes and writes up to max completions. Returns their number, or < 0 when the device is
     * broken. */
    int32_t (*progress)(dtrain_tp_dev_t *dev, dtrain_tp_done_t *done, uint32_t max);
    /* A file descriptor that is readable when progress() has work, provided that arm() has returned
     * DTRAIN_OK since the last progress(). It belongs to the device. arm() returns DTRAIN_ERR_BUSY
     * when there is work now. */
    int32_t (*event_fd)(dtrain_tp_dev_t *dev);
    dtrain_status_t (*arm)(dtrain_tp_dev_t *dev);
    /* Windows: zeroed memory that `members` processes of one host load and store. The creator
     * passes `handle` on; every other member attaches through an endpoint to the creator's device,
     * and calls again after progress() while the result is DTRAIN_ERR_BUSY. member is the number of
     * the calling member; the creator has one, too. */
    dtrain_status_t (*window_create)(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members,
                                     uint32_t member, void *handle, dtrain_tp_win_t **win_p);
    dtrain_status_t (*window_attach)(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator,
                                     const void *handle, uint64_t bytes, uint32_t members,
                                     uint32_t member, dtrain_tp_win_t **win_p);
    void *(*window_address)(dtrain_tp_win_t *win); /* page-aligned */
    /* To be called after storing something that another member may sleep for: wakes the members
     * whose device is armed. Cheap (a fence and a few loads) when nobody sleeps. The only operation
     * that may run at the same time as others of its device. */
    void (*window_ring)(dtrain_tp_win_t *win);
    void (*window_free)(dtrain_tp_win_t *win); /* local; other members keep their mapping */
    /* Bytes of messages that progress() has moved so far, in and out. While the number grows,
     * waiting threads do not sleep, even if nothing completes. NULL: only completions keep them
     * awake. */
    uint64_t (*moved)(dtrain_tp_dev_t *dev);
    /* Writes counters of the bytes since the device was opened. NULL: the device does not count. */
    dtrain_status_t (*counters)(dtrain_tp_dev_t *dev, dtrain_tp_counters_t *counters);
    /* A text for people, when no connection to that address can be made: from where to where it was
     * tried, and which option changes that, as in "from 10.0.0.4 (eth0) to 10.0.1.9 ...". NULL:
     * there is no such text. */
    dtrain_status_t (*route)(dtrain_tp_dev_t *dev, const void *address, size_t len, char *text,
                             size_t text_len);
    /* From now on messages of more than `bytes` bytes wait for their receiver. A value above
     * attr.eager_limit restores the initial limit. Peers need not agree. NULL: the limit is
     * fixed. */
    void (*limit_eager)(dtrain_tp_dev_t *dev, uint64_t bytes);
    /* Ends the operations with this cookie (recv, send, put, get) at whatever stage they are: they
     * complete with DTRAIN_ERR_CANCELED, or as usual if they were over. This takes at most 50 ms of
     * progress(), whatever the peer does; in the worst case the connection ends and is reported as
     * lost. After the completion nothing accesses their memory. A peer whose receive had matched a
     * withdrawn send gets DTRAIN_ERR_PEER for it. NULL: the core calls cancel(), then
     * disconnects. */
    void (*withdraw)(dtrain_tp_dev_t *dev, uint64_t cookie);
} dtrain_tp_ops_t;

struct dtrain_tp_plugin {
    uint32_t struct_size;
    uint32_t abi;        /* DTRAIN_TP_ABI at compile time               */
    const char *name;    /* "tcp"                                       */
    const char *version; /* "0.1.0"                                     */
    const dtrain_tp_ops_t *ops;
};

/* The one exported symbol. Returns the plugin's table for a core of that ABI. If the plugin has
 * none, it returns its table of another ABI, so that the core can refuse it and name both numbers.
 * NULL is refused, too. */
DTRAIN_API const dtrain_tp_plugin_t *dtrain_transport_query(uint32_t core_abi);

#ifdef __cplusplus
}
#endif
#endif
