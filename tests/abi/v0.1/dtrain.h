/* dtrain.h - collectives and a parameter server over pluggable transports.
 * SPDX-License-Identifier: Apache-2.0
 *
 * THE PROMISE: every call returns a correct result, or a named error that says what failed, where,
 * on which rank, after how long and what to do, within a bound that the caller sets.
 *
 * ABI RULES (checked by tests/abi): handles are incomplete types; no bool, enum, bit-field, long,
 * static inline or variadic in a signature or struct; a *_params struct starts with struct_size,
 * grows only at its tail, has no padding, and every field means "default" where it is zero; a
 * number is never used twice. Outputs come last and are written only on success.
 *
 * THREADS: every function may be called from any thread, except that a function marked "exclusive"
 * needs that no other call uses the same handle at that time.
 * Cancelling a thread (pthread_cancel, deferred) takes effect after the call that it is in.
 * CALLBACKS must not throw, longjmp, or call dtrain. An exception is caught: the call that needed
 * the callback fails with its text (of the log's it is written to stderr).
 * MEMORY: when there is none, calls that make something new end with DTRAIN_ERR_NO_MEMORY, as does
 * what is too large; what is in flight goes on, and everything can be destroyed: the library keeps
 * 2 MiB of addresses for that, whose pages do not exist before.
 * FORK: the child may only destroy what it inherited; every other call there returns
 * DTRAIN_ERR_STATE. The child may create a context of its own. It inherits no descriptor and no
 * shared memory of the library's, and neither does a program that is executed; none is 0, 1 or 2.
 * (A child made without pthread_atfork()'s handlers, as by clone(), inherits them. So it is with
 * those of libfabric and UCX.) The library installs no signal handler, never exits, never prints to
 * stdout. */
#ifndef DTRAIN_H
#define DTRAIN_H
#ifndef DTRAIN_BASICS_H /* up to its end: what the library's own layers share (cmake/basics.cmake) \
                         */
#define DTRAIN_BASICS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef DTRAIN_API
#define DTRAIN_API __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What the program was compiled against; pass it to dtrain_context_create(). */
#define DTRAIN_API_VERSION 1u /* (major << 16) | minor */
/* Every *_params struct is prepared by this, then filled: DTRAIN_INIT(&params); params.x = ...; */
#define DTRAIN_INIT(p) (memset((p), 0, sizeof *(p)), (p)->struct_size = (uint32_t)sizeof *(p))

typedef struct dtrain_options dtrain_options_t; /* key/value configuration                       */
typedef struct dtrain_context dtrain_context_t; /* transports, progress, memory; no globals      */
typedef struct dtrain_comm dtrain_comm_t;       /* communicator: an ordered group of ranks       */
typedef struct dtrain_mem dtrain_mem_t;         /* registered memory                             */
typedef struct dtrain_cq dtrain_cq_t;           /* completion queue                              */
typedef struct dtrain_request dtrain_request_t; /* one operation in flight                       */
typedef struct dtrain_gradients dtrain_gradients_t; /* named tensors, reduced in any order        */
typedef struct dtrain_graph dtrain_graph_t;   /* who averages with whom                        */
typedef struct dtrain_server dtrain_server_t; /* parameter-server shards served by this process */
struct dtrain_function;                       /* an update rule: dtrain_function.h              */
typedef struct dtrain_table dtrain_table_t;   /* a named array spread over the servers         */
typedef struct dtrain_reader dtrain_reader_t; /* sequential reader of TFRecord files           */
typedef struct dtrain_writer dtrain_writer_t; /* writer of one TFRecord file                   */

/* ---- status: 0 done, > 0 not finished, < 0 failed -------------------------------------------- */
/* -20..-39: a connection is lost for good; -40..-59: the communicator is; -60..-79: the device. */
typedef int32_t dtrain_status_t;
#define DTRAIN_STATUS_MAP(X)                                                                       \
    X(OK, 0, "success")                                                                            \
    X(IN_PROGRESS, 1, "not finished")                                                              \
    X(ERR_INVALID, -1, "invalid argument")                                                         \
    X(ERR_NO_MEMORY, -2, "out of memory")                                                          \
    X(ERR_UNSUPPORTED, -3, "not supported")                                                        \
    X(ERR_VERSION, -4, "version mismatch")                                                         \
    X(ERR_STATE, -5, "wrong state")                                                                \
    X(ERR_BUSY, -6, "resource busy")                                                               \
    X(ERR_TIMEOUT, -7, "timed out")                                                                \
    X(ERR_CANCELED, -8, "canceled")                                                                \
    X(ERR_TRUNCATED, -9, "buffer too small")                                                       \
    X(ERR_NOT_FOUND, -10, "not found")                                                             \
    X(ERR_LIMIT, -11, "limit exceeded")                                                            \
    X(ERR_CORRUPT, -12, "corrupt data")                                                            \
    X(ERR_CONFIG, -13, "bad configuration")                                                        \
    X(ERR_IO, -20, "system call failed")                                                           \
    X(ERR_TRANSPORT, -21, "transport failed")                                                      \
    X(ERR_AUTH, -22, "authentication failed")                                                      \
    X(ERR_PEER, -40, "peer failed")                                                                \
    X(ERR_ABORTED, -41, "communicator aborted")                                                    \
    X(ERR_MISMATCH, -42, "ranks made different calls")                                             \
    X(ERR_FENCED, -43, "the group went on without this rank")                                      \
    X(ERR_DEVICE, -60, "device failed")                                                            \
    X(ERR_INTERNAL, -99, "bug in dtrain")
enum {
#define DTRAIN_X(name, value, text) DTRAIN_##name = value,
    DTRAIN_STATUS_MAP(DTRAIN_X)
#undef DTRAIN_X
        DTRAIN_STATUS_MIN_ = INT32_MIN /* keeps the constants 32 bits wide; not a status */
};

/* The library's own version, (major << 16) | minor, which may differ from DTRAIN_API_VERSION. */
DTRAIN_API uint32_t dtrain_version(void);
/* "0.1.0"; static storage. */
DTRAIN_API const char *dtrain_version_string(void);
/* "DTRAIN_ERR_PEER"; static storage, never NULL ("DTRAIN_ERR_UNKNOWN" for an unknown number). */
DTRAIN_API const char *dtrain_status_name(dtrain_status_t status);
/* "peer failed"; static storage, never NULL. */
DTRAIN_API const char *dtrain_status_text(dtrain_status_t status);
/* Copies the text of the last failed call of this thread into buf (at most len bytes, always
 * terminated when len > 0); returns the length of the whole text without its terminator. */
DTRAIN_API size_t dtrain_last_error(char *buf, size_t len);

/* ---- options: default < file < environment (DTRAIN_<KEY>, dots as underscores) < set() ------- */
/* Creates a bag of options from defaults, the file named by DTRAIN_OPTIONS (if any) and the
 * environment, which is read now and only now. */
DTRAIN_API dtrain_status_t dtrain_options_create(dtrain_options_t **options_p);
DTRAIN_API void dtrain_options_destroy(dtrain_options_t *options); /* exclusive; NULL is fine */
/* DTRAIN_ERR_NOT_FOUND (naming the nearest key) or DTRAIN_ERR_INVALID (saying what is allowed). */
DTRAIN_API dtrain_status_t dtrain_options_set(dtrain_options_t *options, const char *key,
                                              const char *value);
/* "key = value" lines, '#' comments. Nothing is changed when any line is wrong. */
DTRAIN_API dtrain_status_t dtrain_options_load(dtrain_options_t *options, const char *path);
/* Copies the value; DTRAIN_ERR_TRUNCATED when len is too small. */
DTRAIN_API dtrain_status_t dtrain_options_get(const dtrain_options_t *options, const char *key,
                                              char *buf, size_t len);
/* The index-th option's key, default and description (static storage), DTRAIN_ERR_NOT_FOUND past
 * the last one. */
DTRAIN_API dtrain_status_t dtrain_options_describe(uint32_t index, const char **key_p,
                                                   const char **default_p, const char **text_p);

/* ---- context --------------------------------------------------------------------------------- */
/* Opens the transports and starts the helper thread (unless progress=manual). options may be NULL
 * and may be destroyed afterwards. */
DTRAIN_API dtrain_status_t dtrain_context_create(uint32_t api_version,
                                                 const dtrain_options_t *options,
                                                 dtrain_context_t **context_p);
/* Exclusive. DTRAIN_ERR_BUSY while communicators, servers, queues or memory of it exist. */
DTRAIN_API dtrain_status_t dtrain_context_destroy(dtrain_context_t *context);
/* Does a bounded amount of work; returns how much (0: nothing to do), or < 0. Needed with
 * progress=manual, harmless otherwise. */
DTRAIN_API int32_t dtrain_context_progress(dtrain_context_t *context);
/* A JSON text that tells what this build and machine can do (transports, kernels, limits).
 * context may be NULL. Same rules as dtrain_last_error(). */
DTRAIN_API size_t dtrain_context_describe(dtrain_context_t *context, char *buf, size_t len);

/* Log lines go to stderr from level "warn" on (option log.level) until a sink is set; NULL
 * restores stderr. The sink is called from any thread, must not call into dtrain. */
enum { DTRAIN_LOG_ERROR = 1, DTRAIN_LOG_WARN = 2, DTRAIN_LOG_INFO = 3, DTRAIN_LOG_DEBUG = 4 };
typedef void (*dtrain_log_fn)(void *arg, int32_t level, const char *line);
DTRAIN_API dtrain_status_t dtrain_context_set_log(dtrain_context_t *context, dtrain_log_fn sink,
                                                  void *arg);

/* ---- memory: never needed for correctness; saves copies -------------------------------------- */
enum { DTRAIN_MEM_AUTO = 0, DTRAIN_MEM_HOST = 1, DTRAIN_MEM_CUDA = 2, DTRAIN_MEM_DMABUF = 3 };
typedef struct dtrain_mem_params {
    uint32_t struct_size;
    uint32_t mem_type; /* DTRAIN_MEM_*; AUTO asks the driver by pointer           */
    void *address;     /* first byte; stays the caller's                          */
    uint64_t length;   /* bytes, > 0                                              */
    uint64_t dmabuf_offset;
    int32_t dmabuf_fd; /* read only for DTRAIN_MEM_DMABUF                         */
    int32_t device;    /* read only for DTRAIN_MEM_CUDA                           */
    uint64_t flags;    /* DTRAIN_MEM_SHARED                                       */
} dtrain_mem_params_t;
/* Moves the pages that hold the range into memory that the host's other ranks can map, at the same
 * addresses and with the same contents: collectives between ranks whose buffers are shared copy
 * less. For private host memory. While dtrain_mem_register() and dtrain_mem_deregister() run no
 * thread may write to these pages (they may hold other data at both ends); a child made by fork()
 * shares them instead of having a copy; unmapping them before deregistering is allowed. When an
 * operation fails, ranks that do not know yet may still store to its buffers for a moment. Without
 * effect where no open transport can share memory. */
