/* dtrain_device.h - the interface between an accelerator plugin and the core.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plugin is libdtrain_device_<name>.so. It exports one symbol, dtrain_device_query(), and links
 * neither libdtrain nor the accelerator's own library, which it opens at run time: a machine
 * without the accelerator can load the plugin and is told why it has no device. The tables start
 * with struct_size and grow only at the tail. A member that is NULL or lies past struct_size is
 * "not provided" (DTRAIN_DV_HAS). A plugin writes no more bytes of an attr than its struct_size
 * says.
 *
 * The model is memory with addresses of its own, and queues whose work runs in order: copies, a few
 * kernels, and words. A word is 4 bytes of pinned host memory. Queues store into words (signal) and
 * wait for them (hold); so does the host, by ordinary loads and stores. A kernel never waits for
 * anything: whatever waits is a queue, and the host can release it by storing the word.
 *
 * THREADS: the core calls the operations on one queue one at a time; everything else may be called
 * from any thread at any time. No operation calls the core (except host services), throws or
 * prints, and none changes what the calling thread has chosen as the accelerator's current device.
 * BLOCKING: operations that submit work to a queue never wait for the device. Those marked "slow"
 * may take milliseconds and may wait for work in flight; the core calls them when it makes
 * something, never while a queue is held.
 * FORK: a child made by fork() cannot use the devices of its parent. Operations return
 * DTRAIN_ERR_STATE there; release(), queue_free() and close() free the plugin's own memory only.
 * ERRORS: once a kernel has faulted, an accelerator may refuse everything until the process ends.
 * Each operation then returns DTRAIN_ERR_DEVICE with the accelerator's own name for the fault. */
#ifndef DTRAIN_DEVICE_H
#define DTRAIN_DEVICE_H
#ifndef DTRAIN_BASICS_H
#include "dtrain.h"
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define DTRAIN_DV_ABI 1u /* grows when a rule here changes; the core supports older ones */
#define DTRAIN_DV_HAS(t, member)                                                                   \
    ((t)->struct_size >= offsetof(__typeof__(*(t)), member) + sizeof((t)->member) &&               \
     (t)->member != NULL)

typedef struct dtrain_dv_dev dtrain_dv_dev_t;     /* plugin's type: one opened device            */
typedef struct dtrain_dv_mem dtrain_dv_mem_t;     /* plugin's type: allocated, pinned, imported  */
typedef struct dtrain_dv_queue dtrain_dv_queue_t; /* plugin's type: a stream                     */
typedef void (*dtrain_dv_call_fn)(void *arg);

/* Services of the core, valid from list() until the last close() returns; thread-safe. */
typedef struct dtrain_dv_host {
    uint32_t struct_size;
    uint32_t abi;
    void *self; /* first argument of every service */
    void (*log)(void *self, int32_t level, const char *line);
    /* Copies the value of an option ("plugin.<name>.<key>"); DTRAIN_ERR_NOT_FOUND when there is
     * none. */
    dtrain_status_t (*option)(void *self, const char *key, char *buf, size_t len);
    /* Stores msg as the error text of the current call; returns status. */
    dtrain_status_t (*fail)(void *self, dtrain_status_t status, const char *msg);
} dtrain_dv_host_t;

/* The core chooses its ways by these capabilities, never by a plugin's name. */
enum {
    DTRAIN_DV_CAP_HOLD = 1 << 0,    /* hold(): without it operations of streams are refused     */
    DTRAIN_DV_CAP_EXPORT = 1 << 1,  /* export_handle() and import()                             */
    DTRAIN_DV_CAP_DMABUF = 1 << 2,  /* dmabuf()                                                 */
    DTRAIN_DV_CAP_MANAGED = 1 << 3, /* host and device can both access managed memory, at once  */
    DTRAIN_DV_CAP_SHARED = 1 << 4   /* host code can load and store the device's memory         */
};
typedef struct dtrain_dv_attr { /* filled by query(); struct_size set by the core */
    uint32_t struct_size;
    int32_t ordinal;       /* by which programs and dtrain_dv_range_t name the device, >= 0    */
    uint64_t caps;         /* DTRAIN_DV_CAP_*                                                  */
    uint64_t memory_bytes; /* of the device                                                    */
    uint64_t memory_bps;   /* bytes (not bits) per second of its memory, read and written
                              together; a model, 0: unknown                                    */
    uint64_t host_bps;     /* between the device and pinned host memory, each way; likewise    */
    uint64_t launch_ns;    /* from submitting work to an idle queue until it runs; likewise    */
    uint64_t limit_bytes;  /* longest copy, fill, allocation or registration                   */
    uint32_t max_operands; /* most dsts, and most srcs, of one work, >= 2                      */
    uint32_t handle_len;   /* bytes of export_handle()                                         */
    int32_t numa_node;     /* -1: unknown                                                      */
    uint32_t reserved;
    uint8_t uuid[16]; /* the same in all processes of all containers of the machine       */
    char name[64];    /* "NVIDIA H200"                                                    */
    char address[32]; /* "0000:19:00.0"; "": none                                         */
    char driver[32];  /* version of the accelerator's library: "13.0"                     */
} dtrain_dv_attr_t;

/* What an address is. */
enum {
    DTRAIN_DV_HOST = 0,   /* ordinary memory, or unknown to the accelerator                     */
    DTRAIN_DV_PINNED = 1, /* host memory that devices can access                                */
    DTRAIN_DV_DEVICE = 2, /* memory of the device `ordinal`                                     */
    DTRAIN_DV_MANAGED = 3 /* memory that moves between host and devices                         */
};
enum {
    DTRAIN_DV_RANGE_EXPORT = 1 << 0, /* export_handle() can pass it on                          */
    DTRAIN_DV_RANGE_DMABUF = 1 << 1  /* dmabuf() can                                            */
};
typedef struct dtrain_dv_range { /* filled by classify(); struct_size set by the core */
    uint32_t struct_size;
    uint32_t kind;    /* DTRAIN_DV_HOST, ...; of HOST nothing else is set                       */
    uint64_t address; /* by which the device reaches the first byte that was asked for          */
    uint64_t base;    /* of the allocation that holds it                                        */
    uint64_t length;  /* of the allocation                                                      */
    uint64_t id;      /* of the allocation: another one at the same address has another id      */
    int32_t ordinal;  /* attr.ordinal of the device; -1: of none                                */
    uint32_t flags;   /* DTRAIN_DV_RANGE_*                                                      */
} dtrain_dv_range_t;

/* Work of run(). dsts and srcs are device addresses (of memory of the queue's device, of imported
 * memory, of pinned host memory), aligned to their elements; they are copied when run() is called,
 * and their contents are accessed when the queue gets there. A dst may also be one of the srcs; no
 * other overlap. Results are bit for bit those of the core's own arithmetic for host memory: f16
 * and bf16 are computed in f32 and rounded once, to nearest even; sources are combined from left to
 * right; no product is fused with a sum; integers wrap; a NaN result is the positive quiet NaN
 * without payload, subnormals are kept, -0 is less than +0. */