#define DTRAIN_MEM_SHARED UINT64_C(1)
/* The range stays registered with every transport of the context until deregistered. Operations
 * recognise shared memory by its address; dtrain_op_params is not needed for it. */
DTRAIN_API dtrain_status_t dtrain_mem_register(dtrain_context_t *context,
                                               const dtrain_mem_params_t *params,
                                               dtrain_mem_t **mem_p);
/* New memory, zeroed and page-aligned, registered, and shared as by DTRAIN_MEM_SHARED. */
DTRAIN_API dtrain_status_t dtrain_mem_alloc(dtrain_context_t *context, uint64_t bytes,
                                            dtrain_mem_t **mem_p);
/* Its first byte; NULL for NULL. */
DTRAIN_API void *dtrain_mem_address(const dtrain_mem_t *mem);
/* Frees memory that dtrain_mem_alloc() made; other memory stays the caller's, with its contents.
 * DTRAIN_ERR_BUSY while an operation uses it; the handle is then still valid. */
DTRAIN_API dtrain_status_t dtrain_mem_deregister(dtrain_mem_t *mem);

/* ---- completion ------------------------------------------------------------------------------ */
typedef struct dtrain_event {  /* 64 bytes, frozen */
    uint64_t user_tag;         /* from dtrain_op_params_t                              */
    dtrain_request_t *request; /* NULL when the caller asked for none                 */
    uint64_t bytes;            /* moved into the caller's buffer (receive, pull)       */
    dtrain_status_t status;
    int32_t peer;     /* the sender (receive), the guilty rank (ERR_PEER), else -1   */
    uint64_t version; /* table operations: the version read or made                  */
    uint64_t reserved[3];
} dtrain_event_t;
/* depth: how many finished operations it can hold, 0 = 1024; posting an operation that might
 * overflow it is refused with DTRAIN_ERR_BUSY. */
DTRAIN_API dtrain_status_t dtrain_cq_create(dtrain_context_t *context, uint32_t depth,
                                            dtrain_cq_t **cq_p);
DTRAIN_API dtrain_status_t dtrain_cq_destroy(dtrain_cq_t *cq); /* exclusive; BUSY while used */
/* Takes up to max events, waiting up to timeout_ns (0: do not wait, < 0: for ever) for the first;
 * returns their number (0: none in time), or < 0. */
DTRAIN_API int32_t dtrain_cq_poll(dtrain_cq_t *cq, dtrain_event_t *events, uint32_t max,
                                  int64_t timeout_ns);
/* Readable while events wait; for poll/epoll only; belongs to the queue. < 0 on error. */
DTRAIN_API int32_t dtrain_cq_fd(dtrain_cq_t *cq);

/* DTRAIN_IN_PROGRESS, DTRAIN_OK or the operation's error. */
DTRAIN_API dtrain_status_t dtrain_request_test(dtrain_request_t *request);
/* As test, but waits up to timeout_ns (< 0: until the operation's own timeout);
 * DTRAIN_IN_PROGRESS when it has not finished by then. */
DTRAIN_API dtrain_status_t dtrain_request_wait(dtrain_request_t *request, int64_t timeout_ns);
/* Asks for an early end; the request still completes (DTRAIN_ERR_CANCELED if nothing was done yet).
 * Collectives that other ranks may have begun cannot be cancelled: DTRAIN_ERR_STATE. */
DTRAIN_API dtrain_status_t dtrain_request_cancel(dtrain_request_t *request);
/* Begins persistent operations (DTRAIN_OP_PERSISTENT), in this order. The first failure ends it:
 * those before run. DTRAIN_ERR_BUSY: that one has not finished. Exclusive for each request. */
DTRAIN_API dtrain_status_t dtrain_request_start(dtrain_request_t *const *requests, uint32_t count);
/* The outcome of a finished request; DTRAIN_ERR_STATE while it runs. */
DTRAIN_API dtrain_status_t dtrain_request_result(dtrain_request_t *request,
                                                 dtrain_event_t *event_p);
/* The finished operation's own error text. Same rules as dtrain_last_error(). */
DTRAIN_API size_t dtrain_request_error(dtrain_request_t *request, char *buf, size_t len);
/* Once, at any time; an unfinished operation goes on without its handle. NULL is fine. */
DTRAIN_API void dtrain_request_free(dtrain_request_t *request);

/* How an operation is run. NULL or all zero: with request_p == NULL too, the call blocks until the
 * operation is done. With a request_p or a cq it returns at once, and the buffers belong to the
 * library until the operation completes, which it does exactly once. */
enum { DTRAIN_STREAM_NONE = 0, DTRAIN_STREAM_CUDA = 1 };
/* Collectives (of graphs, too) and messages; elsewhere DTRAIN_ERR_UNSUPPORTED. The call only
 * prepares the operation. Its request (request_p is required) counts as finished until
 * dtrain_request_start(), which begins it with these same arguments as often as it is called:
 * without looking anything up again, and without allocating (but AVG of f16 and integers over
 * messages, for its sums). Starting, not preparing, has its place
 * in the order of calls that all ranks keep. Arrays of counts are copied; the buffers are the
 * library's from each start to its end. A communicator with persistent requests cannot be
 * destroyed: free them first. */
#define DTRAIN_OP_PERSISTENT UINT32_C(1)
/* The caller will wait for the request (request_p is required, no cq) by dtrain_request_wait(), at
 * once: for those who want a blocking call's speed and yet to give up waiting now and then, for
 * signals or other threads. The call may take some microseconds to finish a small operation, and
 * until the first wait nobody else moves it on. */
#define DTRAIN_OP_AWAITED UINT32_C(2)
/* prescale and postscale are taken as they are, 0 included (1 changes nothing): who computes them,
 * as a share of samples, say, sets it. */
#define DTRAIN_OP_FACTORS UINT32_C(4)
typedef struct dtrain_op_params {
    uint32_t struct_size;
    uint32_t flags;                    /* DTRAIN_OP_*                                             */
    uint64_t user_tag;                 /* returned in the event                                   */
    dtrain_cq_t *cq;                   /* where to report                                         */
    int64_t timeout_ns;                /* 0: option op.timeout; < 0: none                         */
    dtrain_mem_t *send_mem, *recv_mem; /* registrations that hold the buffers, or NULL */
    void *stream;                      /* read only when stream_type is not 0                     */
    uint32_t stream_type;              /* DTRAIN_STREAM_*                                         */
    int32_t priority;                  /* higher goes first; 0 is normal (docs/TUNING.md)         */
    /* All-reduce, reduce and reduce_scatter(v) of floating dtypes (others: DTRAIN_ERR_UNSUPPORTED):
     * each element of this rank's input is multiplied by prescale, of its result by postscale; 0:
     * as it is, without DTRAIN_OP_FACTORS; NaN and infinities: DTRAIN_ERR_INVALID. The factor is
     * rounded to f64 or f32, in which the product is made. Ranks may differ in prescale, and in
     * postscale except in an all-reduce. The send buffer is not changed unless the call is in
     * place. */
    double prescale, postscale;
    /* Pushes to a floating-point table that aggregates by AVG (BSP, QUORUM; others:
     * DTRAIN_ERR_INVALID): how much this worker's pushes of the clock count, e.g. its number of
     * samples; finite and > 0, the same for all its pushes of one clock; 0: not said. Each push is
     * multiplied by its weight, and the sum divided by the weights of the workers that have ended
     * the clock: once one of them has said a weight, 1 for who pushed without one, and 0 for who
     * pushed nothing. */
    double weight;
    /* Pulls of tables: waits until every server of the range or rows has applied so many updates
     * (dtrain_event_t.version). DTRAIN_ERR_STATE under BSP, where a clock sees one version, if that
     * is an earlier one; DTRAIN_ERR_PEER when workers were lost without which no update comes.
     * Where any worker may still push (ASYNC, SSP), it waits until its timeout. */
    uint64_t min_version;
} dtrain_op_params_t;

/* ---- communicators --------------------------------------------------------------------------- */
/* How ranks exchange a few bytes before they are connected (rendezvous "oob"): all `size` ranks
 * call; on return recv holds size blobs of len bytes each in rank order. Returns 0, or an error
 * code of the caller's that ends the join. Called from dtrain_comm_create() in its thread. */
typedef int32_t (*dtrain_oob_allgather_fn)(void *arg, const void *send, void *recv, size_t len);
typedef struct dtrain_comm_params {
    uint32_t struct_size;
    int32_t size;                /* number of worker ranks; 0: from the environment         */
    int32_t rank;                /* mine; read only when size > 0                           */
    int32_t servers;             /* number of dedicated parameter servers; with size > 0    */
    int64_t timeout_ns;          /* for joining; 0: option join.timeout; < 0: none          */
    dtrain_oob_allgather_fn oob; /* for "oob"                                      */
    void *oob_arg;
} dtrain_comm_params_t;
/* Joins a job and makes the communicator of all its workers. Collective, blocking. rendezvous:
 *   NULL or "env"         DTRAIN_*, torchrun's, TF_CONFIG, or what mpirun, srun, ... say, with
 *                         DTRAIN_RENDEZVOUS (else ERR_CONFIG; docs/JOINING.md); none: a job of one
 *   "tcp://host:port"     rank 0 listens there
 *   "file:///dir/name"    rank 0 writes its addresses there; a name serves one job
 *   "oob"                 the callback
 * While waiting it logs after 2 s and then every 10 s who is missing. One job may follow another at
 * the same address: who comes before all have left the one before waits for them. */
DTRAIN_API dtrain_status_t dtrain_comm_create(dtrain_context_t *context, const char *rendezvous,
                                              const dtrain_comm_params_t *params,
                                              dtrain_comm_t **comm_p);
/* Exclusive. Local: waits for nobody; pending operations end with DTRAIN_ERR_CANCELED.
 * DTRAIN_ERR_BUSY while graphs of it exist. */
DTRAIN_API dtrain_status_t dtrain_comm_destroy(dtrain_comm_t *comm);
/* One communicator per color (>= 0; negative: none for this rank, *new_p becomes NULL), ranks
 * ordered by (key, old rank). Collective, blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_split(dtrain_comm_t *comm, int32_t color, int32_t key,
                                             dtrain_comm_t **new_p);
/* A communicator of ranks[count], in this order: a process set. All ranks of comm call, with the
 * same list (else DTRAIN_ERR_MISMATCH, without harm to comm); *new_p becomes NULL on those not in
 * it. DTRAIN_ERR_INVALID: an empty list, a rank named twice, or not of comm. Collective, blocking.
 */
DTRAIN_API dtrain_status_t dtrain_comm_subset(dtrain_comm_t *comm, const int32_t *ranks,
                                              int32_t count, dtrain_comm_t **new_p);
DTRAIN_API dtrain_status_t dtrain_comm_duplicate(dtrain_comm_t *comm, dtrain_comm_t **new_p);
/* Ends with DTRAIN_ERR_ABORTED and this reason (may be NULL), on all ranks, every operation that
 * has not ended on this one, and every later one. Never waits for a peer. */