enum {
    /* dsts[k][i] = srcs[0][i] op srcs[1][i] op ... for m dsts and n srcs; op: DTRAIN_SUM to
     * DTRAIN_BXOR. AVG: the sum divided by n; of integers the exact sum, rounded toward zero.
     * dtype 0, with one src: `count` bytes, as they are; `op` has no meaning, and the kernels are
     * those of rows. */
    DTRAIN_DV_REDUCE = 1,
    /* dsts[0][i] = srcs[0][i] / divisor, which is not 0; integers round toward zero. */
    DTRAIN_DV_SCALE = 2,
    /* dsts[0][i] = srcs[0][i] * weights[0], which is rounded to the dtype's arithmetic first (f64
     * for f64, else f32). Floating dtypes only, as the next two. */
    DTRAIN_DV_MULTIPLY = 3,
    /* dsts[0][i] = weights[0] * srcs[0][i] + weights[1] * srcs[1][i] + ... */
    DTRAIN_DV_WEIGH = 4,
    /* dsts[0][i] = srcs[0][i], from dtype to the dtype `op`. One of them is f32, the other f16 or
     * bf16. */
    DTRAIN_DV_CONVERT = 5,
    /* Row i of dsts[0] = row rows[i] of srcs[0], which has row_limit rows. Rows of row_bytes bytes;
     * the dtype has no meaning. A number that is not below row_limit gives a row of zeros. */
    DTRAIN_DV_GATHER = 6,
    /* Row rows[i] of dsts[0], which has row_limit rows, = row i of srcs[0]. A number that is not
     * below row_limit is passed over; of equal numbers one row is stored, whole or mixed. */
    DTRAIN_DV_SCATTER = 7,
    /* A part of an update of dsts[0], values, by srcs[0], gradients: see dtrain_dv_update_t. The
     * dtype is f32 or f64, whose rules were prepared; op: DTRAIN_RULE_*. DTRAIN_ERR_UNSUPPORTED,
     * also with a count of 0: there is no kernel for this rule. */
    DTRAIN_DV_UPDATE = 8,
    /* dsts[0][i] = srcs[0][i], from f32 to the dtype `op`, f16 or bf16: to one of its two neighbors
     * there, at random, so that the mean is exact. The random number of an element is a function of
     * `seed` and of first + i, the same as on the host. Beyond the largest number: to nearest. */
    DTRAIN_DV_ROUND = 9
};
enum { DTRAIN_DV_RULES = 32 }; /* for prepare(), with a dtype: the kernels of UPDATE           */

/* What UPDATE does. The count of the work is whole rows of `columns` elements. Rules that take
 * norms over rows, and clipping to a norm, need several passes, each a work of its own, in this
 * order; others only APPLY. */
enum {
    DTRAIN_DV_PASS_APPLY = 0,     /* the rule                                                   */
    DTRAIN_DV_PASS_CLIP = 1,      /* norms of g, for clip_norm                                  */
    DTRAIN_DV_PASS_SCALE = 2,     /* each row's factor for g, from them                         */
    DTRAIN_DV_PASS_DIRECTION = 3, /* norms of the values and of the direction of the update     */
    DTRAIN_DV_PASS_RATIO = 4      /* each row's factor for the rate, from them                  */
};
enum {
    DTRAIN_DV_ADJUSTS = 1 << 0,  /* g is clipped and the weight decay added to it               */
    DTRAIN_DV_PROXIMAL = 1 << 1, /* l1 and l2 shrink the values after the rule                  */
    DTRAIN_DV_CLIPPED = 1 << 2,  /* passes CLIP and SCALE come before                           */
    DTRAIN_DV_BY_ROW = 1 << 3    /* APPLY uses the rows' factors                                */
};
/* Elements of a row that are summed together; the sums are added up in order. */
enum { DTRAIN_DV_NORM_BLOCK = 512 };
typedef struct dtrain_dv_update {
    uint32_t struct_size;
    uint32_t pass;  /* DTRAIN_DV_PASS_*                                                       */
    uint32_t flags; /* DTRAIN_DV_ADJUSTS, ...                                                 */
    uint32_t reserved;
    uint64_t columns; /* elements of a row, >= 1                                                */
    uint64_t stride;  /* elements from row to row of values and gradients, >= columns           */
    /* Device addresses: the rule's state, in the order of its arrays, an element for each of the
     * work, or (ADAGRAD_ROWS) for each row; NULL: it has no more. */
    void *slots[3];
    /* Device memory between the passes: for each row 2 numbers of 8 bytes, and 3 for each of its
     * blocks of DTRAIN_DV_NORM_BLOCK elements; the last block may be shorter. */
    void *norms;
    /* The numbers of the rule, as in dtrain_table_params_t. */
    double rate, momentum, beta1, beta2, rho, epsilon, l1, l2, ftrl_beta, trust;
    double decay, own_decay; /* weight decay: added to g; applied by the rule                   */
    double clip, clip_norm;  /* most of an element of g; of its norm                            */
    double first, second;    /* ADAM, ...: 1 / (1 - beta^t) of beta1 and beta2                  */
    double share;            /* MEAN: 1 / t                                                     */
} dtrain_dv_update_t;
typedef struct dtrain_dv_work {
    uint32_t struct_size;
    uint32_t kind;           /* DTRAIN_DV_REDUCE, ...                                             */
    uint32_t dtype;          /* DTRAIN_F32, ...                                                   */
    uint32_t op;             /* DTRAIN_SUM, ...; CONVERT: the dtype of dsts[0]                    */
    uint64_t count;          /* elements; GATHER, SCATTER: rows                                   */
    void *const *dsts;       /* m                                                                 */
    const void *const *srcs; /* n                                                               */
    uint32_t m, n;           /* 1 to attr.max_operands                                            */
    const double *weights;   /* host memory, copied: n; MULTIPLY: 1                               */
    const uint64_t *rows;    /* device address; count numbers                                     */
    uint64_t row_bytes, row_limit;
    uint32_t divisor;
    uint32_t reserved;
    const dtrain_dv_update_t *update; /* UPDATE: host memory, copied                              */
    uint32_t seed, first;             /* ROUND                                                    */
} dtrain_dv_work_t;

enum { DTRAIN_DV_EXPORTABLE = 1 << 0 }; /* flag of alloc(): export_handle() will be called        */

typedef struct dtrain_dv_ops {
    uint32_t struct_size;
    uint32_t reserved;
    /* Writes comma-separated device names for open(); "" when this machine has none. Slow at the
     * first call. Makes no context on any device. DTRAIN_ERR_UNSUPPORTED: the accelerator's library
     * is not here or too old; the text says what was looked for and what to install. */
    dtrain_status_t (*list)(const dtrain_dv_host_t *host, char *names, size_t len);
    /* Describes a device that list() has named. Makes no context on it. */
    dtrain_status_t (*query)(const dtrain_dv_host_t *host, const char *name,
                             dtrain_dv_attr_t *attr);
    /* Slow. What work needs later is made now: a context, the commonest kernels: prepare() of rows,
     * F32, BF16 and F16 loads nothing after it. */
    dtrain_status_t (*open)(const dtrain_dv_host_t *host, const char *name,
                            dtrain_dv_dev_t **dev_p);
    /* Called after everything made from dev is gone. Slow. */
    void (*close)(dtrain_dv_dev_t *dev);
    /* Loads the kernels of a dtype (0: those of rows; DTRAIN_DV_RULES | dtype: those of update
     * rules). Slow. DTRAIN_ERR_UNSUPPORTED: the device has none, and its work is done by the host.
     * run() of a dtype that was not prepared returns DTRAIN_ERR_STATE. */
    dtrain_status_t (*prepare)(dtrain_dv_dev_t *dev, uint32_t dtype);
    /* Says what the bytes at `address` are, to any device of this plugin: needs no device, and
     * touches no memory. DTRAIN_ERR_INVALID: they begin in an allocation and end outside of it. */
    dtrain_status_t (*classify)(const dtrain_dv_host_t *host, const void *address, uint64_t bytes,
                                dtrain_dv_range_t *range);
    /* Allocates memory of the device, aligned to 256 bytes; its contents are undefined. flags:
     * DTRAIN_DV_EXPORTABLE. Slow. */
    dtrain_status_t (*alloc)(dtrain_dv_dev_t *dev, uint64_t bytes, uint64_t flags,
                             dtrain_dv_mem_t **mem_p);
    /* Makes host memory accessible to the device; words have to lie in such memory. The range may
     * share pages with nothing that is pinned already (DTRAIN_ERR_BUSY). Slow. */
    dtrain_status_t (*pin)(dtrain_dv_dev_t *dev, void *address, uint64_t bytes,
                           dtrain_dv_mem_t **mem_p);
    /* The device's address of the first byte of `mem`. */
    void *(*address)(dtrain_dv_mem_t *mem);
    /* Ends an allocation, a registration or an import. No work in flight may use it. Slow. */
    void (*release)(dtrain_dv_mem_t *mem);
    /* A queue of the library's own, which waits for no other. urgent: its work runs before that of
     * queues that are not. Slow. */
    dtrain_status_t (*queue_own)(dtrain_dv_dev_t *dev, uint32_t urgent,
                                 dtrain_dv_queue_t **queue_p);
    /* A queue of the program: the value of its own type of stream (CUDA: a CUstream; NULL, 1 and 2
     * are the default streams of the device). DTRAIN_ERR_INVALID: it belongs to another device. */
    dtrain_status_t (*queue_adopt)(dtrain_dv_dev_t *dev, void *stream, dtrain_dv_queue_t **queue_p);
    /* Work in flight continues; a program's stream stays the program's. Slow for own queues. */
    void (*queue_free)(dtrain_dv_queue_t *queue);
    /* DTRAIN_OK: all work that was submitted is over; DTRAIN_IN_PROGRESS: it is not. */
    dtrain_status_t (*queue_done)(dtrain_dv_queue_t *queue);
    /* ---- submitting: each of these returns at once, and the work runs after all that the queue
     * was given before. Addresses are device addresses. A failure means that nothing was submitted.
     */
    dtrain_status_t (*copy)(dtrain_dv_queue_t *queue, void *dst, const void *src, uint64_t bytes);
    dtrain_status_t (*fill)(dtrain_dv_queue_t *queue, void *dst, uint8_t value, uint64_t bytes);
    dtrain_status_t (*run)(dtrain_dv_queue_t *queue, const dtrain_dv_work_t *work);
    /* Stores value into the word at this offset (a multiple of 4) of pinned memory. All that the
     * queue did before is visible to whoever loads the value. */
    dtrain_status_t (*signal)(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset,
                              uint32_t value);
    /* ---- what a plugin need not have: NULL, and no capability claimed */
    /* The queue goes on when (int32_t)(word - value) >= 0: counters may wrap. */
    dtrain_status_t (*hold)(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset,
                            uint32_t value);
    /* Calls fn(arg) in a thread of the plugin's or the accelerator's. fn must not call the plugin
     * or the accelerator, nor wait; it is for waking a thread that sleeps. NULL: threads poll
     * words. */
    dtrain_status_t (*call)(dtrain_dv_queue_t *queue, dtrain_dv_call_fn fn, void *arg);
    /* DTRAIN_ERR_STATE while the program records the queue's work for later (CUDA: captures the
     * stream), in which nothing may be submitted to it; the recording is not harmed. NULL: programs
     * cannot. */
    dtrain_status_t (*capturing)(dtrain_dv_queue_t *queue);
    /* Writes attr.handle_len bytes, by which another process imports the allocation that holds the
     * address, and the distance of the address from its first byte. DTRAIN_ERR_UNSUPPORTED: this
     * memory cannot be passed on; the text says why. */
    dtrain_status_t (*export_handle)(dtrain_dv_dev_t *dev, const void *address, void *handle,
                                     uint64_t *offset);
    /* Maps memory that another process has exported on the device with the same uuid. bytes: the
     * length that the other process has said; DTRAIN_ERR_INVALID if it is not that. Handles come
     * from peers: check them. Slow. */
    dtrain_status_t (*import)(dtrain_dv_dev_t *dev, const void *handle, uint64_t bytes,
                              dtrain_dv_mem_t **mem_p);
    /* Opens a descriptor of these bytes for a network's library, and writes the distance of
     * `address` from the descriptor's first byte. The caller closes it. Slow. */
    dtrain_status_t (*dmabuf)(dtrain_dv_dev_t *dev, const void *address, uint64_t bytes,
                              int32_t *fd, uint64_t *offset);
    /* Makes what a network card has written to the device's memory visible to work that is
     * submitted from now on. NULL: nothing is needed. */
    dtrain_status_t (*flush)(dtrain_dv_dev_t *dev);
} dtrain_dv_ops_t;

typedef struct dtrain_dv_plugin {
    uint32_t struct_size;
    uint32_t abi;        /* DTRAIN_DV_ABI at compile time */
    const char *name;    /* "cuda"                        */
    const char *version; /* "0.1.0"                       */
    const dtrain_dv_ops_t *ops;
} dtrain_dv_plugin_t;

/* The one exported symbol. Returns the plugin's table for a core of that ABI. If the plugin has
 * none, it returns its table of another ABI, so that the core can refuse it and name both numbers.
 * NULL is refused, too. */
DTRAIN_API const dtrain_dv_plugin_t *dtrain_device_query(uint32_t core_abi);

#ifdef __cplusplus
}
#endif
#endif