DTRAIN_API dtrain_status_t dtrain_comm_abort(dtrain_comm_t *comm, const char *reason);
/* A new communicator of the ranks that are alive, in the old order; the way on after
 * DTRAIN_ERR_PEER. Every survivor must call it; collective, blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_shrink(dtrain_comm_t *comm, dtrain_comm_t **new_p);
DTRAIN_API int32_t dtrain_comm_rank(const dtrain_comm_t *comm); /* -1 for NULL */
DTRAIN_API int32_t dtrain_comm_size(const dtrain_comm_t *comm); /* -1 for NULL */
/* DTRAIN_OK, or why the communicator is broken (text through dtrain_last_error()). */
DTRAIN_API dtrain_status_t dtrain_comm_status(dtrain_comm_t *comm);
/* Writes up to max failed ranks in ascending order; returns how many there are, or < 0. */
DTRAIN_API int32_t dtrain_comm_failed(dtrain_comm_t *comm, int32_t *ranks, int32_t max);

/* ---- collectives ----------------------------------------------------------------------------- */
/* All ranks of a communicator call the same collectives in the same order; a difference (kind,
 * count, dtype, op, root, order) ends in DTRAIN_ERR_MISMATCH on all ranks, naming both sides.
 * Counts are in elements. In place: send == recv where not said otherwise; other overlaps are
 * DTRAIN_ERR_INVALID. f16 and bf16 are added up in f32 and rounded at the end of each step of the
 * algorithm. Results are bitwise equal on all ranks, and the same from run to run and from
 * processor to processor with the same algorithm, if all ranks' threads round to nearest and keep
 * subnormal numbers, as they do unless told otherwise (by linking with -ffast-math, say). */
enum {
    DTRAIN_F32 = 1,
    DTRAIN_F64 = 2,
    DTRAIN_F16 = 3,
    DTRAIN_BF16 = 4,
    DTRAIN_I8 = 5,
    DTRAIN_U8 = 6,
    DTRAIN_I16 = 7,
    DTRAIN_U16 = 8,
    DTRAIN_I32 = 9,
    DTRAIN_U32 = 10,
    DTRAIN_I64 = 11,
    DTRAIN_U64 = 12
};
/* AVG is the sum over the n ranks, divided by n. Of integers it is the exact sum's quotient,
 * rounded toward zero; f16 is added up in f32 and rounded once, at the end: what comes out is
 * always what the dtype can hold. For that their sums take memory for the whole input, and travel,
 * between hosts or wherever messages are used, as f32 (f16), as 32 bits (integers of 8 and 16), 64
 * (of 32) or 128 (of 64); with prescale 1/n SUM of f16 travels as f16, and loses what is then below
 * its least number. AVG of f32, f64 and bf16 is infinite where the sum is. PROD and SUM of integers
 * wrap. MIN and MAX of anything and NaN are NaN, and -0 is less than 0. B* are bitwise and for
 * integers only. ADASUM is for all-reduce of floating dtypes: gradients that agree are averaged,
 * orthogonal ones added. Pairs of vectors are combined to a (1 - a.b / 2 a.a) + b (1 - a.b / 2 b.b)
 * over a binary tree of ranks, the dot products in double; a vector of zeros adds nothing; a NaN or
 * infinity makes everything NaN. It takes scratch memory of half the vector, of the whole one on
 * some ranks when their number is no power of two. Maleki et al.: Scaling Distributed Training with
 * Adaptive Summation, MLSys 2021. */
enum {
    DTRAIN_SUM = 1,
    DTRAIN_AVG = 2,
    DTRAIN_PROD = 3,
    DTRAIN_MIN = 4,
    DTRAIN_MAX = 5,
    DTRAIN_BAND = 6,
    DTRAIN_BOR = 7,
    DTRAIN_BXOR = 8,
    DTRAIN_ADASUM = 9
};
/* Bytes of one element, 0 for an unknown dtype. */
DTRAIN_API size_t dtrain_dtype_size(uint32_t dtype);
#ifdef __cplusplus
}
#endif
#endif /* DTRAIN_BASICS_H */
#ifdef __cplusplus
extern "C" {
#endif

/* recv[i] = op over ranks of send[i]; both hold count elements. */
DTRAIN_API dtrain_status_t dtrain_allreduce(dtrain_comm_t *comm, const void *send, void *recv,
                                            uint64_t count, uint32_t dtype, uint32_t op,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* As allreduce, the result only on root (elsewhere recv may be NULL and is not touched). */
DTRAIN_API dtrain_status_t dtrain_reduce(dtrain_comm_t *comm, const void *send, void *recv,
                                         uint64_t count, uint32_t dtype, uint32_t op, int32_t root,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p);
/* send holds size * count elements, recv gets the rank-th block of the result.
 * In place: recv == send + rank * count (the other blocks of send are then undefined). */
DTRAIN_API dtrain_status_t dtrain_reduce_scatter(dtrain_comm_t *comm, const void *send, void *recv,
                                                 uint64_t count, uint32_t dtype, uint32_t op,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* counts[size]: elements of each rank's block, equal on all ranks; blocks are packed. */
DTRAIN_API dtrain_status_t dtrain_reduce_scatterv(dtrain_comm_t *comm, const void *send, void *recv,
                                                  const uint64_t *counts, uint32_t dtype,
                                                  uint32_t op, const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* recv gets size blocks of count elements in rank order. In place: send == recv + rank * count. */
DTRAIN_API dtrain_status_t dtrain_allgather(dtrain_comm_t *comm, const void *send, void *recv,
                                            uint64_t count, uint32_t dtype,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* Block r of counts[r] elements lands at recv + displs[r] (elements; NULL: packed). Both arrays are
 * the same on all ranks, else DTRAIN_ERR_MISMATCH. */
DTRAIN_API dtrain_status_t dtrain_allgatherv(dtrain_comm_t *comm, const void *send, void *recv,
                                             const uint64_t *counts, const uint64_t *displs,
                                             uint32_t dtype, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
/* root's buffer to all. */
DTRAIN_API dtrain_status_t dtrain_broadcast(dtrain_comm_t *comm, void *buffer, uint64_t count,
                                            uint32_t dtype, int32_t root,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* root's recv gets size blocks of count elements (elsewhere NULL). In place on root:
 * send == recv + root * count. */
DTRAIN_API dtrain_status_t dtrain_gather(dtrain_comm_t *comm, const void *send, void *recv,
                                         uint64_t count, uint32_t dtype, int32_t root,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p);
/* counts and displs (NULL: packed) as in allgatherv: the same on every rank, though only root's
 * buffer has the blocks. */
DTRAIN_API dtrain_status_t dtrain_gatherv(dtrain_comm_t *comm, const void *send, void *recv,
                                          const uint64_t *counts, const uint64_t *displs,
                                          uint32_t dtype, int32_t root,
                                          const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p);
/* root's send holds size blocks of count elements (elsewhere NULL); each rank gets its own.
 * In place on root: recv == send + root * count. */
DTRAIN_API dtrain_status_t dtrain_scatter(dtrain_comm_t *comm, const void *send, void *recv,
                                          uint64_t count, uint32_t dtype, int32_t root,
                                          const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_scatterv(dtrain_comm_t *comm, const void *send, void *recv,
                                           const uint64_t *counts, const uint64_t *displs,
                                           uint32_t dtype, int32_t root,
                                           const dtrain_op_params_t *params,
                                           dtrain_request_t **request_p);
/* Block j of send goes to block rank of rank j's recv; both hold size * count elements.
 * In place is allowed. */
DTRAIN_API dtrain_status_t dtrain_alltoall(dtrain_comm_t *comm, const void *send, void *recv,
                                           uint64_t count, uint32_t dtype,
                                           const dtrain_op_params_t *params,
                                           dtrain_request_t **request_p);
/* Own counts and displacements (elements; displs NULL: packed) per peer; not in place. A rank's
 * send_counts[j] must equal rank j's recv_counts[rank]. */
DTRAIN_API dtrain_status_t dtrain_alltoallv(
    dtrain_comm_t *comm, const void *send, const uint64_t *send_counts, const uint64_t *send_displs,
    void *recv, const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
    const dtrain_op_params_t *params, dtrain_request_t **request_p);
/* Completes once every rank has called it. */
DTRAIN_API dtrain_status_t dtrain_barrier(dtrain_comm_t *comm, const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p);

/* Point to point: messages of one (sender, tag) arrive in order. A message longer than the receive
 * buffer ends in DTRAIN_ERR_TRUNCATED on the receiver. peer may be the own rank. */
#define DTRAIN_ANY_RANK (-1) /* dtrain_recv: from whoever; the event's peer tells who */
DTRAIN_API dtrain_status_t dtrain_send(dtrain_comm_t *comm, const void *buffer, uint64_t count,
                                       uint32_t dtype, int32_t peer, uint32_t tag,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_recv(dtrain_comm_t *comm, void *buffer, uint64_t count,
                                       uint32_t dtype, int32_t peer, uint32_t tag,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p);

/* ---- gradient queues ------------------------------------------------------------------------- */
/* All-reduces of named tensors that ranks submit in any order, from any thread: the ranks agree on
 * what is ready everywhere, pack small tensors together and reduce them while the program computes
 * on. A thread of the queue's own does it, whatever option progress says; it sleeps while nothing
 * is submitted. See docs/GRADIENTS.md. */
typedef struct dtrain_gradients_params {
    uint32_t struct_size;
    uint32_t flags;        /* none yet                                                            */
    uint64_t bucket_bytes; /* tensors are packed together up to so much; larger ones are reduced
                              where they are. 0: option gradients.bucket. The same on all ranks   */
    int64_t cycle_ns;      /* least time between two looks at what is ready, at most 1 s;
                              0: option gradients.cycle                                           */
    int64_t stall_warn_ns; /* a tensor that waits so long for other ranks is logged, and again
                              after the same time; 0: option gradients.stall; < 0: never          */
    int64_t stall_fail_ns; /* and fails; 0: option gradients.stall_limit; < 0: never              */
} dtrain_gradients_params_t;
/* Collective over comm, blocking: the queue gets a communicator of its own. Any number per
 * communicator. params may be NULL. */
DTRAIN_API dtrain_status_t dtrain_gradients_create(dtrain_comm_t *comm,
                                                   const dtrain_gradients_params_t *params,
                                                   dtrain_gradients_t **gradients_p);
/* Exclusive. The queue ends on all ranks: what is submitted and not finished, and later calls, end
 * with DTRAIN_ERR_CANCELED naming the rank that destroyed its queue first. Waits until the others
 * know: for the bucket being reduced and at most a second more, if they are alive. */
DTRAIN_API dtrain_status_t dtrain_gradients_destroy(dtrain_gradients_t *gradients);
/* recv[i] = op over ranks of send[i], once every rank has submitted a tensor of this name (1 to 255
 * bytes) with the same count (> 0), dtype and op. In place: send == recv. Fails with
 * DTRAIN_ERR_BUSY while a tensor of this name is not finished on this rank. Ends with
 * DTRAIN_ERR_MISMATCH on all ranks, for this tensor only, when they differ, with DTRAIN_ERR_TIMEOUT
 * on all ranks, naming those that did not submit it, when the time of one of them is over. Among
 * tensors that are ready a higher op_params.priority goes first (give the same on all ranks; the
 * one counts that the rank gave which submitted the name first). Other ranks may have begun it: it
 * cannot be cancelled. */
DTRAIN_API dtrain_status_t dtrain_gradients_submit(dtrain_gradients_t *gradients, const char *name,
                                                   const void *send, void *recv, uint64_t count,
                                                   uint32_t dtype, uint32_t op,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* For a rank that has run out of data: until all ranks have joined it contributes zeros to what the
 * others submit (SUM, and AVG, which still divides by the number of all ranks; another op ends in
 * DTRAIN_ERR_UNSUPPORTED on them). Done when all have joined; after that all go on as before. The
 * event's peer, or *last_p of a blocking call (may be NULL), is the rank that joined last.
 * params.timeout_ns 0 is none; after DTRAIN_ERR_TIMEOUT this rank stays joined. */
DTRAIN_API dtrain_status_t dtrain_gradients_join(dtrain_gradients_t *gradients,
                                                 const dtrain_op_params_t *params, int32_t *last_p,
                                                 dtrain_request_t **request_p);
/* Counted since the queue was made, on this rank. */
typedef struct dtrain_gradients_counters {
    uint32_t struct_size; /* the caller's, by DTRAIN_INIT; no more is written    */
    uint32_t reserved;
    uint64_t cycles;        /* tiny exchanges of what is ready                     */
    uint64_t exchanges;     /* of them, followed by a full one (new names, joins)  */
    uint64_t tensors;       /* of this rank, reduced                               */
    uint64_t buckets;       /* all-reduces of data, packed or not                  */
    uint64_t fused_tensors; /* tensors that were packed with others                */
    uint64_t fused_bytes;   /* and the bytes of their buckets                      */
    uint64_t stalls;        /* stall reports logged                                */
} dtrain_gradients_counters_t;
DTRAIN_API dtrain_status_t dtrain_gradients_stats(dtrain_gradients_t *gradients,
                                                  dtrain_gradients_counters_t *stats);

/* ---- compressed all-reduce ------------------------------------------------------------------- */
/* An all-reduce of one f32 vector, again and again, with less on the wire. What a step does not
 * send of its input is kept and added to the next step's (error feedback), so that over time
 * nothing is lost. What to choose, formulas and sources: docs/COMPRESSION.md. Results are bitwise
 * equal on all ranks. A NaN or infinity makes NaN, or infinity, of: its own element (F16, BF16,
 * TOPK, which sends such elements first), its block (INT8, ONEBIT), everything (POWERSGD); it is
 * never kept. */
typedef struct dtrain_compressor dtrain_compressor_t;
enum {
    DTRAIN_COMPRESS_F16 = 1, /* beyond 65504: infinity                                        */
    DTRAIN_COMPRESS_BF16 = 2,
    DTRAIN_COMPRESS_INT8 = 3,    /* a block's greatest magnitude is 127                           */
    DTRAIN_COMPRESS_TOPK = 4,    /* the elements of greatest magnitude, exactly                   */
    DTRAIN_COMPRESS_ONEBIT = 5,  /* signs, and a block's mean magnitude                           */
    DTRAIN_COMPRESS_POWERSGD = 6 /* a matrix of low rank                                          */
};
#define DTRAIN_COMPRESS_NO_FEEDBACK UINT32_C(1) /* what is not sent is lost */
#define DTRAIN_COMPRESS_STOCHASTIC  UINT32_C(2) /* INT8: rounds at random, right on average */
typedef struct dtrain_compressor_params {
    uint32_t struct_size;
    uint32_t kind;  /* DTRAIN_COMPRESS_*                                                          */
    uint64_t count; /* elements of the vector, > 0; TOPK: < 2^32                                  */
    uint32_t dtype; /* DTRAIN_F32, or 0 for it; others: DTRAIN_ERR_UNSUPPORTED */
    uint32_t flags; /* DTRAIN_COMPRESS_NO_FEEDBACK, ...                                           */
    uint32_t block; /* INT8, ONEBIT: elements with a scale of their own, a multiple of 8 up to
                       65536; 0: 256                                                              */
    uint32_t rank;  /* POWERSGD: at most 64; 0: 2                                                 */
    uint64_t rows;  /* POWERSGD: of the matrix, a divisor of count; 0: nearly square              */
    uint64_t seed;  /* of what is random                                                          */
    double ratio;   /* TOPK: part of the elements that a rank sends, up to 1; 0: 0.01. One element
                       at least                                                                   */
} dtrain_compressor_params_t;
/* Collective over comm, blocking: all ranks give the same parameters, else DTRAIN_ERR_MISMATCH. Its
 * operations run on a duplicate of comm: they neither wait for nor disturb calls on comm. All
 * memory is allocated now (docs/COMPRESSION.md says how much). */
DTRAIN_API dtrain_status_t dtrain_compressor_create(dtrain_comm_t *comm,
                                                    const dtrain_compressor_params_t *params,
                                                    dtrain_compressor_t **compressor_p);
/* Exclusive. Local: waits for nobody; a pending operation ends with DTRAIN_ERR_CANCELED. */
DTRAIN_API dtrain_status_t dtrain_compressor_destroy(dtrain_compressor_t *compressor);
/* recv = the sum (DTRAIN_SUM) or mean (DTRAIN_AVG) over ranks of send, nearly; both hold `count`
 * f32. In place: send == recv. Collective; one at a time: DTRAIN_ERR_BUSY while the one before is
 * not finished. After a failure the compressor is of no more use, like a broken communicator. */
DTRAIN_API dtrain_status_t dtrain_compressor_allreduce(dtrain_compressor_t *compressor,
                                                       const float *send, float *recv, uint32_t op,
                                                       const dtrain_op_params_t *params,
                                                       dtrain_request_t **request_p);
/* Forgets what was kept, as after create; call it on all ranks between the same two operations.
 * DTRAIN_ERR_BUSY while an operation runs. */
DTRAIN_API dtrain_status_t dtrain_compressor_reset(dtrain_compressor_t *compressor);
typedef struct dtrain_compression_stats { /* 64 bytes, frozen; since create */
    uint64_t operations;
    uint64_t raw_bytes;  /* what this rank would have sent without compression,               */
    uint64_t sent_bytes; /* and what it sent; both without headers, by the cheapest algorithm */
    double residual;     /* Euclidean norm of what this rank keeps                            */
    uint64_t reserved[4];
} dtrain_compression_stats_t;
/* DTRAIN_ERR_BUSY while an operation runs. */
DTRAIN_API dtrain_status_t dtrain_compressor_stats(dtrain_compressor_t *compressor,
                                                   dtrain_compression_stats_t *stats_p);

/* ---- graphs: averages with neighbours instead of all ranks (docs/DECENTRALIZED.md) ----------- */
/* A graph is a mixing matrix W over the ranks of a communicator: W[i][j] is the weight with which
 * rank i takes in the value of rank j. Steps of dtrain_neighbor_average() bring all ranks' values
 * to their mean when W's rows and columns each sum to one. Every kind but CUSTOM is such:
 *   RING         the ranks before and after            GRID  a torus, as square as possible
 *   EXPONENTIAL  from ranks rank - 1, - 2, - 4, ...    FULL  all ranks
 * with Metropolis-Hastings weights, 1 / (1 + the larger number of neighbours of the two ranks);
 * EXPONENTIAL, whose edges go one way, weighs all alike. A graph has at most 2^20 edges. */
enum {
    DTRAIN_GRAPH_RING = 1,
    DTRAIN_GRAPH_GRID = 2,
    DTRAIN_GRAPH_EXPONENTIAL = 3,
    DTRAIN_GRAPH_FULL = 4,
    DTRAIN_GRAPH_CUSTOM = 5
};
/* For CUSTOM: columns need not sum to one; values then tend to a common, but weighted mean. */
#define DTRAIN_GRAPH_ROWS_ONLY UINT64_C(1)
#define DTRAIN_GRAPH_SIGNED    UINT64_C(2) /* for CUSTOM: weights may be negative */
typedef struct dtrain_graph_params {
    uint32_t struct_size;
    uint32_t kind;  /* DTRAIN_GRAPH_*, the same on all ranks                         */
    uint64_t flags; /* DTRAIN_GRAPH_ROWS_ONLY, DTRAIN_GRAPH_SIGNED; equal on all ranks */
    /* For CUSTOM only; the arrays are read during the call. */
    int32_t in_count, out_count;
    const int32_t *in_neighbors;  /* [in_count]: ranks that this rank hears of, not itself       */
    const double *in_weights;     /* [in_count]; NULL on all ranks: Metropolis-Hastings weights,
                                     for edges that all go both ways                             */
    const int32_t *out_neighbors; /* [out_count]: ranks that hear of this one, to be checked
                                     against what they say; NULL: whoever names this rank        */
    double self_weight;           /* with in_weights: of the own value                           */
} dtrain_graph_params_t;
/* Collective, blocking. Refused on all ranks, naming rank or edge, and without harm to comm:
 *   ERR_INVALID   a row that does not sum to 1 within 1e-6, or a column without ROWS_ONLY; a rank
 *                 that cannot be reached from another along edges whose weight is not 0; an edge
 *                 given twice, to the rank itself or to none; a weight that is not finite, or is
 *                 negative without SIGNED; parameters of a rank that are wrong by themselves
 *   ERR_MISMATCH  kinds or flags differ between ranks, or out_neighbors from what others expect
 *   ERR_LIMIT     more edges than 2^20
 * The graph has to be destroyed before comm. */
DTRAIN_API dtrain_status_t dtrain_graph_create(dtrain_comm_t *comm,
                                               const dtrain_graph_params_t *params,
                                               dtrain_graph_t **graph_p);
/* Exclusive, local; NULL is fine. Operations in flight go on. */
DTRAIN_API void dtrain_graph_destroy(dtrain_graph_t *graph);
enum { DTRAIN_GRAPH_IN = 1, DTRAIN_GRAPH_OUT = 2 };
/* Writes up to max of the ranks that this one hears of (IN) or that hear of it (OUT), in ascending
 * order, and the weights of these edges (each array may be NULL); returns how many there are, or
 * < 0. */
DTRAIN_API int32_t dtrain_graph_neighbors(const dtrain_graph_t *graph, uint32_t direction,
                                          int32_t *ranks, double *weights, int32_t max);
/* W[rank][rank] */
DTRAIN_API dtrain_status_t dtrain_graph_self_weight(const dtrain_graph_t *graph, double *weight_p);
/* 1 - the largest modulus of W's eigenvalues besides the 1 of the mean: k averages leave about
 * (1 - gap)^k of the distance to the mean, so more is better; 1 for FULL, and with 0 or less the
 * values do not come together (a ring of even size without self weights). Local; a dense method in
 * memory and time of n^2 and n^3 for n ranks, DTRAIN_ERR_LIMIT beyond 256. */
DTRAIN_API dtrain_status_t dtrain_graph_spectral_gap(const dtrain_graph_t *graph, double *gap_p);
/* Operations over a graph are collectives of its communicator: all ranks call them in the same
 * order among its others; they wait for neighbours only.
 *
 * recv[i] = self_weight * send[i] + sum over in-neighbours of weight * their send[i], for f32, f64,
 * f16 and bf16. Added up in the order of the ranks, the own one included, f16 and bf16 in f32 with
 * one rounding at the end; weights are rounded to f32 unless the dtype is f64. In place:
 * send == recv. */
DTRAIN_API dtrain_status_t dtrain_neighbor_average(dtrain_graph_t *graph, const void *send,
                                                   void *recv, uint64_t count, uint32_t dtype,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* recv gets a block of count elements, their send, from each in-neighbour in the order of
 * dtrain_graph_neighbors(). Not in place. */
DTRAIN_API dtrain_status_t dtrain_neighbor_allgather(dtrain_graph_t *graph, const void *send,
                                                     void *recv, uint64_t count, uint32_t dtype,
                                                     const dtrain_op_params_t *params,
                                                     dtrain_request_t **request_p);
/* send holds a block of count elements for each out-neighbour, recv gets one from each
 * in-neighbour, both in the order of dtrain_graph_neighbors(). Not in place. */
DTRAIN_API dtrain_status_t dtrain_neighbor_alltoall(dtrain_graph_t *graph, const void *send,
                                                    void *recv, uint64_t count, uint32_t dtype,
                                                    const dtrain_op_params_t *params,
                                                    dtrain_request_t **request_p);

/* ---- parameter server ------------------------------------------------------------------------ */
/* A table is a dense array of `length` elements, split by key range over the job's servers, or
 * sparse: rows by 64-bit keys. A job without servers spreads it over its ranks. The same program
 * runs either way.
 *
 * Consistency, with a clock per worker that dtrain_table_clock() advances:
 *   ASYNC  every push is applied at once, every pull returns what is there
 *   BSP    pushes of one clock are aggregated and applied together once all workers have clocked;
 *          a pull at clock c sees exactly the updates of all workers' clocks before c
 *   SSP    pushes are applied at once; a pull at clock c waits until every worker's clock is at
 *          least c - staleness, so that it sees all updates before that
 *   QUORUM as BSP, but a server's step is over once the first `quorum` workers have ended it there:
 *          exactly their pushes are aggregated. Pushes and clocks that come later are dropped and
 *          counted (dtrain_stats_table), without an error; the worker that was late goes on at the
 *          server's newest step that it has been told of (TensorFlow's SyncReplicasOptimizer).
 *          Every server counts for itself. A pull at clock c sees at least c updates. */
enum { DTRAIN_ASYNC = 1, DTRAIN_BSP = 2, DTRAIN_SSP = 3, DTRAIN_QUORUM = 4 };
/* What a push of g does to a value w (hyper-parameters below; formulas in
 * docs/PARAMETER_SERVER.md). All but ADD, ASSIGN, MIN and MAX need a floating-point table. */
enum {
    DTRAIN_RULE_ADD = 1,
    DTRAIN_RULE_ASSIGN = 2,
    DTRAIN_RULE_SGD = 3,
    DTRAIN_RULE_MOMENTUM = 4,      /* Polyak 1964                                      */
    DTRAIN_RULE_ADAGRAD = 5,       /* Duchi, Hazan and Singer 2011                     */
    DTRAIN_RULE_ADAM = 6,          /* Kingma and Ba 2015                               */
    DTRAIN_RULE_MEAN = 7,          /* the mean of all pushes of the element so far     */
    DTRAIN_RULE_MIN = 8,           /* the least of the value and all pushes            */
    DTRAIN_RULE_MAX = 9,           /* the greatest                                     */
    DTRAIN_RULE_NESTEROV = 10,     /* Sutskever et al. 2013                            */
    DTRAIN_RULE_ADAGRAD_ROWS = 11, /* one sum per row, of the mean squares of its g    */
    DTRAIN_RULE_RMSPROP = 12,      /* Tieleman and Hinton 2012                         */
    DTRAIN_RULE_ADADELTA = 13,     /* Zeiler 2012                                      */
    DTRAIN_RULE_ADAMW = 14,        /* Loshchilov and Hutter 2019                       */
    DTRAIN_RULE_AMSGRAD = 15,      /* Reddi, Kale and Kumar 2018                       */
    DTRAIN_RULE_FTRL = 16,         /* FTRL-proximal: McMahan et al. 2013               */
    DTRAIN_RULE_LARS = 17,         /* You, Gitman and Ginsburg 2017                    */
    DTRAIN_RULE_LAMB = 18,         /* You et al. 2020                                  */
    DTRAIN_RULE_DC_SGD = 19,       /* delay-compensated SGD: Zheng et al. 2017; no BSP */
    DTRAIN_RULE_FUNCTION = 20      /* the servers' own, by name: see dtrain_function.h  */
};
/* What a row of a sparse table holds before its first push: a function of seed and key, the same
 * whichever server holds it. UNIFORM and NORMAL need a floating-point table. */
enum {
    DTRAIN_INITIAL_CONSTANT = 1, /* `initial`                                      */
    DTRAIN_INITIAL_UNIFORM = 2,  /* from initial - spread up to initial + spread   */
    DTRAIN_INITIAL_NORMAL = 3    /* mean `initial`, standard deviation `spread`    */
};
/* Numbers with a default have it where they are 0 and their bit is not in `given`; where it is they
 * are taken as they are: params.momentum = 0; params.given |= DTRAIN_GIVEN_MOMENTUM; */
#define DTRAIN_GIVEN_LEARNING_RATE UINT32_C(0x1)
#define DTRAIN_GIVEN_MOMENTUM      UINT32_C(0x2)
#define DTRAIN_GIVEN_BETA1         UINT32_C(0x4)
#define DTRAIN_GIVEN_BETA2         UINT32_C(0x8)
#define DTRAIN_GIVEN_EPSILON       UINT32_C(0x10)
#define DTRAIN_GIVEN_RHO           UINT32_C(0x20)
#define DTRAIN_GIVEN_TRUST         UINT32_C(0x40)
#define DTRAIN_GIVEN_FTRL_BETA     UINT32_C(0x80)
#define DTRAIN_GIVEN_COMPENSATION  UINT32_C(0x100) /* not of segments */
#define DTRAIN_GIVEN_ACCUMULATOR   UINT32_C(0x200)
/* Columns [first, first + count) of each row, with a rule of their own; numbers as those of the
 * same names in dtrain_table_params_t. */
#define DTRAIN_SEGMENTS 16 /* at most */
typedef struct dtrain_segment {
    uint32_t struct_size; /* the same in all of an array                                 */
    uint32_t rule;        /* DTRAIN_RULE_*, but DC_SGD and FUNCTION                      */
    uint64_t first, count;
    double learning_rate, momentum, beta1, beta2, epsilon, rho;
    double clip_value, clip_norm, weight_decay, l1, l2, trust, ftrl_beta;
    uint32_t given; /* DTRAIN_GIVEN_*                                                    */
    uint32_t reserved;
    double accumulator;
} dtrain_segment_t;
/* What becomes of a push that has a NaN or an infinity. What is taken makes values NaN, or
 * infinite, which no later push mends. */
enum {
    DTRAIN_NOT_FINITE_TAKE = 1,   /* it is applied like any other                               */
    DTRAIN_NOT_FINITE_REFUSE = 2, /* DTRAIN_ERR_INVALID, naming the element or key, before any of
                                     it leaves the worker                                       */
    DTRAIN_NOT_FINITE_DROP = 3    /* servers leave out the requests (at most 256 KiB each) that have
                                     one, without an error, and count them                      */
};
/* What ADAM and its kin and LAMB take for the number of an update, from 1. MEAN has OWN. */
enum {
    DTRAIN_STEPS_OWN = 1, /* of the element's, or row's, own: rare rows are corrected as new ones */
    DTRAIN_STEPS_TABLE = 2 /* of the table's on the server, t as of schedules below: as torch.optim
                              and Keras, whose optimizers have one count for all; none is kept   */
};
/* What the mean of an aggregate of DTRAIN_AVG is taken over. */
enum {
    DTRAIN_MEAN_WORKERS = 1, /* all whose pushes make the update, with or without the row */
    DTRAIN_MEAN_PUSHERS = 2  /* of each row those that have pushed it in the clock, once each with
                                its weight, or 1; sparse tables without a function          */
};
/* The learning rate as a function of t, the number of the table's update on the server, from 1
 * (BSP, QUORUM: of the clock; else of the push, whoever made it): learning_rate, which
 * dtrain_table_set_rate() replaces, times t / warmup_steps while that is below 1, then times f(s),
 * where s counts updates after the first of the whole rate: s = t - max(1, warmup_steps). With
 * n = decay_steps and d = decay, f is: */
enum {
    DTRAIN_SCHEDULE_CONSTANT = 1,    /* 1                                                        */
    DTRAIN_SCHEDULE_LINEAR = 2,      /* from 1 to d in n updates, and then d                     */
    DTRAIN_SCHEDULE_COSINE = 3,      /* likewise, d + (1 - d) * (1 + cos(pi * s / n)) / 2:
                                        Loshchilov and Hutter 2017                               */
    DTRAIN_SCHEDULE_EXPONENTIAL = 4, /* d^(s / n)                                                */
    DTRAIN_SCHEDULE_STAIRCASE = 5,   /* d^floor(s / n)                                           */
    DTRAIN_SCHEDULE_INVERSE_SQRT = 6 /* sqrt(n / (n + s)): Vaswani et al. 2017 if n is the warmup */
};
/* Where the parts of a table are put. docs/PARAMETER_SERVER.md, "Placement", has what each is for.
 */
enum {
    DTRAIN_PLACE_RANGE = 1,       /* contiguous ranges of elements, or of keys                  */
    DTRAIN_PLACE_HASH = 2,        /* by a hash of the key; dense: of the block's number         */
    DTRAIN_PLACE_CONSISTENT = 3,  /* on a circle with virtual nodes: Karger et al. 1997         */
    DTRAIN_PLACE_ROUND_ROBIN = 4, /* the whole table on one server, the next one in turn        */
    DTRAIN_PLACE_GREEDY = 5,      /* likewise, the one that tables fill least                   */
    DTRAIN_PLACE_USER = 6         /* a callback says it                                         */
};
/* USER: the server (from 0) of elements, or keys, [first, first + count), of so many servers.
 * Called in dtrain_table_create(), in its thread, for each block in turn; must give the same on all
 * workers, since the map is made of it. */
typedef uint32_t (*dtrain_place_fn)(void *arg, uint64_t first, uint64_t count, uint32_t servers);
typedef struct dtrain_table_params {
    uint32_t struct_size;
    uint32_t dtype;       /* of the caller's values; see storage_dtype, wire_dtype       */
    uint64_t length;      /* elements; 0 with dim > 0                                    */
    uint32_t rule;        /* DTRAIN_RULE_*; 0: ADD                                       */
    uint32_t consistency; /* DTRAIN_ASYNC, ...; 0: ASYNC                                 */
    uint32_t staleness;   /* SSP's bound in clocks; elsewhere 0                          */
    uint32_t aggregate;   /* BSP, QUORUM: DTRAIN_SUM or DTRAIN_AVG over workers; 0: SUM. MIN
                             and MAX have their own, and refuse AVG                      */
    /* Numbers of the rule, 0 or more (FTRL's rate: more). Given to a rule that does not have them
     * they are refused, and so are those out of range; defaults if 0 and not `given`: */
    double learning_rate; /* of all optimizers: 0.01, ADADELTA 1; segments: a factor, 1  */
    double momentum;      /* MOMENTUM, NESTEROV, LARS: 0.9; less than 1                  */
    double beta1, beta2;  /* ADAM and its kin, LAMB: 0.9, 0.999; less than 1             */
    double epsilon; /* ADAGRAD(_ROWS), RMSPROP, ADAM and its kin: 1e-8; ADADELTA, LAMB: 1e-6 */
    double initial; /* value of every element before the first push or set         */
    /* Elements of a row, a divisor of length; 0: none. A row lies on one server. Rules with norms
     * (ADAGRAD_ROWS, LARS, LAMB, and all with clip_norm) take them over each row, 0 being one row
     * of the whole table, and are pushed whole rows; these hold at most 256 KiB except under BSP.
     */
    uint64_t row_length;
    double rho; /* RMSPROP, ADADELTA: decay of the mean square: 0.9; less than 1, see `given` */
    /* The following change what optimizers do (elsewhere DTRAIN_ERR_INVALID); 0: nothing. In this
     * order: clip, add weight_decay * w to g (ADAMW, LARS, LAMB: as their papers), apply the rule,
     * shrink w by l1 and l2 (proximal step of Duchi and Singer 2009 with the learning rate; FTRL:
     * as its paper). */
    double clip_value; /* each g is limited to [-clip_value, clip_value]              */
    double clip_norm;  /* each row of g is scaled down to this L2 norm, of what is finite */
    double weight_decay, l1, l2;
    double trust;        /* LARS: trust coefficient: 0.001; see `given`                 */
    double ftrl_beta;    /* FTRL: 1; see `given`                                        */
    double compensation; /* DC_SGD: lambda: 0.04; see `given`                           */
    /* Sparse tables: see dtrain_table_push_rows(). Elsewhere 0. */
    uint32_t dim;          /* elements of a row; 0: the table is dense                    */
    uint32_t distribution; /* DTRAIN_INITIAL_*; 0: CONSTANT                               */
    double spread;         /* UNIFORM, NORMAL                                             */
    uint64_t seed;         /* of what is random, also of how values are rounded           */
    uint64_t max_bytes;    /* of rows, state and index on each server, a row at least; 0: see
                              ps.memory                                                   */
    /* FUNCTION (elsewhere NULL): the name of the servers' function, copied. With a row_length
     * ranges that are pushed or pulled are whole rows of at most 256 KiB at 8 bytes an element. */
    const char *function;
    /* Rules by columns of the rows (of dim, or row_length, elements), which the segments cover in
     * order, each column once; `rule` is 0, and so are the numbers that a segment has, but for
     * learning_rate: the segments' rates are multiplied by it, and by what replaces it; 0: 1. Norms
     * are taken over the segment's part of a row. Ranges that are pushed are whole rows of at most
     * 256 KiB. Copied. */
    const dtrain_segment_t *segments;
    uint32_t segment_count;
    uint32_t reserved;
    uint32_t quorum;       /* QUORUM: workers whose pushes make a step, 1 to all          */
    uint32_t reproducible; /* 1: sums are made in the order of ranks and of each worker's calls, so
                              that two runs give the same bits; BSP, or QUORUM of all workers */
    /* What servers keep values in, and what pushes and pulls travel as; 0: the table's dtype, as
     * which others than these have to be kept. An F32 table may be either, or both, F16, BF16 or I8
     * (rows of 2 and more). An F16 or BF16 table may be kept as F32, a master copy: then nothing of
     * an update is lost. The arithmetic, sums of gradients and state of all of these are F32; what
     * is set travels as the caller has it, state as F32. I8: blocks of up to 128 values of a row
     * (of dim, or row_length, elements; else of the table, on the wire of a request) with one F32
     * scale each, value = byte * scale, scale = largest magnitude / 127 (row-wise quantisation as
     * of embedding tables: Guan et al. 2019). A NaN or an infinity makes its block NaN.
     * What an update makes of values that are kept as F16, BF16 or I8 is rounded at random, down or
     * up, so that the mean is exact and small updates count (Gupta et al., ICML 2015): a function
     * of seed, key or place, and number of updates on the server. What is set, initial values,
     * ASSIGN, MIN and MAX, and all on the wire are rounded to nearest even. */
    uint32_t storage_dtype; /* DTRAIN_F16, ...: of values on the servers and in checkpoints     */
    uint32_t wire_dtype;    /* of pushes, and of what pulls bring                              */
    uint32_t placement;     /* DTRAIN_PLACE_*; 0: RANGE of a dense table, HASH of a sparse one */
    uint32_t virtual_nodes; /* CONSISTENT: of the server of the greatest weight, <= 1024; 0: 256 */
    /* Dense HASH, CONSISTENT, USER: elements of a block, which lies on one server; whole rows, at
     * most 16384 blocks of the table; 0: about 65536 elements. */
    uint64_t placement_block;
    /* Sparse RANGE, USER: keys are below this (others lie where the last one does); 0: any. USER's
     * blocks are then of the least power of two of keys that leaves at most 16384 of them. */
    uint64_t key_count;
    /* ROUND_ROBIN, GREEDY: a table that takes more bytes, with state and sums, than this lies on
     * all servers (dense: RANGE, sparse: HASH); 0: none does. A sparse table takes max_bytes. */
    uint64_t split_bytes;
    /* What each server is to hold, next to the others: as many as there are servers
     * (dtrain_table_describe_server). NULL: equal; if some of the servers are workers and others
     * are not (option ps.serve), as dtrain_server_weights() says. Not for USER. Copied. */
    const uint32_t *weights;
    dtrain_place_fn place; /* USER (elsewhere NULL)                                        */
    void *place_arg;
    uint32_t weight_count;
    uint32_t given; /* DTRAIN_GIVEN_*: of the numbers above that are meant also if they are 0 */
    uint32_t not_finite; /* DTRAIN_NOT_FINITE_*, of floating-point tables; 0: TAKE          */
    uint32_t steps;      /* DTRAIN_STEPS_*, of rules that count updates; 0: OWN             */
    /* What ADAGRAD(_ROWS)'s sum, FTRL's n, RMSPROP's and ADADELTA's square begin with; of these.
     * Other state begins with 0. FUNCTION: its to use. */
    double accumulator;
    uint32_t mean_over;    /* DTRAIN_MEAN_*, with DTRAIN_AVG; 0: WORKERS                    */
    uint32_t schedule;     /* DTRAIN_SCHEDULE_*, of optimizers; 0: CONSTANT                 */
    uint64_t warmup_steps; /* 0: none                                                       */
    uint64_t decay_steps;  /* of what is not CONSTANT: 1 and more                           */
    /* LINEAR, COSINE: 0 and more; EXPONENTIAL, STAIRCASE: more than 0. FTRL divides by the rate:
     * more than 0, and 1 and more. */
    double decay;
} dtrain_table_params_t;
/* Collective over comm (which must be the job's own, not a split one), blocking: all workers give
 * the same name and parameters, else DTRAIN_ERR_MISMATCH on all of them, with the first difference
 * and both sides; what is wrong by itself on one is refused on all, naming its rank. Then nobody
 * has the table, and comm is as it was. name: 1 to 224 bytes, of which those that are no letters,
 * digits, '_', '-' or '.' count three: it becomes a part of checkpoints' file names. */
DTRAIN_API dtrain_status_t dtrain_table_create(dtrain_comm_t *comm, const char *name,
                                               const dtrain_table_params_t *params,
                                               dtrain_table_t **table_p);
/* Makes a function known to the server in this context (a dedicated one, or the one that each
 * worker of a job without servers is), for tables that are made later. It is copied; `user` and
 * code must outlive the context. DTRAIN_ERR_VERSION: of another ABI; DTRAIN_ERR_STATE: the context
 * has one of this name; DTRAIN_ERR_INVALID says what is wrong. Any thread. */
DTRAIN_API dtrain_status_t dtrain_function_register(dtrain_context_t *context,
                                                    const struct dtrain_function *function);
/* Exclusive, local; the servers drop the table when the last worker has destroyed it. */
DTRAIN_API dtrain_status_t dtrain_table_destroy(dtrain_table_t *table);
/* Range [first, first + count) of the table, count elements of the table's dtype in the caller's
 * buffer. A push is done when every server has accepted it; it is applied exactly once, however
 * often the network made it be sent again. The event's version counts the updates applied to the
 * range's servers (the lowest of them). */
DTRAIN_API dtrain_status_t dtrain_table_push(dtrain_table_t *table, uint64_t first, uint64_t count,
                                             const void *values, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_pull(dtrain_table_t *table, uint64_t first, uint64_t count,
                                             void *values, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
/* A push followed by a pull of the same range in one round trip. pushed == pulled is allowed.
 * Under BSP the pull is one of the next clock: this call clocks the worker, too. */
DTRAIN_API dtrain_status_t dtrain_table_push_pull(dtrain_table_t *table, uint64_t first,
                                                  uint64_t count, const void *pushed, void *pulled,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Overwrites values whatever the rule and the clock (initialisation, restore). */
DTRAIN_API dtrain_status_t dtrain_table_set(dtrain_table_t *table, uint64_t first, uint64_t count,
                                            const void *values, const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* Replaces the learning rate of an optimizer's table, whichever worker says it; the last to
 * arrive at a server wins. BSP: from the updates of this worker's current clock on (which must not
 * have ended: wait for this before the clock); else, from the pushes on that are made after this is
 * complete. Done when every server has it; given up early, it may still arrive. DTRAIN_ERR_INVALID:
 * the rule has no rate. */
DTRAIN_API dtrain_status_t dtrain_table_set_rate(dtrain_table_t *table, double rate,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* The number of the server of each of these elements (a sparse table: keys). Local; thread-safe.
 * DTRAIN_ERR_INVALID: an element that the table does not have. */
DTRAIN_API dtrain_status_t dtrain_table_locate(const dtrain_table_t *table, const uint64_t *items,
                                               uint64_t count, uint32_t *servers);
typedef struct dtrain_table_server {
    uint32_t struct_size;
    int32_t rank;      /* of the worker that it is; -1: a dedicated one                          */
    uint64_t elements; /* of a dense table that it holds, in                                     */
    uint64_t ranges;   /* so many ranges                                                         */
    double share;      /* of all elements, or of all keys (or of their hashes): 0 to 1           */
} dtrain_table_server_t;
/* What a server holds of the table. Servers are numbered from 0, dedicated ones first, then workers
 * that serve, in the order of their ranks. Local; thread-safe. DTRAIN_ERR_NOT_FOUND after the last.
 */
DTRAIN_API dtrain_status_t dtrain_table_describe_server(const dtrain_table_t *table,
                                                        uint32_t server,
                                                        dtrain_table_server_t *out);
/* The rule's state, for checkpoints: arrays numbered from 0 of one number per element, or per row
 * (ADAGRAD_ROWS; LAMB's steps; steps of sparse tables and of those with segments; none is there if
 * they are the table's); of a segment as
 * many numbers per row as it has columns, and whole rows of these are pulled and set. Writes the
 * array's name ("momentum", "segment0.momentum",
 * "steps"; valid as long as the table), its dtype (F64 for an F64 table, else F32; U64 for steps;
 * as a function of one's own says) and how many numbers it has (a sparse table: for each row).
 * Local. DTRAIN_ERR_NOT_FOUND after the last array. What DC_SGD keeps of each worker's last pull is
 * none: pull again after a restore. */
DTRAIN_API dtrain_status_t dtrain_table_describe_state(const dtrain_table_t *table, uint32_t index,
                                                       const char **name_p, uint32_t *dtype_p,
                                                       uint64_t *count_p);
/* Numbers [first, first + count) of a state array, in its dtype; ordered as pull and set of values
 * are, and neither waits for a clock. A count of steps is that of updates done. */
DTRAIN_API dtrain_status_t dtrain_table_pull_state(dtrain_table_t *table, uint32_t index,
                                                   uint64_t first, uint64_t count, void *state,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_set_state(dtrain_table_t *table, uint32_t index,
                                                  uint64_t first, uint64_t count, const void *state,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Ends this worker's current clock: its pushes so far belong to it. */
DTRAIN_API dtrain_status_t dtrain_table_clock(dtrain_table_t *table,
                                              const dtrain_op_params_t *params,
                                              dtrain_request_t **request_p);
/* Changes the mode: collective over comm, the job's own, and blocking. Ends every worker's clock as
 * dtrain_table_clock() does, also when it fails; then all workers are at one clock, and the table
 * has the consistency, staleness, quorum and reproducible of params (other fields are not read).
 * BSP: what was pushed is applied; QUORUM: what no quorum has ended is dropped. Values and state
 * stay. Wait for this worker's other operations on the table first (DTRAIN_ERR_STATE).
 * DTRAIN_ERR_MISMATCH: workers ask for different modes, with both sides; DTRAIN_ERR_INVALID names
 * the field; DTRAIN_ERR_LIMIT: a server has no memory for the sums. What keeps one worker from
 * taking part, its own arguments too, all workers get, with its rank and reason. After these the
 * table goes on in the mode that it had. Once all have agreed the change is made, whatever else
 * fails.
 * When workers were lost: over the communicator that dtrain_comm_shrink() has made of the job's
 * own, so with all who are left. The table then goes on with these, in any mode, the one that it
 * had or another: nothing waits for who was lost any more. */
DTRAIN_API dtrain_status_t dtrain_table_set_consistency(dtrain_comm_t *comm, dtrain_table_t *table,
                                                        const dtrain_table_params_t *params,
                                                        const dtrain_op_params_t *op);
/* Sparse tables (params.dim > 0): rows of dim elements, each addressed by any 64-bit key, spread
 * over the servers by a hash of the key. keys[count], in any order, may repeat; values: count rows
 * of dim elements of the table's dtype, row i for keys[i]. Both arrays belong to the library until
 * the operation is done. count <= UINT32_MAX; 0 is nothing to do.
 * A push is one update of each distinct key: rows of a key that repeats are added up, in the
 * table's type (F16 and BF16: in F32, and rounded once) and the order of the array (ASSIGN: the
 * last one counts; MIN, MAX: the least or greatest). It makes the rows that are not there. A push
 * that a server's memory limit (max_bytes of the table, option ps.memory of the server) has no room
 * for ends with DTRAIN_ERR_LIMIT and is applied on no server: it may be repeated once there is
 * room. (One that takes several requests, with such limits, first asks all its servers for room: a
 * round trip more.) A pull of a key without a row gives its initial values, and makes no row.
 * Clocks, versions and consistency are as for ranges; a pull is atomic per row on its server.
 * DTRAIN_ERR_INVALID: the table is dense (and the calls for ranges, on a sparse one), NULL, or
 * count * dim overflows. */
DTRAIN_API dtrain_status_t dtrain_table_push_rows(dtrain_table_t *table, const uint64_t *keys,
                                                  uint64_t count, const void *values,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_pull_rows(dtrain_table_t *table, const uint64_t *keys,
                                                  uint64_t count, void *values,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Both in one round trip; pushed == pulled is allowed. Under BSP as dtrain_table_push_pull(): this
 * call clocks the worker, too. */
DTRAIN_API dtrain_status_t dtrain_table_push_pull_rows(dtrain_table_t *table, const uint64_t *keys,
                                                       uint64_t count, const void *pushed,
                                                       void *pulled,
                                                       const dtrain_op_params_t *params,
                                                       dtrain_request_t **request_p);
/* Overwrites values of rows whatever the rule and the clock, and makes those that are not there; of
 * a key that repeats the last row counts. State stays. Limits as for a push. */
DTRAIN_API dtrain_status_t dtrain_table_set_rows(dtrain_table_t *table, const uint64_t *keys,
                                                 uint64_t count, const void *values,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* Drops rows and their state, at once, whatever the clock; under BSP also what was pushed for them
 * in clocks that have not ended. Keys without a row are no error. The memory is used for new rows
 * of the table. */
DTRAIN_API dtrain_status_t dtrain_table_erase_rows(dtrain_table_t *table, const uint64_t *keys,
                                                   uint64_t count, const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* How many rows all servers hold; *count_p is written when the operation is done. */
DTRAIN_API dtrain_status_t dtrain_table_count_rows(dtrain_table_t *table, uint64_t *count_p,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* Numbers of state array `index` of each key's row, as many as dtrain_table_describe_state() says;
 * of a key without a row what it would begin with. Setting makes the row. A count of steps is kept
 * in 32 bits; a larger one becomes the largest. */
DTRAIN_API dtrain_status_t dtrain_table_pull_state_rows(dtrain_table_t *table, uint32_t index,
                                                        const uint64_t *keys, uint64_t count,
                                                        void *state,
                                                        const dtrain_op_params_t *params,
                                                        dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_set_state_rows(dtrain_table_t *table, uint32_t index,
                                                       const uint64_t *keys, uint64_t count,
                                                       const void *state,
                                                       const dtrain_op_params_t *params,
                                                       dtrain_request_t **request_p);

/* Clips arrays, such as the gradients of all tables, by their norm together, on the worker that
 * will push them. arrays[i] has counts[i] elements of dtypes[i]: F32, F64, F16 or BF16; arrays do
 * not overlap, and one of 0 elements may be NULL. norm_p (or NULL) gets the L2 norm before, which
 * is added up in f64, and infinite if it is more than that holds. If it is above max_norm (finite,
 * above 0), every element is multiplied by max_norm / norm, rounded to f32 (F64: to f64), and the
 * product to the element's type: so the norm is then max_norm but for rounding. The same values in
 * the same arrays give the same bits on all processors. Local, blocking, any thread.
 * DTRAIN_ERR_INVALID names what is wrong, an element that is NaN or infinite, too, and nothing has
 * changed. */
DTRAIN_API dtrain_status_t dtrain_clip_by_global_norm(void *const *arrays, const uint64_t *counts,
                                                      const uint32_t *dtypes, uint32_t array_count,
                                                      double max_norm, double *norm_p);

/* Says that the table is initialised, once the sets (or the restore) of whoever says so are
 * complete: usually one worker, the chief. Done when every server knows. */
DTRAIN_API dtrain_status_t dtrain_table_set_ready(dtrain_table_t *table,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Waits until a worker has said so. DTRAIN_ERR_TIMEOUT after params.timeout_ns; DTRAIN_ERR_PEER: a
 * worker was lost before, and nobody knows whether another one would. */
DTRAIN_API dtrain_status_t dtrain_table_wait_ready(dtrain_table_t *table,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);

/* ---- checkpoints of tables ------------------------------------------------------------------- */
/* A checkpoint is a folder of the option "checkpoint.directory", which the servers and the workers
 * that call these functions share (one file system, or the same mount). Each server writes its part
 * of each table, with the rule's state, to safetensors files; the checkpoint is complete, and
 * exists for restore, once its manifest is there, which is written last. A crash at any moment
 * leaves the complete ones as they were. Any number of servers can restore it.
 * docs/PARAMETER_SERVER.md has the format. Which values are in it: BSP: those of all updates of
 * clocks before this worker's, and no other. SSP: the same, if no worker has pushed in its clock:
 * let all meet (dtrain_barrier) at a clock, one save, and all meet again; else DTRAIN_ERR_STATE.
 * ASYNC: those of each server when the request came, between two updates; pushes that were complete
 * before are in it. Once a worker is lost, BSP: those of the last clock that all had ended,
 * whatever this worker's; SSP: as ASYNC. */
#define DTRAIN_CHECKPOINT_NEWEST UINT64_MAX /* as a step: of the newest complete one */
/* Lineages: a job that restores a checkpoint continues its lineage; one that restores none begins
 * another. The newest is the one that was saved last in the job's lineage with all tables of the
 * call, whatever its step: so after a roll-back it is never one of what was left behind. Nothing
 * that a job does removes or replaces what is complete and of another lineage. A job that is in no
 * lineage yet and finds the tables in several gets DTRAIN_ERR_STATE: it has to name the step. */
typedef struct dtrain_checkpoint_params {
    uint32_t struct_size;
    uint32_t every_steps; /* save: only when so many steps, or                                 */
    int64_t every_ns;     /* so much time has passed since the last checkpoint of this worker,
                             saved or restored, or since its first call; both 0: always       */
    int64_t timeout_ns;   /* as that of dtrain_op_params_t                                    */
} dtrain_checkpoint_params_t;
/* Blocking, by one worker (the chief); tables[count] are of one job, with different names, and may
 * be pushed to meanwhile. step numbers the checkpoint, and is above those at which these tables
 * were saved or restored last: else DTRAIN_ERR_STATE, as when there is a complete one of this
 * number, unless it was left behind by a roll-back (restoring an older one): then it is replaced.
 * *saved_p (may be NULL) is 0 when nothing was due. DTRAIN_OK: this process has seen all files of
 * it. Afterwards only the "checkpoint.keep" ones that were saved last in this lineage are left, and
 * the last one that has some table. DTRAIN_ERR_IO, naming the server and the file: a disk is full,
 * a folder not writable, ...: the servers go on, the earlier checkpoints stay. DTRAIN_ERR_CONFIG: a
 * server wrote to a folder that this process does not see. DTRAIN_ERR_PEER: a BSP worker was lost
 * when it had ended a clock for some servers only, so there is no clock that all have: save after
 * dtrain_table_set_consistency(). */
DTRAIN_API dtrain_status_t dtrain_checkpoint_save(dtrain_table_t *const *tables, uint32_t count,
                                                  uint64_t step,
                                                  const dtrain_checkpoint_params_t *params,
                                                  int32_t *saved_p);
/* Blocking, by one worker: values, state, rate and version become those of the checkpoint, whatever
 * the clocks; sums of open clocks stay. What is pushed meanwhile may be overwritten. *step_p (may
 * be NULL) is its step. DTRAIN_ERR_NOT_FOUND: there is no such checkpoint, or a table is not in it.
 * DTRAIN_ERR_MISMATCH: stored dtype, length, rule, or what the table was made with differ, naming
 * the field and both values: of the rule (and each segment's) momentum, beta1, beta2, epsilon, rho,
 * trust, ftrl_beta, compensation, FTRL's l1 and l2; of a sparse table, whose other rows are made by
 * them, initial, distribution, spread and seed. The others may be given anew: clip_value,
 * clip_norm, weight_decay, l1 and l2 of other rules, consistency, placement; and learning_rate, in
 * place of which the stored one is taken. DTRAIN_ERR_CORRUPT names the file: each bit of each is
 * under a checksum. DTRAIN_ERR_UNSUPPORTED: it is of an older format. DTRAIN_ERR_CONFIG: a server
 * does not see it. DTRAIN_ERR_LIMIT, DTRAIN_ERR_NO_MEMORY: a server has no room to read its part
 * beside the table ("ps.memory"). DTRAIN_ERR_BUSY: another worker is restoring one of the tables.
 * All or nothing: servers take over what they have read once each of them has read its part of
 * every table; after an error no table has changed, but for one that says "restore again": a server
 * was lost, or did not answer (DTRAIN_ERR_PEER, DTRAIN_ERR_TIMEOUT), when others had begun to take
 * it over. timeout_ns is for all of it together. */
DTRAIN_API dtrain_status_t dtrain_checkpoint_restore(dtrain_table_t *const *tables, uint32_t count,
                                                     uint64_t step,
                                                     const dtrain_checkpoint_params_t *params,
                                                     uint64_t *step_p);
/* The step of the newest complete checkpoint that has the table; DTRAIN_ERR_NOT_FOUND: none.
 * Local. */
DTRAIN_API dtrain_status_t dtrain_checkpoint_newest(dtrain_table_t *table, uint64_t *step_p);
/* With the option "checkpoint.restore" dtrain_table_create() restores the table from the newest
 * checkpoint that has it, before it returns on any worker. The step of that checkpoint;
 * DTRAIN_ERR_NOT_FOUND: there was none with this table (or the option is not set). Local. */
DTRAIN_API dtrain_status_t dtrain_table_restored(const dtrain_table_t *table, uint64_t *step_p);

typedef struct dtrain_server_params {
    uint32_t struct_size;
    int32_t size;                /* number of workers of the job; 0: all from the environment */
    int32_t servers;             /* number of servers                                         */
    int32_t index;               /* which server this is, 0 <= index < servers                */
    int64_t timeout_ns;          /* for joining; 0: option join.timeout; < 0: none            */
    dtrain_oob_allgather_fn oob; /* for "oob": workers first, then servers            */
    void *oob_arg;
} dtrain_server_params_t;
/* Joins the job as a server and serves from then on in the background (a process of its own, or a
 * thread of any process). Rendezvous as in dtrain_comm_create(). Blocking. */
DTRAIN_API dtrain_status_t dtrain_server_create(dtrain_context_t *context, const char *rendezvous,
                                                const dtrain_server_params_t *params,
                                                dtrain_server_t **server_p);
/* Waits until all workers have left (DTRAIN_OK), the job failed (its error), or timeout_ns is over
 * (DTRAIN_IN_PROGRESS; < 0: no limit). */
DTRAIN_API dtrain_status_t dtrain_server_wait(dtrain_server_t *server, int64_t timeout_ns);
/* Exclusive. Clients that still need it get DTRAIN_ERR_PEER. */
DTRAIN_API dtrain_status_t dtrain_server_destroy(dtrain_server_t *server);
/* Writes weights[dedicated + serving], for dtrain_table_params_t: by them the busiest network link
 * of a job carries least when each of its workers pushes and pulls everything, `serving` of them
 * (at most all) also serve, and all links are equal. Jiang et al., OSDI 2020. Local. */
DTRAIN_API dtrain_status_t dtrain_server_weights(uint32_t workers, uint32_t dedicated,
                                                 uint32_t serving, uint32_t *weights);

/* ---- statistics ------------------------------------------------------------------------------ */
typedef struct dtrain_device_stats { /* of bytes of the program's memory, both ways */
    uint32_t struct_size; /* the caller's, by DTRAIN_INIT; no more is written             */
    uint32_t reserved;
    uint64_t copied;   /* by the transport, between the program's memory and its own            */
    uint64_t in_place; /* that the network took from, or brought to, the program's memory: in
                          RDMA libraries without a copy                                         */
    /* Memory that is registered with the network now: by the program, by the library itself, */
    uint64_t registrations, registered_bytes;
    uint64_t cache_entries, cache_bytes; /* and what the transport keeps (option ofi.cache)     */
    /* Pieces of messages that the program has not registered: they were in the cache, or had to be
     * registered, which is so each time where nothing is kept. */
    uint64_t cache_hits, cache_misses;
    uint64_t cache_evictions; /* for want of room, or because the memory was freed              */
} dtrain_device_stats_t;
/* Of the index-th of dtrain_context_describe()'s "transports", since the context was made.
 * DTRAIN_ERR_NOT_FOUND past the last one, DTRAIN_ERR_UNSUPPORTED where the transport does not
 * count. */
DTRAIN_API dtrain_status_t dtrain_stats_device(dtrain_context_t *context, uint32_t index,
                                               dtrain_device_stats_t *stats);

/* Counted always: some additions per request. */
#define DTRAIN_STATS_BUCKETS                                                                       \
    40 /* bucket 0: of zeros; i: of 2^(i-1) to 2^i - 1; the last: and more */
typedef struct dtrain_table_stats {
    uint32_t struct_size; /* the caller's, by DTRAIN_INIT; no more is written                  */
    uint32_t reserved;
    uint64_t requests;       /* answered; an operation is one or more per server                */
    uint64_t repeats;        /* sent again, for want of an answer (option ps.retry)             */
    uint64_t refused;        /* of the requests, those that ended in an error                   */
    uint64_t dropped;        /* came too early for their server, which asked for them again     */
    uint64_t elements;       /* or rows, of the requests                                        */
    uint64_t sent_bytes;     /* payload, with that of repeats                                   */
    uint64_t received_bytes; /* payload                                                         */
    uint64_t latency_sum;    /* ns from the first send to the answer                            */
    uint64_t staleness_sum;  /* of pushes: updates that their server had applied since this
                                worker's last pull from it (BSP: clocks)                        */
    uint64_t latency[DTRAIN_STATS_BUCKETS], staleness[DTRAIN_STATS_BUCKETS];
    uint64_t stale; /* QUORUM: pushes and clocks of steps that were over, dropped; in requests */
    uint64_t not_finite; /* parts of pushes, dropped (DTRAIN_NOT_FINITE_DROP); in requests      */
} dtrain_table_stats_t;
/* Of this worker's requests to one server, or to all (-1), since the table was made. */
DTRAIN_API dtrain_status_t dtrain_stats_table(dtrain_table_t *table, int32_t server,
                                              dtrain_table_stats_t *stats);
/* What this server has counted, per table and worker, as text for Prometheus (what "dtrain-server
 * --metrics" answers). Same rules as dtrain_last_error(). */
DTRAIN_API size_t dtrain_stats_server(dtrain_server_t *server, char *buf, size_t len);

/* ---- TFRecord files -------------------------------------------------------------------------- */
typedef struct dtrain_reader_params {
    uint32_t struct_size;
    int32_t shard;       /* this reader's share: 0 <= shard < shards                          */
    int32_t shards;      /* 0 and 1: everything. With at least `shards` files, whole files are
                            dealt out (file i to shard i % shards), else record by record     */
    uint32_t flags;      /* none yet                                                          */
    uint64_t max_record; /* longest record accepted, bytes; 0: 64 MiB                       */
} dtrain_reader_params_t;
/* paths[count] in the given order. Every record's two CRC32C are checked. */
DTRAIN_API dtrain_status_t dtrain_reader_open(const char *const *paths, uint32_t count,
                                              const dtrain_reader_params_t *params,
                                              dtrain_reader_t **reader_p);
/* The next record: DTRAIN_OK, DTRAIN_ERR_NOT_FOUND at the end, DTRAIN_ERR_CORRUPT naming file,
 * offset and what is wrong (a truncated file too), DTRAIN_ERR_LIMIT for a record longer than
 * max_record. A failure stays until the rewind. *data_p, of any alignment, is valid until the next
 * call. */
DTRAIN_API dtrain_status_t dtrain_reader_next(dtrain_reader_t *reader, const void **data_p,
                                              uint64_t *length_p);
DTRAIN_API dtrain_status_t dtrain_reader_rewind(dtrain_reader_t *reader); /* back to the start */
DTRAIN_API void dtrain_reader_close(dtrain_reader_t *reader);             /* exclusive */
/* Creates or replaces path; the file appears under its name when it is closed. */
DTRAIN_API dtrain_status_t dtrain_writer_open(const char *path, dtrain_writer_t **writer_p);
DTRAIN_API dtrain_status_t dtrain_writer_append(dtrain_writer_t *writer, const void *data,
                                                uint64_t length);
/* Exclusive. Frees the handle in any case; an error says that the file was not written. */
DTRAIN_API dtrain_status_t dtrain_writer_close(dtrain_writer_t *writer);

/* ---- tuning ---------------------------------------------------------------------------------- */
/* Collective, blocking, some seconds: measures messages, sums and copies between the ranks of comm
 * while nothing else runs, and rank 0 writes what it found to path, which the option "tuning.file"
 * reads. comm goes on as before. DTRAIN_ERR_IO on all ranks when the file cannot be written. */
DTRAIN_API dtrain_status_t dtrain_comm_tune(dtrain_comm_t *comm, const char *path);

/* ---- timeline: what each rank does when, for chrome://tracing and ui.perfetto.dev -------------
 */
/* Writes every operation that begins from now on, and every step of it, to a file of this rank:
 * path with %r replaced by the rank, or with ".<rank>.json" appended; replaces a file, not a link.
 * Before the context has joined a job nothing happens until it does. The option "timeline" does
 * the same from the start. DTRAIN_ERR_IO: the file cannot be written; DTRAIN_ERR_STATE: one is
 * being written already. When a disk is full later, the timeline ends with a warning, the job goes
 * on. See docs/TIMELINE.md. */
DTRAIN_API dtrain_status_t dtrain_timeline_start(dtrain_context_t *context, const char *path);
/* Writes what is left and ends the file. DTRAIN_ERR_STATE: none is being written. */
DTRAIN_API dtrain_status_t dtrain_timeline_stop(dtrain_context_t *context);
/* Notes that the program has come to a point of this name (copied). Nothing when none is written.
 */
DTRAIN_API dtrain_status_t dtrain_timeline_mark(dtrain_context_t *context, const char *name);

#ifdef __cplusplus
}
#endif
#endif
