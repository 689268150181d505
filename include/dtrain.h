/* dtrain.h - the C API of dtrain: collectives and a parameter server over pluggable transports.
 * SPDX-License-Identifier: Apache-2.0
 *
 * THE PROMISE: every call returns a correct result, or a named error that says what failed, where,
 * on which rank, after how long and what to do. The caller sets the longest time until then.
 *
 * ABI RULES (checked by tests/abi): handles are incomplete types. No signature and no struct has a
 * bool, enum, bit-field, long, static inline or variadic. A *_params struct starts with
 * struct_size, grows only at its tail and has no padding; a field that is zero means "default". A
 * number is never used for a second meaning. Outputs come last and are written only on success.
 *
 * THREADS: every function may be called from any thread. A function marked "exclusive" must not run
 * at the same time as any other call on the same handle. Canceling a thread (pthread_cancel,
 * deferred) takes effect after the call that the thread is in has returned.
 * CALLBACKS must not throw, longjmp, or call dtrain. The library catches an exception: the call
 * that needed the callback fails with the exception's text (for a log sink, the text goes to
 * stderr).
 * MEMORY: when memory runs out, calls that create something return DTRAIN_ERR_NO_MEMORY; so do
 * calls that ask for more than can exist. Operations in flight continue, and every object can
 * still be destroyed: for this the library reserves 2 MiB of addresses, which take no physical
 * memory until they are used.
 * ACCELERATORS: buffers of collectives, messages, tables, gradient queues and compressors may lie
 * in the memory of GPUs that the context knows (option accelerators; docs/GPU.md). Without a stream
 * their contents must be there when the call is made.
 * FORK: the child may only destroy the objects that it inherited; every other call on them returns
 * DTRAIN_ERR_STATE. The child may create a new context. It inherits no file descriptor and no
 * shared memory of the library; a program started by exec() does not either. The library never uses
 * descriptors 0, 1 and 2. (A child made without pthread_atfork() handlers, for example by clone(),
 * does inherit them. Descriptors and memory of libfabric and UCX are always inherited.)
 * The library installs no signal handler, never exits, and never prints to stdout. */
#ifndef DTRAIN_H
#define DTRAIN_H
/* Up to its end: what the library's own layers share (cmake/basics.cmake). */
#ifndef DTRAIN_BASICS_H
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

/* The API version of this header; pass it to dtrain_context_create(). */
#define DTRAIN_API_VERSION 1u /* (major << 16) | minor */
/* Initializes a *_params struct before it is filled: DTRAIN_INIT(&params); params.x = ...; */
#define DTRAIN_INIT(p) (memset((p), 0, sizeof *(p)), (p)->struct_size = (uint32_t)sizeof *(p))

typedef struct dtrain_options dtrain_options_t; /* key/value configuration                       */
typedef struct dtrain_context dtrain_context_t; /* transports, progress, memory; no globals      */
typedef struct dtrain_comm dtrain_comm_t;       /* communicator: an ordered group of ranks       */
typedef struct dtrain_mem dtrain_mem_t;         /* registered memory                             */
typedef struct dtrain_cq dtrain_cq_t;           /* completion queue                              */
typedef struct dtrain_request dtrain_request_t; /* one operation in flight                       */
typedef struct dtrain_gradients dtrain_gradients_t; /* named tensors, reduced in any order        */
typedef struct dtrain_graph dtrain_graph_t;   /* which ranks average with which                */
typedef struct dtrain_server dtrain_server_t; /* parameter-server shards served by this process */
struct dtrain_function;                       /* a user-defined update rule: dtrain_function.h */
typedef struct dtrain_table dtrain_table_t;   /* a named array spread over the servers         */
typedef struct dtrain_reader dtrain_reader_t; /* sequential reader of TFRecord files           */
typedef struct dtrain_writer dtrain_writer_t; /* writer of one TFRecord file                   */

/* ---- status: 0 done, > 0 not finished, < 0 failed -------------------------------------------- */
/* -20 to -39: a connection is lost for good; -40 to -59: the communicator is broken; -60 to -79:
 * the device is. */
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

/* The version of the library, (major << 16) | minor; it may differ from DTRAIN_API_VERSION. */
DTRAIN_API uint32_t dtrain_version(void);
/* "0.1.0"; static storage. */
DTRAIN_API const char *dtrain_version_string(void);
/* "DTRAIN_ERR_PEER"; static storage, never NULL ("DTRAIN_ERR_UNKNOWN" for an unknown number). */
DTRAIN_API const char *dtrain_status_name(dtrain_status_t status);
/* "peer failed"; static storage, never NULL. */
DTRAIN_API const char *dtrain_status_text(dtrain_status_t status);
/* Copies the text of this thread's last failed call into buf: at most len bytes, always
 * NUL-terminated when len > 0. Returns the length of the whole text without its terminator. */
DTRAIN_API size_t dtrain_last_error(char *buf, size_t len);

/* ---- options: default < file < environment (DTRAIN_<KEY>, dots as underscores) < set() ------- */
/* Creates a set of options from the defaults, the file named by DTRAIN_OPTIONS (if set) and the
 * environment. The environment is read during this call only. */
DTRAIN_API dtrain_status_t dtrain_options_create(dtrain_options_t **options_p);
DTRAIN_API void dtrain_options_destroy(dtrain_options_t *options); /* exclusive; NULL is fine */
/* Sets one option. DTRAIN_ERR_NOT_FOUND: no such key; the text names the nearest one.
 * DTRAIN_ERR_INVALID: the text says which values are allowed. */
DTRAIN_API dtrain_status_t dtrain_options_set(dtrain_options_t *options, const char *key,
                                              const char *value);
/* Reads "key = value" lines with '#' comments. If any line is wrong, no option changes. */
DTRAIN_API dtrain_status_t dtrain_options_load(dtrain_options_t *options, const char *path);
/* Copies the option's value into buf; DTRAIN_ERR_TRUNCATED when len is too small. */
DTRAIN_API dtrain_status_t dtrain_options_get(const dtrain_options_t *options, const char *key,
                                              char *buf, size_t len);
/* Describes the index-th option: its key, default and description (static storage).
 * DTRAIN_ERR_NOT_FOUND past the last option. */
DTRAIN_API dtrain_status_t dtrain_options_describe(uint32_t index, const char **key_p,
                                                   const char **default_p, const char **text_p);

/* ---- context --------------------------------------------------------------------------------- */
/* Opens the transports and starts two threads (none with progress=manual). options may be NULL and
 * may be destroyed after the call. */
DTRAIN_API dtrain_status_t dtrain_context_create(uint32_t api_version,
                                                 const dtrain_options_t *options,
                                                 dtrain_context_t **context_p);
/* Exclusive. DTRAIN_ERR_BUSY while communicators, servers, completion queues or memory of the
 * context exist. */
DTRAIN_API dtrain_status_t dtrain_context_destroy(dtrain_context_t *context);
/* Does a bounded amount of work; returns the amount (0: there was nothing to do), or < 0. Programs
 * with progress=manual must call it; for others it is harmless. */
DTRAIN_API int32_t dtrain_context_progress(dtrain_context_t *context);
/* Writes a JSON text that describes what this build and machine can do (transports, kernels,
 * limits). context may be NULL. buf, len and result are as in dtrain_last_error(). Looks first for
 * accelerators whose libraries the program has loaded since the context was made. Any thread. */
DTRAIN_API size_t dtrain_context_describe(dtrain_context_t *context, char *buf, size_t len);

/* Sets the function that receives log lines; NULL restores the default, stderr. Lines are logged
 * from level "warn" on (option log.level). The sink is called from any thread and must not call
 * dtrain. */
enum { DTRAIN_LOG_ERROR = 1, DTRAIN_LOG_WARN = 2, DTRAIN_LOG_INFO = 3, DTRAIN_LOG_DEBUG = 4 };
typedef void (*dtrain_log_fn)(void *arg, int32_t level, const char *line);
DTRAIN_API dtrain_status_t dtrain_context_set_log(dtrain_context_t *context, dtrain_log_fn sink,
                                                  void *arg);

/* ---- memory: never needed for correctness; saves copies -------------------------------------- */
enum { DTRAIN_MEM_AUTO = 0, DTRAIN_MEM_HOST = 1, DTRAIN_MEM_CUDA = 2, DTRAIN_MEM_DMABUF = 3 };
typedef struct dtrain_mem_params {
    uint32_t struct_size;
    uint32_t mem_type; /* DTRAIN_MEM_*; AUTO asks the driver by pointer           */
    void *address;     /* first byte; the memory stays the caller's               */
    uint64_t length;   /* bytes, > 0                                              */
    uint64_t dmabuf_offset;
    int32_t dmabuf_fd; /* read only for DTRAIN_MEM_DMABUF, which is not supported */
    int32_t device;    /* read only for DTRAIN_MEM_CUDA                           */
    uint64_t flags;    /* DTRAIN_MEM_SHARED                                       */
} dtrain_mem_params_t;
/* Host memory: moves the pages that hold the range into memory that the other ranks of the host can
 * map; address and contents stay the same. Collectives between ranks whose buffers are shared copy
 * less. For private memory only. While dtrain_mem_register() and dtrain_mem_deregister() run, no
 * thread may write to these pages (the first and the last page may also hold other data of the
 * program). A child made by fork() shares the pages instead of having a copy. The pages may be
 * unmapped before they are deregistered. After an operation has failed, ranks that have not noticed
 * the failure yet may still store to its buffers for a moment. The flag has no effect where no open
 * transport can share memory.
 * Memory of a GPU: ranks on the same GPU can reach it, and reductions between them copy nothing.
 * DTRAIN_ERR_UNSUPPORTED: the driver cannot pass it on to other processes (memory of
 * cudaMallocAsync(), or of virtual memory management). */
#define DTRAIN_MEM_SHARED UINT64_C(1)
/* Registers the range with every transport of the context until it is deregistered. Operations
 * recognize shared memory by its address; they do not need dtrain_op_params_t for it.
 * Memory of a GPU (AUTO, CUDA): operations then know it without asking the driver, so it must not
 * be freed before it is deregistered; transports do not get it. DTRAIN_ERR_INVALID: the memory is
 * of another kind or device than the parameters say, ends outside of its allocation, was freed, or
 * is registered already. Managed memory is refused (DTRAIN_ERR_UNSUPPORTED). */
DTRAIN_API dtrain_status_t dtrain_mem_register(dtrain_context_t *context,
                                               const dtrain_mem_params_t *params,
                                               dtrain_mem_t **mem_p);
/* Allocates zeroed, page-aligned memory, registers it, and shares it as by DTRAIN_MEM_SHARED. */
DTRAIN_API dtrain_status_t dtrain_mem_alloc(dtrain_context_t *context, uint64_t bytes,
                                            dtrain_mem_t **mem_p);
/* Allocates params->length bytes and registers them; params->address is NULL. AUTO, HOST: as
 * dtrain_mem_alloc(). CUDA: memory of the GPU params->device, aligned to 256 bytes, with undefined
 * contents. DTRAIN_ERR_UNSUPPORTED: there is no driver, or the option accelerators leaves it out;
 * DTRAIN_ERR_INVALID: there is no such GPU; DTRAIN_ERR_NO_MEMORY: it has not so much left. */
DTRAIN_API dtrain_status_t dtrain_mem_create(dtrain_context_t *context,
                                             const dtrain_mem_params_t *params,
                                             dtrain_mem_t **mem_p);
/* The address of the memory's first byte; NULL for NULL. */
DTRAIN_API void *dtrain_mem_address(const dtrain_mem_t *mem);
/* Ends the registration and frees memory that dtrain_mem_alloc() or dtrain_mem_create() allocated;
 * other memory stays the caller's and keeps its contents. DTRAIN_ERR_BUSY while an operation uses
 * the memory, or a persistent request does (memory of GPUs); the handle then remains valid. If an
 * operation on a stream has failed, synchronize the stream first. */
DTRAIN_API dtrain_status_t dtrain_mem_deregister(dtrain_mem_t *mem);

/* ---- completion ------------------------------------------------------------------------------ */
typedef struct dtrain_event {  /* 64 bytes, frozen */
    uint64_t user_tag;         /* from dtrain_op_params_t                              */
    dtrain_request_t *request; /* NULL when the caller asked for no request           */
    uint64_t bytes;            /* moved into the caller's buffer (receive, pull)       */
    dtrain_status_t status;
    int32_t peer;     /* the sender (receive), the failed rank (ERR_PEER), else -1   */
    uint64_t version; /* table operations: the version that was read or made         */
    uint64_t reserved[3];
} dtrain_event_t;
/* Creates a completion queue. depth: how many finished operations it can hold, 0 = 1024. An
 * operation that might overflow the queue is refused with DTRAIN_ERR_BUSY. */
DTRAIN_API dtrain_status_t dtrain_cq_create(dtrain_context_t *context, uint32_t depth,
                                            dtrain_cq_t **cq_p);
DTRAIN_API dtrain_status_t dtrain_cq_destroy(dtrain_cq_t *cq); /* exclusive; BUSY while in use */
/* Takes up to max events and waits up to timeout_ns (0: no wait, < 0: no limit) for the first.
 * Returns how many it took (0: none arrived in time), or < 0. */
DTRAIN_API int32_t dtrain_cq_poll(dtrain_cq_t *cq, dtrain_event_t *events, uint32_t max,
                                  int64_t timeout_ns);
/* A file descriptor that is readable while the queue holds events. Use it only with poll() or
 * epoll; the queue owns it. < 0 on error. */
DTRAIN_API int32_t dtrain_cq_fd(dtrain_cq_t *cq);

/* Returns DTRAIN_IN_PROGRESS, DTRAIN_OK, or the error of the operation. */
DTRAIN_API dtrain_status_t dtrain_request_test(dtrain_request_t *request);
/* As dtrain_request_test(), but waits up to timeout_ns (< 0: until the operation's own timeout);
 * DTRAIN_IN_PROGRESS when the operation has not finished by then. */
DTRAIN_API dtrain_status_t dtrain_request_wait(dtrain_request_t *request, int64_t timeout_ns);
/* Asks the operation to end early. Its request still completes, with DTRAIN_ERR_CANCELED if nothing
 * was done yet. DTRAIN_ERR_STATE: a collective that other ranks may have begun cannot be canceled.
 */
DTRAIN_API dtrain_status_t dtrain_request_cancel(dtrain_request_t *request);
/* Starts persistent operations (DTRAIN_OP_PERSISTENT) in the order of the array. Stops at the first
 * one that cannot start; the ones before it run. DTRAIN_ERR_BUSY: its previous run has not
 * finished. Exclusive for each request. */
DTRAIN_API dtrain_status_t dtrain_request_start(dtrain_request_t *const *requests, uint32_t count);
/* Writes the outcome of a finished request; DTRAIN_ERR_STATE while it runs. */
DTRAIN_API dtrain_status_t dtrain_request_result(dtrain_request_t *request,
                                                 dtrain_event_t *event_p);
/* Copies the error text of the finished operation; buf, len and result as in dtrain_last_error().
 */
DTRAIN_API size_t dtrain_request_error(dtrain_request_t *request, char *buf, size_t len);
/* Frees the handle. May be called once, at any time; an unfinished operation continues without it.
 * NULL is fine. */
DTRAIN_API void dtrain_request_free(dtrain_request_t *request);

/* How an operation runs. With request_p == NULL and no cq (params NULL or all zero) the call blocks
 * until the operation is done. With a request_p or a cq the call returns at once, and the buffers
 * belong to the library until the operation completes, which happens exactly once. */
enum { DTRAIN_STREAM_NONE = 0, DTRAIN_STREAM_CUDA = 1 };
/* Makes the operation persistent: the call only prepares it, and dtrain_request_start() starts it
 * with the same arguments as often as it is called. Only for collectives (also those of graphs) and
 * messages; others return DTRAIN_ERR_UNSUPPORTED. request_p is required; the request counts as
 * finished until it is started. A start looks nothing up and allocates nothing (except sums for
 * AVG of f16 and integers over messages). For the order of calls that all ranks keep, the start
 * counts, not the preparation. Arrays of counts are copied. The buffers belong to the library from
 * each start until the operation completes. A communicator with persistent requests cannot be
 * destroyed: free the requests first. */
#define DTRAIN_OP_PERSISTENT UINT32_C(1)
/* Blocking-call latency with an interruptible wait: the caller promises to call
 * dtrain_request_wait() at once (request_p is required, no cq), and may stop waiting now and then,
 * for example for signals or other threads. The call may take some microseconds to finish a small
 * operation; until the first wait no other thread makes progress on it. */
#define DTRAIN_OP_AWAITED UINT32_C(2)
/* Takes prescale and postscale as they are: 0 means zero, and 1 changes nothing. For programs that
 * compute the factors, for example as a share of samples. */
#define DTRAIN_OP_FACTORS UINT32_C(4)
typedef struct dtrain_op_params {
    uint32_t struct_size;
    uint32_t flags;                    /* DTRAIN_OP_*                                             */
    uint64_t user_tag;                 /* returned in the event                                   */
    dtrain_cq_t *cq;                   /* the queue that gets the event of the completion         */
    int64_t timeout_ns;                /* 0: option op.timeout; < 0: none                         */
    dtrain_mem_t *send_mem, *recv_mem; /* registrations that hold the buffers, or NULL */
    void *stream;                      /* read only when stream_type is not 0, see below          */
    uint32_t stream_type;              /* DTRAIN_STREAM_*                                         */
    int32_t priority;                  /* higher goes first; 0 is normal (docs/TUNING.md)         */
    /* DTRAIN_STREAM_CUDA: the operation is in the order of `stream`, a CUstream or cudaStream_t of
     * the device that holds the buffers (NULL, 1 and 2 are its default streams). It begins when the
     * stream gets there, which is when its timeout begins, too; what is put into the stream later
     * runs when the results are there, or the operation has failed (its results are then
     * undefined). The call never waits for the stream. Only for collectives and messages with a
     * buffer on an accelerator, with a request or a cq; not while the stream is captured. */
    /* All-reduce, reduce and reduce_scatter(v) of floating dtypes (others: DTRAIN_ERR_UNSUPPORTED):
     * each element of this rank's input is multiplied by prescale, each element of its result by
     * postscale. 0 without DTRAIN_OP_FACTORS: no scaling. NaN and infinities: DTRAIN_ERR_INVALID.
     * The product is computed in f64 or f32, and the factor is rounded to that type first. prescale
     * may differ between ranks; postscale may, too, except in an all-reduce. The send buffer does
     * not change unless the call is in place. */
    double prescale, postscale;
    /* Pushes to a floating-point table that aggregates by AVG (BSP, QUORUM; others:
     * DTRAIN_ERR_INVALID): the weight of this worker's pushes in the current clock, for example its
     * number of samples. Finite and > 0, and the same for all pushes of a worker in one clock; 0:
     * not given. Each push is multiplied by its weight, and the sum is divided by the sum of the
     * weights of the workers that have ended the clock. Once one of them has given a weight, a
     * worker that pushed without one counts 1, and a worker that pushed nothing counts 0. */
    double weight;
    /* Pulls of tables: the pull waits until every server of the range or rows has applied at least
     * this many updates (dtrain_event_t.version). DTRAIN_ERR_STATE: under BSP, where a clock sees
     * one version only, if that version is lower. DTRAIN_ERR_PEER: the updates cannot come because
     * workers were lost. Where any worker may still push (ASYNC, SSP), the pull waits until its
     * timeout. */
    uint64_t min_version;
} dtrain_op_params_t;

/* ---- communicators --------------------------------------------------------------------------- */
/* Exchanges a few bytes between ranks before they are connected (rendezvous "oob"). All `size`
 * ranks call it; on return recv holds size blobs of len bytes each in rank order. Returns 0, or an
 * error code of the caller's choice, which ends the join. dtrain_comm_create() calls it, in the
 * thread of that call. */
typedef int32_t (*dtrain_oob_allgather_fn)(void *arg, const void *send, void *recv, size_t len);
/* As dtrain_comm_params_t.size: this process has no rank yet. It waits at the rendezvous until the
 * workers of a running elastic job take it in. The variable DTRAIN_RANK=new says the same. */
#define DTRAIN_NEWCOMER (-1)
typedef struct dtrain_comm_params {
    uint32_t struct_size;
    int32_t size;                /* number of worker ranks; 0: from the environment;
                                  * DTRAIN_NEWCOMER: unknown, see dtrain_comm_reform() */
    int32_t rank;                /* this rank; read only when size > 0                      */
    int32_t servers;             /* number of dedicated parameter servers; with size > 0    */
    int64_t timeout_ns;          /* for joining; 0: option join.timeout; < 0: none          */
    dtrain_oob_allgather_fn oob; /* for "oob"                                      */
    void *oob_arg;
} dtrain_comm_params_t;
/* Joins a job and creates the communicator of all its workers. Collective, blocking. rendezvous:
 *   NULL or "env"         what dtrain-run, torchrun, TensorFlow's operators, mpirun, srun, a cloud
 *                         or Kubernetes has set (docs/JOINING.md); none of these: a job of one
 *   "tcp://host:port"     rank 0 listens there
 *   "file:///dir/name"    rank 0 writes its addresses there; a name serves one job
 *   "oob"                 the callback
 *   "pmi", "pmix"         the key-value store of the launcher, where all processes that it has
 *                         started join, each job in the same order
 * While it waits, it logs which ranks are missing: after 2 s, then every 10 s. One job may follow
 * another at the same address: a process that arrives before the previous job has ended waits for
 * it. A context may be a member of several jobs at one time, at most eight (DTRAIN_ERR_LIMIT); they
 * share its transports and its thread, and nothing else. */
DTRAIN_API dtrain_status_t dtrain_comm_create(dtrain_context_t *context, const char *rendezvous,
                                              const dtrain_comm_params_t *params,
                                              dtrain_comm_t **comm_p);
/* Describes in JSON how this process would join by dtrain_comm_create(context, rendezvous, params):
 * as what, where, and what says so or stands against it; and what each launcher's environment that
 * dtrain knows says here. Writes at most len bytes with the NUL, and returns the length of the
 * whole text without it (0 on failure). Any thread. */
DTRAIN_API size_t dtrain_join_describe(const char *rendezvous, const dtrain_comm_params_t *params,
                                       char *buf, size_t len);
/* Exclusive. Local: waits for no other rank; pending operations end with DTRAIN_ERR_CANCELED.
 * DTRAIN_ERR_BUSY while graphs of the communicator exist. */
DTRAIN_API dtrain_status_t dtrain_comm_destroy(dtrain_comm_t *comm);
/* Creates one communicator per color (>= 0), its ranks ordered by (key, old rank). A rank with a
 * negative color is in none: its *new_p becomes NULL. Collective, blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_split(dtrain_comm_t *comm, int32_t color, int32_t key,
                                             dtrain_comm_t **new_p);
/* Creates a communicator of ranks[count], in this order: a process set. All ranks of comm call with
 * the same list (else DTRAIN_ERR_MISMATCH, and comm stays usable). *new_p becomes NULL on ranks
 * that are not in the list. DTRAIN_ERR_INVALID: the list is empty, names a rank twice, or names a
 * rank that comm does not have. Collective, blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_subset(dtrain_comm_t *comm, const int32_t *ranks,
                                              int32_t count, dtrain_comm_t **new_p);
DTRAIN_API dtrain_status_t dtrain_comm_duplicate(dtrain_comm_t *comm, dtrain_comm_t **new_p);
/* Creates a communicator of ranks[count], in this order, by these ranks alone: each of them calls
 * with the same list and tag; the other ranks take no part and need not know. comm may be broken:
 * ranks that live can go on together after others died. Any number of threads may create groups at
 * the same time, if their lists or tags differ. Blocking; timeout_ns is for all of it (0: option
 * op.timeout; < 0: none). DTRAIN_ERR_INVALID: the list is empty, names a rank twice or one that
 * comm does not have, or lacks the caller. DTRAIN_ERR_PEER: a rank of the list is lost or has left.
 * DTRAIN_ERR_TIMEOUT: a rank has not called. DTRAIN_ERR_ABORTED: it waits instead in
 * dtrain_comm_shrink() for this rank, which should do so too; it has had five seconds, or a quarter
 * of what was left of the timeout. Lists that differ are different groups; when the
 * timeout of one is over and a rank that it lacks waits with another list under the same tag, the
 * error is DTRAIN_ERR_MISMATCH. The texts name these ranks, by their numbers in the job.
 * DTRAIN_ERR_BUSY: another thread of this process makes the same group. A call that failed may be
 * repeated. */
DTRAIN_API dtrain_status_t dtrain_comm_create_group(dtrain_comm_t *comm, const int32_t *ranks,
                                                    int32_t count, int32_t tag, int64_t timeout_ns,
                                                    dtrain_comm_t **new_p);
/* Breaks the communicator: on all ranks every later operation ends with DTRAIN_ERR_ABORTED and this
 * reason (may be NULL), and so does every operation that has not ended on this rank. Never waits
 * for a peer. */
DTRAIN_API dtrain_status_t dtrain_comm_abort(dtrain_comm_t *comm, const char *reason);
/* Creates a communicator of the ranks that are alive, in the old order, to continue after
 * DTRAIN_ERR_PEER. Every surviving rank must call it; collective, blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_shrink(dtrain_comm_t *comm, dtrain_comm_t **new_p);
/* Elastic jobs (option elastic=yes in all processes; rendezvous tcp:// or file://): processes may
 * join while the job runs. A newcomer's dtrain_comm_create() waits at the rendezvous; so does that
 * of a process that was started again with the rank of a lost one. */
typedef struct dtrain_reform_params {
    uint32_t struct_size;
    int32_t
        min_size; /* workers, at least; 0: option elastic.min. If there are fewer, the call waits
                   * for newcomers. Ranks may give different numbers: the largest counts */
    int32_t
        max_size;   /* at most; 0: option elastic.max; the smallest counts. Others go on waiting */
    int32_t leaves; /* 1: this process leaves the job, and its *new_p becomes NULL              */
    int64_t timeout_ns; /* for everything; 0: option op.timeout; < 0: none */
} dtrain_reform_params_t;
/* Creates the communicator of the workers that live, in the old order, and of newcomers after them.
 * All living workers call it, at the same point between two steps, on a communicator that has all
 * of them: dtrain_comm_create()'s, or one made of that after ranks were lost. comm may be broken.
 * Servers follow by themselves while they are in dtrain_server_wait(), and new ones join.
 * Afterwards comm and what was made on it is to be destroyed; tables are opened again by
 * dtrain_table_create() on the new communicator, by newcomers as well, and have their values. Once
 * a member is lost, calls that others make meanwhile on communicators of this job, and for which
 * they need this process, end with DTRAIN_ERR_PEER, so that they come, too. On failure comm is as
 * before otherwise, and the call may be repeated: DTRAIN_ERR_TIMEOUT names the workers that have
 * not called, or says that too few processes are there; DTRAIN_ERR_STATE: the job is not elastic.
 * Blocking. */
DTRAIN_API dtrain_status_t dtrain_comm_reform(dtrain_comm_t *comm,
                                              const dtrain_reform_params_t *params,
                                              dtrain_comm_t **new_p);
/* How many processes wait to be taken in, as far as this process knows (any rank; local; negative:
 * an error). Ranks may see a newcomer at different moments: decide together, for example by an
 * all-reduce with DTRAIN_MAX, whether to call dtrain_comm_reform(). */
DTRAIN_API int32_t dtrain_comm_newcomers(dtrain_comm_t *comm);
/* Describes in JSON how the last reform has changed the job: {"generation": 2, "size": 3, "ranks":
 * [0, 2, null], "came": ["10.0.0.4 pid 991"], "went": ["rank 1 (...) lost: connection closed"]}.
 * ranks: of each rank its old one, null for a newcomer (newcomers are told the same). "{}" for one
 * that no reform has made. Writes at most len bytes with the NUL, and returns the
 * length of the whole text without it. */
DTRAIN_API size_t dtrain_comm_changes(const dtrain_comm_t *comm, char *buf, size_t len);
DTRAIN_API int32_t dtrain_comm_rank(const dtrain_comm_t *comm); /* -1 for NULL */
DTRAIN_API int32_t dtrain_comm_size(const dtrain_comm_t *comm); /* -1 for NULL */
/* DTRAIN_OK, or the error that broke the communicator (its text: dtrain_last_error()). */
DTRAIN_API dtrain_status_t dtrain_comm_status(dtrain_comm_t *comm);
/* Writes up to max failed ranks in ascending order; returns how many have failed, or < 0. */
DTRAIN_API int32_t dtrain_comm_failed(dtrain_comm_t *comm, int32_t *ranks, int32_t max);

/* ---- collectives ----------------------------------------------------------------------------- */
/* All ranks of a communicator call the same collectives in the same order. If calls differ (kind,
 * count, dtype, op, root, order), they end with DTRAIN_ERR_MISMATCH on all ranks, and the text
 * names both sides. Counts are in elements. In place: send == recv unless stated otherwise; other
 * overlaps are DTRAIN_ERR_INVALID. f16 and bf16 are added in f32 and rounded at the end of each
 * step of the algorithm. Results are bitwise equal on all ranks, and the same from run to run and
 * from processor to processor with the same algorithm. This requires that all threads of all ranks
 * round to nearest and keep subnormal numbers, which is the default unless a program changes it
 * (for example by linking with -ffast-math). */
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
/* AVG is the sum over the n ranks, divided by n. For integers it is the quotient of the exact sum,
 * rounded toward zero; f16 is added in f32 and rounded once, at the end: the dtype can always hold
 * the result. For this their sums need memory for the whole input. Between hosts, and wherever
 * messages are used, the sums travel as f32 (f16), as 32 bits (integers of 8 and 16 bits), 64 bits
 * (of 32) or 128 bits (of 64). With prescale 1/n, SUM of f16 travels as f16; values below the least
 * f16 number are then lost. AVG of f32, f64 and bf16 is infinite where the sum is. PROD and SUM of
 * integers wrap. MIN and MAX of anything and NaN are NaN, and -0 is less than 0. B* are bitwise and
 * for integers only.
 * ADASUM is for all-reduce of floating dtypes: it averages gradients that agree and adds orthogonal
 * ones. Pairs of vectors are combined to a (1 - a.b / 2 a.a) + b (1 - a.b / 2 b.b) over a binary
 * tree of ranks, with dot products in double. A vector of zeros adds nothing; a NaN or infinity
 * makes the whole result NaN. ADASUM needs scratch memory of half the vector; on some ranks of the
 * whole vector if the number of ranks is not a power of two. Maleki et al.: Scaling Distributed
 * Training with Adaptive Summation, MLSys 2021. */
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
/* Bytes of one element; 0 for an unknown dtype. */
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
/* As allreduce, but only root gets the result (elsewhere recv may be NULL and is not touched). */
DTRAIN_API dtrain_status_t dtrain_reduce(dtrain_comm_t *comm, const void *send, void *recv,
                                         uint64_t count, uint32_t dtype, uint32_t op, int32_t root,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p);
/* send holds size * count elements; recv gets block `rank` of the result.
 * In place: recv == send + rank * count (the other blocks of send are then undefined). */
DTRAIN_API dtrain_status_t dtrain_reduce_scatter(dtrain_comm_t *comm, const void *send, void *recv,
                                                 uint64_t count, uint32_t dtype, uint32_t op,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* counts[size]: elements of each rank's block, the same on all ranks; blocks are packed. */
DTRAIN_API dtrain_status_t dtrain_reduce_scatterv(dtrain_comm_t *comm, const void *send, void *recv,
                                                  const uint64_t *counts, uint32_t dtype,
                                                  uint32_t op, const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* recv gets size blocks of count elements in rank order. In place: send == recv + rank * count. */
DTRAIN_API dtrain_status_t dtrain_allgather(dtrain_comm_t *comm, const void *send, void *recv,
                                            uint64_t count, uint32_t dtype,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* Block r of counts[r] elements goes to recv + displs[r] (in elements; NULL: packed). Both arrays
 * are the same on all ranks, else DTRAIN_ERR_MISMATCH. */
DTRAIN_API dtrain_status_t dtrain_allgatherv(dtrain_comm_t *comm, const void *send, void *recv,
                                             const uint64_t *counts, const uint64_t *displs,
                                             uint32_t dtype, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
/* Copies root's buffer to all ranks. */
DTRAIN_API dtrain_status_t dtrain_broadcast(dtrain_comm_t *comm, void *buffer, uint64_t count,
                                            uint32_t dtype, int32_t root,
                                            const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* recv of root gets size blocks of count elements; on other ranks recv is NULL. In place on root:
 * send == recv + root * count. */
DTRAIN_API dtrain_status_t dtrain_gather(dtrain_comm_t *comm, const void *send, void *recv,
                                         uint64_t count, uint32_t dtype, int32_t root,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p);
/* counts and displs (NULL: packed) are the same on every rank, as in allgatherv, although only
 * root's buffer has the blocks. */
DTRAIN_API dtrain_status_t dtrain_gatherv(dtrain_comm_t *comm, const void *send, void *recv,
                                          const uint64_t *counts, const uint64_t *displs,
                                          uint32_t dtype, int32_t root,
                                          const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p);
/* send of root holds size blocks of count elements (NULL on other ranks); each rank gets its block.
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
/* Block j of send goes to block `rank` of rank j's recv; both hold size * count elements.
 * In place is allowed. */
DTRAIN_API dtrain_status_t dtrain_alltoall(dtrain_comm_t *comm, const void *send, void *recv,
                                           uint64_t count, uint32_t dtype,
                                           const dtrain_op_params_t *params,
                                           dtrain_request_t **request_p);
/* As alltoall, with counts and displacements per peer (elements; displs NULL: packed); not in
 * place. send_counts[j] of this rank must equal recv_counts[rank] of rank j. */
DTRAIN_API dtrain_status_t dtrain_alltoallv(
    dtrain_comm_t *comm, const void *send, const uint64_t *send_counts, const uint64_t *send_displs,
    void *recv, const uint64_t *recv_counts, const uint64_t *recv_displs, uint32_t dtype,
    const dtrain_op_params_t *params, dtrain_request_t **request_p);
/* Completes once every rank has called it. */
DTRAIN_API dtrain_status_t dtrain_barrier(dtrain_comm_t *comm, const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p);

/* Point to point: messages of one (sender, tag) arrive in order. If a message is longer than the
 * receive buffer, the receive ends with DTRAIN_ERR_TRUNCATED. peer may be this rank itself. */
#define DTRAIN_ANY_RANK (-1) /* dtrain_recv: from any rank; the event's peer names the sender */
DTRAIN_API dtrain_status_t dtrain_send(dtrain_comm_t *comm, const void *buffer, uint64_t count,
                                       uint32_t dtype, int32_t peer, uint32_t tag,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_recv(dtrain_comm_t *comm, void *buffer, uint64_t count,
                                       uint32_t dtype, int32_t peer, uint32_t tag,
                                       const dtrain_op_params_t *params,
                                       dtrain_request_t **request_p);

/* ---- gradient queues ------------------------------------------------------------------------- */
/* All-reduces of named tensors that ranks submit in any order, from any thread. The ranks agree
 * which tensors are ready everywhere, pack small tensors together, and reduce them while the
 * program computes. A thread of the queue does this, whatever option progress says; it sleeps while
 * nothing is submitted. See docs/GRADIENTS.md. */
typedef struct dtrain_gradients_params {
    uint32_t struct_size;
    uint32_t flags;        /* none yet                                                            */
    uint64_t bucket_bytes; /* tensors are packed together up to this size; larger ones are reduced
                              unpacked. 0: option gradients.bucket. The same on all ranks         */
    int64_t cycle_ns;      /* least time between two checks of what is ready, at most 1 s;
                              0: option gradients.cycle                                           */
    int64_t stall_warn_ns; /* a tensor that has waited this long for other ranks is logged, again
                              after the same time; 0: option gradients.stall; < 0: never          */
    int64_t stall_fail_ns; /* after this time it fails; 0: option gradients.stall_limit; < 0: never
                            */
} dtrain_gradients_params_t;
/* Collective over comm, blocking: the queue uses a separate communicator, which it creates now. A
 * communicator may have any number of queues. params may be NULL. */
DTRAIN_API dtrain_status_t dtrain_gradients_create(dtrain_comm_t *comm,
                                                   const dtrain_gradients_params_t *params,
                                                   dtrain_gradients_t **gradients_p);
/* Exclusive. Ends the queue on all ranks: unfinished tensors and later calls end with
 * DTRAIN_ERR_CANCELED, naming the rank that destroyed its queue first. Waits until the other ranks
 * know: for the bucket that is being reduced and, if they are alive, at most one second more. */
DTRAIN_API dtrain_status_t dtrain_gradients_destroy(dtrain_gradients_t *gradients);
/* recv[i] = op over ranks of send[i], once every rank has submitted a tensor of this name (1 to 255
 * bytes) with the same count (> 0), dtype and op. In place: send == recv. Refused with
 * DTRAIN_ERR_BUSY while a tensor of this name is unfinished on this rank. These errors end this
 * tensor only, on all ranks: DTRAIN_ERR_MISMATCH, if count, dtype or op differ, and
 * DTRAIN_ERR_TIMEOUT, naming the ranks that did not submit it, when the timeout of one rank has
 * passed. Among the tensors that are ready, a higher op_params.priority goes first. Give the same
 * priority on all ranks: the one given by the rank that submitted the name first counts. A
 * submitted tensor cannot be canceled, since other ranks may have begun it. */
DTRAIN_API dtrain_status_t dtrain_gradients_submit(dtrain_gradients_t *gradients, const char *name,
                                                   const void *send, void *recv, uint64_t count,
                                                   uint32_t dtype, uint32_t op,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* For a rank that has run out of data: until all ranks have joined, this rank contributes zeros to
 * what the others submit. (SUM, and AVG, which still divides by the number of all ranks. Other ops
 * end with DTRAIN_ERR_UNSUPPORTED on the ranks that submit them.) Completes when all ranks have
 * joined; then all continue as before. The event's peer, or *last_p of a blocking call (may be
 * NULL), is the rank that joined last. params.timeout_ns 0 means no timeout; after
 * DTRAIN_ERR_TIMEOUT this rank stays joined. */
DTRAIN_API dtrain_status_t dtrain_gradients_join(dtrain_gradients_t *gradients,
                                                 const dtrain_op_params_t *params, int32_t *last_p,
                                                 dtrain_request_t **request_p);
/* Counts of this rank since the queue was created. */
typedef struct dtrain_gradients_counters {
    uint32_t struct_size; /* of the caller, by DTRAIN_INIT; no more bytes are written */
    uint32_t reserved;
    uint64_t cycles;        /* small exchanges of what is ready                    */
    uint64_t exchanges;     /* cycles that a full exchange followed (new names, joins) */
    uint64_t tensors;       /* tensors of this rank that were reduced              */
    uint64_t buckets;       /* all-reduces of data, packed or not                  */
    uint64_t fused_tensors; /* tensors that were packed with others                */
    uint64_t fused_bytes;   /* bytes of the buckets that held these tensors        */
    uint64_t stalls;        /* stall reports logged                                */
} dtrain_gradients_counters_t;
DTRAIN_API dtrain_status_t dtrain_gradients_stats(dtrain_gradients_t *gradients,
                                                  dtrain_gradients_counters_t *stats);

/* ---- compressed all-reduce ------------------------------------------------------------------- */
/* Repeated all-reduces of one f32 vector that send fewer bytes. What a step does not send of its
 * input is kept and added to the input of the next step (error feedback), so that over time nothing
 * is lost. Which kind to choose, formulas and sources: docs/COMPRESSION.md. Results are bitwise
 * equal on all ranks. A NaN or infinity makes NaN or infinite: its element (F16, BF16, and TOPK,
 * which sends such elements first), its block (INT8, ONEBIT), or its matrix (POWERSGD). It is never
 * kept for the next step. */
typedef struct dtrain_compressor dtrain_compressor_t;
enum {
    DTRAIN_COMPRESS_F16 = 1,    /* magnitudes above 65504 become infinite                        */
    DTRAIN_COMPRESS_BF16 = 2,   /* the range of f32, 8 bits of precision                         */
    DTRAIN_COMPRESS_INT8 = 3,   /* the greatest magnitude of a block becomes 127                 */
    DTRAIN_COMPRESS_TOPK = 4,   /* exactly the elements of greatest magnitude                    */
    DTRAIN_COMPRESS_ONEBIT = 5, /* signs, and the mean magnitude of each block                   */
    DTRAIN_COMPRESS_POWERSGD = 6, /* a matrix of low rank */
};
#define DTRAIN_COMPRESS_NO_FEEDBACK UINT32_C(1) /* what a step does not send is lost */
#define DTRAIN_COMPRESS_STOCHASTIC  UINT32_C(2) /* INT8: rounds at random, exact on average */
typedef struct dtrain_compressor_params {
    uint32_t struct_size;
    uint32_t kind;  /* DTRAIN_COMPRESS_*                                                          */
    uint64_t count; /* elements of the vector, > 0; TOPK: < 2^32                                  */
    uint32_t dtype; /* DTRAIN_F32, or 0 for it; others: DTRAIN_ERR_UNSUPPORTED */
    uint32_t flags; /* DTRAIN_COMPRESS_NO_FEEDBACK, ...                                           */
    uint32_t block; /* INT8, ONEBIT: elements that share one scale, a multiple of 8 up to 65536;
                       0: 256                                                                     */
    uint32_t rank;  /* POWERSGD: rank of the approximation, at most 64; 0: 2                      */
    uint64_t rows;  /* POWERSGD: rows of the matrix, a divisor of count; 0: nearly square         */
    uint64_t seed;  /* of random numbers                                                          */
    double ratio;   /* TOPK: share of the elements that a rank sends, at least one element, up to
                       1; 0: 0.01                                                                 */
    /* POWERSGD: the vector consists of matrices, one after the other: rows and columns of each in
     * turn, 2 * matrix_count numbers. Those for which a low rank does not pay, such as a bias (one
     * row), are sent as they are. All together are one operation with two messages. Read during the
     * call; NULL: one matrix, by `rows`. */
    const uint64_t *matrices;
    uint64_t matrix_count;
} dtrain_compressor_params_t;
/* Collective over comm, blocking: all ranks give the same parameters, else DTRAIN_ERR_MISMATCH. The
 * compressor's operations run on a duplicate of comm: they neither wait for nor disturb calls on
 * comm. All memory is allocated in this call (docs/COMPRESSION.md says how much). */
DTRAIN_API dtrain_status_t dtrain_compressor_create(dtrain_comm_t *comm,
                                                    const dtrain_compressor_params_t *params,
                                                    dtrain_compressor_t **compressor_p);
/* Exclusive. Local: waits for no other rank; a pending operation ends with DTRAIN_ERR_CANCELED. */
DTRAIN_API dtrain_status_t dtrain_compressor_destroy(dtrain_compressor_t *compressor);
/* recv = approximately the sum (DTRAIN_SUM) or mean (DTRAIN_AVG) over ranks of send; both hold
 * `count` f32. In place: send == recv. Collective; one at a time: DTRAIN_ERR_BUSY while the
 * previous one has not finished. After a failure the compressor cannot be used any more, like a
 * broken communicator. */
DTRAIN_API dtrain_status_t dtrain_compressor_allreduce(dtrain_compressor_t *compressor,
                                                       const float *send, float *recv, uint32_t op,
                                                       const dtrain_op_params_t *params,
                                                       dtrain_request_t **request_p);
/* Discards what earlier steps have kept, as after create. Call it on all ranks between the same two
 * operations. DTRAIN_ERR_BUSY while an operation runs. */
DTRAIN_API dtrain_status_t dtrain_compressor_reset(dtrain_compressor_t *compressor);
typedef struct dtrain_compression_stats { /* 64 bytes, frozen; since create */
    uint64_t operations;
    uint64_t raw_bytes;  /* bytes that this rank would have sent without compression           */
    uint64_t sent_bytes; /* bytes that it sent. Both: without headers, by the cheapest algorithm */
    double residual;     /* Euclidean norm of what this rank keeps for the next step           */
    uint64_t reserved[4];
} dtrain_compression_stats_t;
/* DTRAIN_ERR_BUSY while an operation runs. */
DTRAIN_API dtrain_status_t dtrain_compressor_stats(dtrain_compressor_t *compressor,
                                                   dtrain_compression_stats_t *stats_p);

/* ---- graphs: averages with neighbors instead of all ranks (docs/DECENTRALIZED.md) ------------ */
/* A graph is a mixing matrix W over the ranks of a communicator: W[i][j] is the weight that rank i
 * gives to the value of rank j. Steps of dtrain_neighbor_average() bring all ranks' values to their
 * mean when W's rows and columns each sum to one. All kinds but CUSTOM have such a W:
 *   RING         the ranks before and after            GRID  a torus, as square as possible
 *   EXPONENTIAL  from ranks rank - 1, - 2, - 4, ...    FULL  all ranks
 * with Metropolis-Hastings weights, 1 / (1 + the larger number of neighbors of the two ranks).
 * EXPONENTIAL, whose edges go one way, gives all the same weight. A graph has at most 2^20 edges.
 */
enum {
    DTRAIN_GRAPH_RING = 1,
    DTRAIN_GRAPH_GRID = 2,
    DTRAIN_GRAPH_EXPONENTIAL = 3,
    DTRAIN_GRAPH_FULL = 4,
    DTRAIN_GRAPH_CUSTOM = 5
};
/* For CUSTOM: columns need not sum to one; values then tend to a common, weighted mean. */
#define DTRAIN_GRAPH_ROWS_ONLY UINT64_C(1)
#define DTRAIN_GRAPH_SIGNED    UINT64_C(2) /* for CUSTOM: weights may be negative */
typedef struct dtrain_graph_params {
    uint32_t struct_size;
    uint32_t kind;  /* DTRAIN_GRAPH_*, the same on all ranks                         */
    uint64_t flags; /* DTRAIN_GRAPH_ROWS_ONLY, DTRAIN_GRAPH_SIGNED; the same on all ranks */
    /* For CUSTOM only; the arrays are read during the call. */
    int32_t in_count, out_count;
    const int32_t *in_neighbors;  /* [in_count]: ranks whose values this rank gets, not itself   */
    const double *in_weights;     /* [in_count]; NULL on all ranks: Metropolis-Hastings weights;
                                     all edges must then go both ways                            */
    const int32_t *out_neighbors; /* [out_count]: ranks that get this rank's value, checked against
                                     their in_neighbors; NULL: all ranks that name this rank     */
    double self_weight;           /* with in_weights: weight of this rank's value                */
} dtrain_graph_params_t;
/* Creates a graph. Collective, blocking. Errors appear on all ranks, name the rank or edge, and
 * leave comm usable:
 *   ERR_INVALID   a row does not sum to 1 within 1e-6, or a column does not and ROWS_ONLY is not
 *                 set; a rank cannot be reached from another along edges with weights other than
 *                 0; an edge is given twice, leads to the rank itself or to a rank that does not
 *                 exist; a weight is not finite, or is negative without SIGNED; the parameters of
 *                 a rank are wrong in themselves
 *   ERR_MISMATCH  kinds or flags differ between ranks, or out_neighbors from what others expect
 *   ERR_LIMIT     more edges than 2^20
 * The graph has to be destroyed before comm. */
DTRAIN_API dtrain_status_t dtrain_graph_create(dtrain_comm_t *comm,
                                               const dtrain_graph_params_t *params,
                                               dtrain_graph_t **graph_p);
/* Exclusive, local; NULL is fine. Operations in flight continue. */
DTRAIN_API void dtrain_graph_destroy(dtrain_graph_t *graph);
enum { DTRAIN_GRAPH_IN = 1, DTRAIN_GRAPH_OUT = 2 };
/* Writes up to max of the ranks whose values this rank gets (IN) or that get its value (OUT), in
 * ascending order, and the weights of these edges (each array may be NULL). Returns how many such
 * ranks there are, or < 0. */
DTRAIN_API int32_t dtrain_graph_neighbors(const dtrain_graph_t *graph, uint32_t direction,
                                          int32_t *ranks, double *weights, int32_t max);
/* Writes W[rank][rank]. */
DTRAIN_API dtrain_status_t dtrain_graph_self_weight(const dtrain_graph_t *graph, double *weight_p);
/* Writes 1 - the largest modulus of W's eigenvalues besides the 1 of the mean. k averages leave
 * about (1 - gap)^k of the distance to the mean, so a larger gap is better: it is 1 for FULL; with
 * a gap of 0 or less the values do not converge (a ring of even size without self weights). Local.
 * A dense method, with memory of n^2 and time of n^3 for n ranks; DTRAIN_ERR_LIMIT beyond 256. */
DTRAIN_API dtrain_status_t dtrain_graph_spectral_gap(const dtrain_graph_t *graph, double *gap_p);
/* Operations over a graph are collectives of its communicator: all ranks call them in the same
 * order among the communicator's other collectives. They wait for neighbors only.
 *
 * recv[i] = self_weight * send[i] + sum over in-neighbors of weight * their send[i], for f32, f64,
 * f16 and bf16. Terms, this rank's included, are added in the order of the ranks; f16 and bf16 in
 * f32 with one rounding at the end. Weights are rounded to f32 unless the dtype is f64. In place:
 * send == recv. */
DTRAIN_API dtrain_status_t dtrain_neighbor_average(dtrain_graph_t *graph, const void *send,
                                                   void *recv, uint64_t count, uint32_t dtype,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* recv gets one block of count elements from each in-neighbor (its send), in the order of
 * dtrain_graph_neighbors(). Not in place. */
DTRAIN_API dtrain_status_t dtrain_neighbor_allgather(dtrain_graph_t *graph, const void *send,
                                                     void *recv, uint64_t count, uint32_t dtype,
                                                     const dtrain_op_params_t *params,
                                                     dtrain_request_t **request_p);
/* send holds one block of count elements for each out-neighbor, recv gets one from each
 * in-neighbor, both in the order of dtrain_graph_neighbors(). Not in place. */
DTRAIN_API dtrain_status_t dtrain_neighbor_alltoall(dtrain_graph_t *graph, const void *send,
                                                    void *recv, uint64_t count, uint32_t dtype,
                                                    const dtrain_op_params_t *params,
                                                    dtrain_request_t **request_p);

/* ---- parameter server ------------------------------------------------------------------------ */
/* A table is dense, an array of `length` elements split by key range over the job's servers, or
 * sparse: rows addressed by 64-bit keys. A job without servers spreads tables over its ranks; the
 * program is the same either way.
 *
 * Consistency modes. Each worker has a clock, which dtrain_table_clock() advances:
 *   ASYNC  every push is applied at once; every pull returns the current values
 *   BSP    pushes of one clock are aggregated, and applied together once all workers have ended the
 *          clock; a pull at clock c sees exactly the updates of all workers' clocks before c
 *   SSP    pushes are applied at once; a pull at clock c waits until every worker's clock is at
 *          least c - staleness, so that it sees all updates before that clock
 *   QUORUM as BSP, but a server's step is over once the first `quorum` workers have ended it there:
 *          exactly their pushes are aggregated. Pushes and clocks that come later are dropped and
 *          counted (dtrain_stats_table), without an error; the late worker continues at the
 *          server's newest step that it knows of (as in TensorFlow's SyncReplicasOptimizer).
 *          Every server counts separately. A pull at clock c sees at least c updates. */
enum { DTRAIN_ASYNC = 1, DTRAIN_BSP = 2, DTRAIN_SSP = 3, DTRAIN_QUORUM = 4 };
/* The update rule: what a push of g does to a value w (hyper-parameters below; formulas in
 * docs/PARAMETER_SERVER.md). All rules but ADD, ASSIGN, MIN and MAX need a floating-point table. */
enum {
    DTRAIN_RULE_ADD = 1,           /* adds g */
    DTRAIN_RULE_ASSIGN = 2,        /* replaces w by g */
    DTRAIN_RULE_SGD = 3,           /* gradient descent */
    DTRAIN_RULE_MOMENTUM = 4,      /* with momentum: Polyak 1964 */
    DTRAIN_RULE_ADAGRAD = 5,       /* Adagrad: Duchi, Hazan and Singer 2011 */
    DTRAIN_RULE_ADAM = 6,          /* Adam: Kingma and Ba 2015 */
    DTRAIN_RULE_MEAN = 7,          /* the mean of all pushes of the element so far */
    DTRAIN_RULE_MIN = 8,           /* the least of the value and all pushes */
    DTRAIN_RULE_MAX = 9,           /* the greatest of the value and all pushes */
    DTRAIN_RULE_NESTEROV = 10,     /* Nesterov's momentum: Sutskever et al. 2013 */
    DTRAIN_RULE_ADAGRAD_ROWS = 11, /* Adagrad with one sum per row: of the mean squares of its g */
    DTRAIN_RULE_RMSPROP = 12,      /* RMSProp: Tieleman and Hinton 2012 */
    DTRAIN_RULE_ADADELTA = 13,     /* Adadelta: Zeiler 2012 */
    DTRAIN_RULE_ADAMW = 14,    /* Adam with decoupled weight decay: Loshchilov and Hutter 2019 */
    DTRAIN_RULE_AMSGRAD = 15,  /* AMSGrad: Reddi, Kale and Kumar 2018 */
    DTRAIN_RULE_FTRL = 16,     /* FTRL-proximal: McMahan et al. 2013 */
    DTRAIN_RULE_LARS = 17,     /* LARS: You, Gitman and Ginsburg 2017 */
    DTRAIN_RULE_LAMB = 18,     /* LAMB: You et al. 2020 */
    DTRAIN_RULE_DC_SGD = 19,   /* delay-compensated SGD: Zheng et al. 2017; no BSP */
    DTRAIN_RULE_FUNCTION = 20, /* a function of the servers, by name: dtrain_function.h */
};
/* What a row of a sparse table holds before its first push. A row's initial values depend only on
 * seed and key, not on the server. UNIFORM and NORMAL need a floating-point table. */
enum {
    DTRAIN_INITIAL_CONSTANT = 1, /* `initial`                                      */
    DTRAIN_INITIAL_UNIFORM = 2,  /* from initial - spread up to initial + spread   */
    DTRAIN_INITIAL_NORMAL = 3    /* mean `initial`, standard deviation `spread`    */
};
/* A number that has a default gets it where the number is 0 and its bit is not in `given`. With
 * the bit, the number is taken as it is: params.momentum = 0; params.given |=
 * DTRAIN_GIVEN_MOMENTUM; */
#define DTRAIN_GIVEN_LEARNING_RATE UINT32_C(0x1)
#define DTRAIN_GIVEN_MOMENTUM      UINT32_C(0x2)
#define DTRAIN_GIVEN_BETA1         UINT32_C(0x4)
#define DTRAIN_GIVEN_BETA2         UINT32_C(0x8)
#define DTRAIN_GIVEN_EPSILON       UINT32_C(0x10)
#define DTRAIN_GIVEN_RHO           UINT32_C(0x20)
#define DTRAIN_GIVEN_TRUST         UINT32_C(0x40)
#define DTRAIN_GIVEN_FTRL_BETA     UINT32_C(0x80)
#define DTRAIN_GIVEN_COMPENSATION  UINT32_C(0x100) /* not for segments */
#define DTRAIN_GIVEN_ACCUMULATOR   UINT32_C(0x200)
/* Columns [first, first + count) of each row, updated by a separate rule. The numbers mean the same
 * as those of the same names in dtrain_table_params_t. */
#define DTRAIN_SEGMENTS 16 /* most segments of a table */
typedef struct dtrain_segment {
    uint32_t struct_size; /* the same in all elements of an array                        */
    uint32_t rule;        /* DTRAIN_RULE_*, except DC_SGD and FUNCTION                   */
    uint64_t first, count;
    double learning_rate, momentum, beta1, beta2, epsilon, rho;
    double clip_value, clip_norm, weight_decay, l1, l2, trust, ftrl_beta;
    uint32_t given; /* DTRAIN_GIVEN_*                                                    */
    uint32_t reserved;
    double accumulator;
} dtrain_segment_t;
/* How a push that contains a NaN or an infinity is treated. If it is applied, values become NaN or
 * infinite, and no later push repairs them. */
enum {
    DTRAIN_NOT_FINITE_TAKE = 1,   /* it is applied like any other                               */
    DTRAIN_NOT_FINITE_REFUSE = 2, /* DTRAIN_ERR_INVALID, naming the element or key, before any part
                                     of the push leaves the worker                              */
    DTRAIN_NOT_FINITE_DROP = 3    /* servers leave out each request (at most 256 KiB) that contains
                                     one, without an error, and count it                        */
};
/* The update number, from 1, that ADAM and its variants and LAMB use. MEAN always uses OWN. */
enum {
    DTRAIN_STEPS_OWN = 1,  /* each element, or row, counts its updates: rare rows are corrected as
                              new ones                                                            */
    DTRAIN_STEPS_TABLE = 2 /* the server's count for the table, t of schedules below, as torch.optim
                              and Keras, whose optimizers have one count for all; no counts are
                              stored with elements or rows                                       */
};
/* The divisor of an aggregate of DTRAIN_AVG: which workers it counts. */
enum {
    DTRAIN_MEAN_WORKERS = 1, /* all workers whose pushes make the update, with or without the row */
    DTRAIN_MEAN_PUSHERS = 2  /* for each row the workers that have pushed it in the clock, each once
                                with its weight, or 1; sparse tables without a function       */
};
/* Schedules: the learning rate as a function of t, the number of the table's update on the server,
 * counted from 1. (BSP, QUORUM: one update per clock; else one per push of any worker.) The rate is
 * learning_rate, which dtrain_table_set_rate() replaces, times t / warmup_steps while that is below
 * 1, then times f(s), where s counts the updates after the first one at the whole rate:
 * s = t - max(1, warmup_steps). With n = decay_steps and d = decay, f is: */
enum {
    DTRAIN_SCHEDULE_CONSTANT = 1,    /* 1                                                        */
    DTRAIN_SCHEDULE_LINEAR = 2,      /* from 1 to d in n updates, then d                         */
    DTRAIN_SCHEDULE_COSINE = 3,      /* likewise: d + (1 - d) * (1 + cos(pi * s / n)) / 2:
                                        Loshchilov and Hutter 2017                               */
    DTRAIN_SCHEDULE_EXPONENTIAL = 4, /* d^(s / n)                                                */
    DTRAIN_SCHEDULE_STAIRCASE = 5,   /* d^floor(s / n)                                           */
    DTRAIN_SCHEDULE_INVERSE_SQRT = 6 /* sqrt(n / (n + s)): Vaswani et al. 2017 if n is the warmup */
};
/* Which servers hold the parts of a table. docs/PARAMETER_SERVER.md, "Placement", says what each
 * placement is for. */
enum {
    DTRAIN_PLACE_RANGE = 1,       /* contiguous ranges of elements, or of keys                  */
    DTRAIN_PLACE_HASH = 2,        /* by a hash of the key; dense: of the block's number         */
    DTRAIN_PLACE_CONSISTENT = 3,  /* on a circle with virtual nodes: Karger et al. 1997         */
    DTRAIN_PLACE_ROUND_ROBIN = 4, /* the whole table on one server, the next one in turn        */
    DTRAIN_PLACE_GREEDY = 5,      /* likewise, on the server that tables fill least             */
    DTRAIN_PLACE_USER = 6         /* chosen by a callback                                       */
};
/* USER: returns the server (from 0, below `servers`) of the elements, or keys, [first, first +
 * count). dtrain_table_create() calls it in the thread of that call, for each block in turn. Must
 * return the same on all workers, since each of them builds the map from it. */
typedef uint32_t (*dtrain_place_fn)(void *arg, uint64_t first, uint64_t count, uint32_t servers);
typedef struct dtrain_table_params {
    uint32_t struct_size;
    uint32_t dtype;       /* of the caller's values; see storage_dtype, wire_dtype       */
    uint64_t length;      /* elements; 0 with dim > 0                                    */
    uint32_t rule;        /* DTRAIN_RULE_*; 0: ADD                                       */
    uint32_t consistency; /* DTRAIN_ASYNC, ...; 0: ASYNC                                 */
    uint32_t staleness;   /* SSP: its bound in clocks; others: 0                         */
    uint32_t aggregate;   /* BSP, QUORUM: DTRAIN_SUM or DTRAIN_AVG over workers; 0: SUM. The rules
                             MIN and MAX aggregate by their own rule, and refuse AVG     */
    /* Numbers of the rule, >= 0 (FTRL's learning rate: > 0). A number that the rule does not use,
     * or that is out of range, is refused. Defaults where the number is 0 and not in `given`: */
    double learning_rate; /* all optimizers: 0.01, ADADELTA 1; segments: a factor, 1     */
    double momentum;      /* MOMENTUM, NESTEROV, LARS: 0.9; less than 1                  */
    double beta1, beta2;  /* ADAM and its variants, LAMB: 0.9, 0.999; less than 1        */
    double epsilon; /* ADAGRAD(_ROWS), RMSPROP, ADAM and variants: 1e-8; ADADELTA, LAMB: 1e-6 */
    double initial; /* value of every element before the first push or set         */
    /* Elements of a row, a divisor of length; 0: none. A row lies on one server. Rules with norms
     * (ADAGRAD_ROWS, LARS, LAMB, and all with clip_norm) compute them over each row (0: over the
     * whole table as one row) and take pushes of whole rows only; such rows hold at most 256 KiB
     * except under BSP. */
    uint64_t row_length;
    double rho; /* RMSPROP, ADADELTA: decay of the mean square: 0.9; less than 1, see `given` */
    /* The following change what optimizers do (other rules: DTRAIN_ERR_INVALID); 0: no change. The
     * order is: clip, add weight_decay * w to g (ADAMW, LARS, LAMB: as in their papers), apply the
     * rule, shrink w by l1 and l2 (proximal step of Duchi and Singer 2009 with the learning rate;
     * FTRL: as in its paper). */
    double clip_value; /* each g is limited to [-clip_value, clip_value]              */
    double clip_norm;  /* each row of g is scaled down to this L2 norm of its finite elements */
    double weight_decay, l1, l2;
    double trust;        /* LARS: trust coefficient: 0.001; see `given`                 */
    double ftrl_beta;    /* FTRL: 1; see `given`                                        */
    double compensation; /* DC_SGD: lambda: 0.04; see `given`                           */
    /* Sparse tables: see dtrain_table_push_rows(). Dense tables: 0. */
    uint32_t dim;          /* elements of a row; 0: the table is dense                    */
    uint32_t distribution; /* DTRAIN_INITIAL_*; 0: CONSTANT                               */
    double spread;         /* UNIFORM, NORMAL                                             */
    uint64_t seed;         /* of random initial values and of random rounding             */
    uint64_t max_bytes;    /* of rows, state and index on each server, at least a row; 0: see
                              ps.memory                                                   */
    /* FUNCTION (elsewhere NULL): the name of the servers' function, copied. With a row_length,
     * pushes and pulls are of whole rows of at most 256 KiB, at 8 bytes an element. */
    const char *function;
    /* A rule for each group of columns of the rows (of dim, or row_length, elements). The segments
     * cover the columns in order, each column once. `rule` is then 0, and so are all numbers that a
     * segment has except learning_rate: the segments' rates are multiplied by it (0: by 1), and by
     * what replaces it. Norms are computed over the segment's part of a row. Pushes are of whole
     * rows of at most 256 KiB. Copied. */
    const dtrain_segment_t *segments;
    uint32_t segment_count;
    uint32_t reserved;
    uint32_t quorum;       /* QUORUM: workers whose pushes make a step, 1 to all          */
    uint32_t reproducible; /* 1: sums are made in the order of ranks and of each worker's calls, so
                              that two runs give the same bits; BSP, or QUORUM of all workers */
    /* The types in which servers store values, and in which pushes and pulls travel; 0: the table's
     * dtype, the only choice except for these: An F32 table may use F16, BF16 or I8 (rows of at
     * least 2 elements) for either or both. An F16 or BF16 table may be stored as F32, a master
     * copy: no part of an update is lost then. In all these cases arithmetic, sums of gradients and
     * state are F32; values that are set travel in the table's dtype, state as F32. I8: blocks of
     * up to 128 values of a row (of dim, or row_length, elements; else of the table, on the wire of
     * a request) share one F32 scale: value = byte * scale, scale = largest magnitude / 127
     * (row-wise quantization as for embedding tables: Guan et al. 2019). A NaN or an infinity makes
     * its block NaN.
     * The result of an update of values that are stored as F16, BF16 or I8 is rounded at random,
     * down or up, so that the mean is exact and small updates count (Gupta et al., ICML 2015). The
     * random number depends on seed, key or place, and number of updates on the server. Values that
     * are set, initial values, ASSIGN, MIN and MAX, and everything on the wire are rounded to
     * nearest even. */
    uint32_t storage_dtype; /* DTRAIN_F16, ...: of values on the servers and in checkpoints     */
    uint32_t wire_dtype;    /* of pushes and of pulled values                                   */
    uint32_t placement;     /* DTRAIN_PLACE_*; 0: RANGE of a dense table, HASH of a sparse one */
    uint32_t virtual_nodes; /* CONSISTENT: of the server of greatest weight, <= 1024; 0: 256 */
    /* Dense HASH, CONSISTENT, USER: elements of a block, which lies on one server: whole rows, at
     * most 16384 blocks in the table; 0: about 65536 elements. */
    uint64_t placement_block;
    /* Sparse RANGE, USER: keys are below this (larger keys lie on the server of the last one); 0:
     * any. A block of USER then has the least power of two of keys that makes at most 16384.
     */
    uint64_t key_count;
    /* ROUND_ROBIN, GREEDY: a table of more bytes than this, with state and sums, lies on all
     * servers (dense: RANGE, sparse: HASH); 0: none does. A sparse table counts as max_bytes. */
    uint64_t split_bytes;
    /* How much each server holds relative to the others: one weight per server
     * (dtrain_table_describe_server). NULL: equal weights, or, if some of the servers are workers
     * and others are not (option ps.serve), those of dtrain_server_weights(). Not for USER. Copied.
     */
    const uint32_t *weights;
    dtrain_place_fn place; /* USER (elsewhere NULL)                                        */
    void *place_arg;
    uint32_t weight_count;
    uint32_t given; /* DTRAIN_GIVEN_*: the numbers above that are taken as they are even if 0 */
    uint32_t not_finite; /* DTRAIN_NOT_FINITE_*, of floating-point tables; 0: TAKE          */
    uint32_t steps;      /* DTRAIN_STEPS_*, of rules that count updates; 0: OWN             */
    /* Initial value of the sum of ADAGRAD(_ROWS), the n of FTRL, and the square of RMSPROP and
     * ADADELTA; for these rules only. Other state starts at 0. FUNCTION: free for its use. */
    double accumulator;
    uint32_t mean_over;    /* DTRAIN_MEAN_*, with DTRAIN_AVG; 0: WORKERS                    */
    uint32_t schedule;     /* DTRAIN_SCHEDULE_*, of optimizers; 0: CONSTANT                 */
    uint64_t warmup_steps; /* 0: none                                                       */
    uint64_t decay_steps;  /* of schedules other than CONSTANT: >= 1                        */
    /* LINEAR, COSINE: >= 0; EXPONENTIAL, STAIRCASE: > 0. With FTRL, which divides by the rate: > 0
     * for the first two and >= 1 for the other two. */
    double decay;
    /* Where servers keep the values and the rule's state: DTRAIN_MEM_CUDA: in the memory of a GPU
     * (each server's option ps.device), which also applies the rule; results have the same bits.
     * For dense tables, except with FUNCTION, DC_SGD or a storage_dtype of I8
     * (DTRAIN_ERR_UNSUPPORTED). 0, DTRAIN_MEM_HOST: in the servers' host memory. Checkpoints of one
     * can be restored to the other. If a server has no GPU, all workers get its error. */
    uint32_t memory;
    uint32_t reserved2; /* 0 */
} dtrain_table_params_t;
/* Creates a table. Collective over comm (the job's own communicator, not a split one),
 * blocking. All workers give the same name and parameters, else all get DTRAIN_ERR_MISMATCH with
 * the first difference and both sides. If the arguments of one worker are wrong in themselves, all
 * workers get the error, with the rank of that worker. After an error no worker has the table, and
 * comm is as before. name: 1 to 224 bytes; bytes other than letters, digits, '_', '-' and '.' count
 * three, since the name becomes a part of checkpoints' file names. */
DTRAIN_API dtrain_status_t dtrain_table_create(dtrain_comm_t *comm, const char *name,
                                               const dtrain_table_params_t *params,
                                               dtrain_table_t **table_p);
/* Registers an update function for tables that are created later, on the server in this context (a
 * dedicated server, or the one that each worker of a job without servers is). The struct is copied;
 * `user` and the code must outlive the context. DTRAIN_ERR_VERSION: the function is of another ABI.
 * DTRAIN_ERR_STATE: the context already has a function of this name. DTRAIN_ERR_INVALID: the text
 * says what is wrong. Any thread. */
DTRAIN_API dtrain_status_t dtrain_function_register(dtrain_context_t *context,
                                                    const struct dtrain_function *function);
/* Exclusive, local. The servers drop the table when the last worker has destroyed it. */
DTRAIN_API dtrain_status_t dtrain_table_destroy(dtrain_table_t *table);
/* Pushes or pulls the range [first, first + count) of the table; the caller's buffer holds count
 * elements of the table's dtype. A push is done when every server has accepted it; it is applied
 * exactly once, however often the network made the library send it again. The event's version
 * counts the updates applied on the servers of the range (the lowest count of them). */
DTRAIN_API dtrain_status_t dtrain_table_push(dtrain_table_t *table, uint64_t first, uint64_t count,
                                             const void *values, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_pull(dtrain_table_t *table, uint64_t first, uint64_t count,
                                             void *values, const dtrain_op_params_t *params,
                                             dtrain_request_t **request_p);
/* A push followed by a pull of the same range in one round trip. pushed == pulled is allowed.
 * Under BSP the pull belongs to the next clock: this call also ends the worker's clock. */
DTRAIN_API dtrain_status_t dtrain_table_push_pull(dtrain_table_t *table, uint64_t first,
                                                  uint64_t count, const void *pushed, void *pulled,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Overwrites values whatever the rule and the clock (initialization, restore). */
DTRAIN_API dtrain_status_t dtrain_table_set(dtrain_table_t *table, uint64_t first, uint64_t count,
                                            const void *values, const dtrain_op_params_t *params,
                                            dtrain_request_t **request_p);
/* Replaces the learning rate of an optimizer's table. Any worker may call it; the last rate to
 * arrive at a server wins. BSP: the rate applies from the updates of this worker's current clock
 * on; wait for completion before ending that clock. Other modes: it applies to pushes that start
 * after this call is complete. Done when every server has the rate; after a timeout or cancel it
 * may still arrive. DTRAIN_ERR_INVALID: the rule has no rate. */
DTRAIN_API dtrain_status_t dtrain_table_set_rate(dtrain_table_t *table, double rate,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* Says how often the table was updated before, on every server: the next update is number count
 * + 1. For state that was trained elsewhere: t of DTRAIN_STEPS_TABLE and of schedules, random
 * rounding and versions (dtrain_event_t.version) go on from there. Values, state and clocks stay.
 * Any worker may call it, while no worker pushes: it is ordered like sets of values, and waits for
 * no clock. Done when every server has the number. DTRAIN_ERR_INVALID: count is above 2^53. */
DTRAIN_API dtrain_status_t dtrain_table_set_updates(dtrain_table_t *table, uint64_t count,
                                                    const dtrain_op_params_t *params,
                                                    dtrain_request_t **request_p);
/* Writes the number of the server that holds each of these elements (sparse tables: keys). Local;
 * thread-safe. DTRAIN_ERR_INVALID: the table has no such element. */
DTRAIN_API dtrain_status_t dtrain_table_locate(const dtrain_table_t *table, const uint64_t *items,
                                               uint64_t count, uint32_t *servers);
typedef struct dtrain_table_server {
    uint32_t struct_size;
    int32_t rank;      /* of the worker that is this server; -1: a dedicated server              */
    uint64_t elements; /* elements of a dense table that it holds                                */
    uint64_t ranges;   /* ranges that these elements form                                        */
    double share;      /* of all elements, or of all keys (or of their hashes): 0 to 1           */
} dtrain_table_server_t;
/* Describes what a server holds of the table. Servers are numbered from 0: dedicated servers first,
 * then the workers that serve, in the order of their ranks. Local; thread-safe.
 * DTRAIN_ERR_NOT_FOUND after the last. */
DTRAIN_API dtrain_status_t dtrain_table_describe_server(const dtrain_table_t *table,
                                                        uint32_t server,
                                                        dtrain_table_server_t *out);
/* Describes the rule's state, for checkpoints: arrays, numbered from 0, of one number per element.
 * Some have one number per row: the sum of ADAGRAD_ROWS, the steps of LAMB, and the steps of sparse
 * tables and of tables with segments. There is no array of steps with DTRAIN_STEPS_TABLE: see
 * dtrain_table_set_updates(). A segment's array has one number per row for each of its columns;
 * pull and set whole rows of it. Writes the array's name ("momentum", "segment0.momentum", "steps";
 * valid as long as the table), its dtype (F64 for an F64 table, else F32; U64 for steps; for
 * FUNCTION, as the function says) and its length in numbers (sparse tables: per row). Local.
 * DTRAIN_ERR_NOT_FOUND after the last array.
 * What DC_SGD keeps of each worker's last pull is not among the arrays: pull again after a restore.
 */
DTRAIN_API dtrain_status_t dtrain_table_describe_state(const dtrain_table_t *table, uint32_t index,
                                                       const char **name_p, uint32_t *dtype_p,
                                                       uint64_t *count_p);
/* Pulls or sets numbers [first, first + count) of a state array, in its dtype. Ordered like pulls
 * and sets of values; neither waits for a clock. A count of steps is the number of updates done. */
DTRAIN_API dtrain_status_t dtrain_table_pull_state(dtrain_table_t *table, uint32_t index,
                                                   uint64_t first, uint64_t count, void *state,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_set_state(dtrain_table_t *table, uint32_t index,
                                                  uint64_t first, uint64_t count, const void *state,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Ends this worker's current clock; its pushes so far belong to that clock. */
DTRAIN_API dtrain_status_t dtrain_table_clock(dtrain_table_t *table,
                                              const dtrain_op_params_t *params,
                                              dtrain_request_t **request_p);
/* Changes the consistency mode. Collective over comm, the job's own communicator, and blocking.
 * Ends every worker's clock as dtrain_table_clock() does, even if the change fails. Afterwards all
 * workers are at one clock, and the table has the consistency, staleness, quorum and reproducible
 * of params (other fields are not read). BSP: what was pushed is applied. QUORUM: what no quorum
 * has ended is dropped. Values and state stay. Wait for this worker's other operations on the table
 * first (DTRAIN_ERR_STATE).
 * DTRAIN_ERR_MISMATCH: workers ask for different modes; the text has both sides.
 * DTRAIN_ERR_INVALID names the field. DTRAIN_ERR_LIMIT: a server has no memory for the sums. If
 * anything, even wrong arguments, keeps one worker from taking part, all workers get the error with
 * its rank and reason. After these errors the table continues in its old mode. Once all have
 * agreed, the change is made, whatever else fails.
 * After workers were lost: call it over the communicator that dtrain_comm_shrink() has made of the
 * job's own, with all remaining workers. The table then continues with these, in the same or
 * another mode, and nothing waits for the lost workers any more. */
DTRAIN_API dtrain_status_t dtrain_table_set_consistency(dtrain_comm_t *comm, dtrain_table_t *table,
                                                        const dtrain_table_params_t *params,
                                                        const dtrain_op_params_t *op);
/* Sparse tables (params.dim > 0): rows of dim elements, each addressed by any 64-bit key, spread
 * over the servers by a hash of the key. keys[count] may be in any order and may repeat. values:
 * count rows of dim elements of the table's dtype, row i for keys[i]. Both arrays belong to the
 * library until the operation is done. count <= UINT32_MAX; with 0 there is nothing to do.
 * A push is one update of each distinct key and creates missing rows. Rows of a repeated key are
 * added in the table's type (F16 and BF16: in F32, rounded once) in the order of the array (ASSIGN:
 * the last row counts; MIN, MAX: the least or greatest). If a server's memory limit (max_bytes of
 * the table, option ps.memory of the server) has no room for a push, the push ends with
 * DTRAIN_ERR_LIMIT and is applied on no server: it may be repeated once there is room. (With such
 * limits, a push that takes several requests first asks all its servers for room, which costs one
 * more round trip.) A pull of a key without a row returns its initial values and creates no row.
 * Clocks, versions and consistency are as for ranges; a pull is atomic per row on its server.
 * DTRAIN_ERR_INVALID: the table is dense (or sparse, for a call with ranges), an argument is NULL,
 * or count * dim overflows. */
DTRAIN_API dtrain_status_t dtrain_table_push_rows(dtrain_table_t *table, const uint64_t *keys,
                                                  uint64_t count, const void *values,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
DTRAIN_API dtrain_status_t dtrain_table_pull_rows(dtrain_table_t *table, const uint64_t *keys,
                                                  uint64_t count, void *values,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* A push and a pull in one round trip; pushed == pulled is allowed. Under BSP this call also ends
 * the worker's clock, as in dtrain_table_push_pull(). */
DTRAIN_API dtrain_status_t dtrain_table_push_pull_rows(dtrain_table_t *table, const uint64_t *keys,
                                                       uint64_t count, const void *pushed,
                                                       void *pulled,
                                                       const dtrain_op_params_t *params,
                                                       dtrain_request_t **request_p);
/* Overwrites values of rows whatever the rule and the clock, and creates missing rows; for a
 * repeated key the last row counts. State stays. Limits as for a push. */
DTRAIN_API dtrain_status_t dtrain_table_set_rows(dtrain_table_t *table, const uint64_t *keys,
                                                 uint64_t count, const void *values,
                                                 const dtrain_op_params_t *params,
                                                 dtrain_request_t **request_p);
/* Drops rows and their state at once, whatever the clock; under BSP also what was pushed for them
 * in clocks that have not ended. Keys without a row are no error. New rows of the table reuse the
 * memory. */
DTRAIN_API dtrain_status_t dtrain_table_erase_rows(dtrain_table_t *table, const uint64_t *keys,
                                                   uint64_t count, const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* Counts the rows on all servers; *count_p is written when the operation is done. */
DTRAIN_API dtrain_status_t dtrain_table_count_rows(dtrain_table_t *table, uint64_t *count_p,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);
/* Pulls or sets the numbers of state array `index` for the row of each key, as many per row as
 * dtrain_table_describe_state() says. A pull of a key without a row returns the state that a new
 * row starts with; a set creates the row. A count of steps is kept in 32 bits; a larger one is set
 * to the largest. */
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

/* Clips arrays, such as the gradients of all tables, by their common norm, on the worker that will
 * push them. arrays[i] has counts[i] elements of dtypes[i]: F32, F64, F16 or BF16. Arrays do not
 * overlap; one of 0 elements may be NULL. norm_p (may be NULL) gets the L2 norm before clipping,
 * summed in f64, and infinite if f64 cannot hold it. If the norm is above max_norm (finite, > 0),
 * every element is multiplied by max_norm / norm, rounded to f32 (F64: to f64), and the product is
 * rounded to the element's type: the norm is then max_norm except for rounding. The same values in
 * the same arrays give the same bits on all processors. Local, blocking, any thread.
 * DTRAIN_ERR_INVALID names what is wrong, for example an element that is NaN or infinite; nothing
 * has changed then. */
DTRAIN_API dtrain_status_t dtrain_clip_by_global_norm(void *const *arrays, const uint64_t *counts,
                                                      const uint32_t *dtypes, uint32_t array_count,
                                                      double max_norm, double *norm_p);

/* Declares the table initialized. One worker, the chief, usually calls it, once its sets (or its
 * restore) are complete. Done when every server knows. */
DTRAIN_API dtrain_status_t dtrain_table_set_ready(dtrain_table_t *table,
                                                  const dtrain_op_params_t *params,
                                                  dtrain_request_t **request_p);
/* Waits until a worker has declared the table initialized. DTRAIN_ERR_TIMEOUT after
 * params.timeout_ns. DTRAIN_ERR_PEER: a worker was lost before that, and it is unknown whether
 * another worker would do it. */
DTRAIN_API dtrain_status_t dtrain_table_wait_ready(dtrain_table_t *table,
                                                   const dtrain_op_params_t *params,
                                                   dtrain_request_t **request_p);

/* ---- checkpoints of tables ------------------------------------------------------------------- */
/* A checkpoint is a folder below the option "checkpoint.directory", which the servers and the
 * workers that call these functions share (one file system, or the same mount). Each server writes
 * its part of each table, with the rule's state, to safetensors files. The manifest is written
 * last; with it the checkpoint is complete and can be restored. A crash at any moment leaves the
 * complete checkpoints as they were. A job with any number of servers can restore one.
 * docs/PARAMETER_SERVER.md describes the format. Values that a checkpoint holds:
 *   BSP    those of all updates of clocks before this worker's clock, and no others
 *   SSP    the same, if no worker has pushed in its clock, else DTRAIN_ERR_STATE: let all workers
 *          meet (dtrain_barrier) at a clock, one of them save, and all meet again
 *   ASYNC  for each server its values when the request came, between two updates; they include
 *          all pushes that were complete before
 * Once a worker is lost: BSP: those of the last clock that all workers had ended, whatever this
 * worker's clock is; SSP: as ASYNC. */
#define DTRAIN_CHECKPOINT_NEWEST UINT64_MAX /* as a step: the newest complete checkpoint */
/* Lineages: a job that restores a checkpoint continues its lineage; a job that restores none begins
 * a new one. The newest checkpoint is the one that was saved last in the job's lineage with all
 * tables of the call, whatever its step: so after a roll-back (restoring an older one) it is never
 * one of those that were left behind. A job never removes or replaces a complete checkpoint of
 * another lineage. A job that has no lineage yet and finds the tables in several gets
 * DTRAIN_ERR_STATE: it has to name the step. */
typedef struct dtrain_checkpoint_params {
    uint32_t struct_size;
    uint32_t every_steps; /* save: only if this many steps have passed, or                     */
    int64_t every_ns;     /* this much time, since the last checkpoint of this worker, saved or
                             restored, or since its first call; both 0: always                */
    int64_t timeout_ns;   /* as in dtrain_op_params_t                                         */
} dtrain_checkpoint_params_t;
/* Saves a checkpoint. Blocking, called by one worker (the chief). tables[count] are tables of one
 * job with different names; workers may push to them meanwhile. step numbers the checkpoint and
 * must be above the steps at which these tables were last saved or restored; else DTRAIN_ERR_STATE.
 * The same error if a complete checkpoint of this number exists, unless a roll-back (restoring an
 * older one) left it behind: then it is replaced. *saved_p (may be NULL) is 0 when no checkpoint
 * was due. DTRAIN_OK: this process has seen all files of the checkpoint. Afterwards only the
 * "checkpoint.keep" checkpoints of this lineage that were saved last remain, and for each table the
 * last one that has it. DTRAIN_ERR_IO names the server and the file: a disk is full, a folder is
 * not writable, ...; the servers continue, and earlier checkpoints stay. DTRAIN_ERR_CONFIG: a
 * server wrote to a folder that this process does not see. DTRAIN_ERR_PEER: a BSP worker was lost
 * after it had ended a clock on some servers only, so no clock is ended on all: save after
 * dtrain_table_set_consistency(). */
DTRAIN_API dtrain_status_t dtrain_checkpoint_save(dtrain_table_t *const *tables, uint32_t count,
                                                  uint64_t step,
                                                  const dtrain_checkpoint_params_t *params,
                                                  int32_t *saved_p);
/* Restores a checkpoint. Blocking, called by one worker. Values, state, rate and version become
 * those of the checkpoint, whatever the clocks; sums of open clocks stay. Pushes made meanwhile may
 * be overwritten. *step_p (may be NULL) is the step of the checkpoint.
 * DTRAIN_ERR_NOT_FOUND: there is no such checkpoint, or a table is not in it.
 * DTRAIN_ERR_MISMATCH: the stored dtype, length, rule or parameters differ from the table's; the
 * text names the field and both values. Compared are, of the rule (and each segment's): momentum,
 * beta1, beta2, epsilon, rho, trust, ftrl_beta, compensation, FTRL's l1 and l2; of a sparse table,
 * which makes further rows with them: initial, distribution, spread and seed. These may change:
 * clip_value, clip_norm, weight_decay, l1 and l2 of other rules, consistency, placement, and
 * learning_rate, which is replaced by the stored one.
 * DTRAIN_ERR_CORRUPT names the file; a checksum covers every bit of each file.
 * DTRAIN_ERR_UNSUPPORTED: the checkpoint has an older format. DTRAIN_ERR_CONFIG: a server does not
 * see it. DTRAIN_ERR_LIMIT, DTRAIN_ERR_NO_MEMORY: a server has no room to read its part beside the
 * table ("ps.memory"). DTRAIN_ERR_BUSY: another worker is restoring one of the tables.
 * All or nothing: servers adopt what they have read once every server has read its part of every
 * table. After an error no table has changed, with one exception, whose text says "restore again":
 * a server was lost or did not answer (DTRAIN_ERR_PEER, DTRAIN_ERR_TIMEOUT) when others had begun
 * to adopt the checkpoint. timeout_ns covers the whole call. */
DTRAIN_API dtrain_status_t dtrain_checkpoint_restore(dtrain_table_t *const *tables, uint32_t count,
                                                     uint64_t step,
                                                     const dtrain_checkpoint_params_t *params,
                                                     uint64_t *step_p);
/* Writes the step of the newest complete checkpoint that has the table; DTRAIN_ERR_NOT_FOUND: there
 * is none. Local. */
DTRAIN_API dtrain_status_t dtrain_checkpoint_newest(dtrain_table_t *table, uint64_t *step_p);
/* Waits until the newest complete checkpoint that has all these tables is another one than that of
 * the step `after` (DTRAIN_CHECKPOINT_NEWEST: until there is one), and writes its step. Changes
 * nothing: an evaluator, in a job of its own, calls it for tables that it has made with the
 * parameters of the training job, and then dtrain_checkpoint_restore(). While it waits, it logs for
 * what: after 2 s, then every 10 s. DTRAIN_ERR_TIMEOUT after timeout_ns; its other errors are those
 * of dtrain_checkpoint_newest(). params: only timeout_ns is read. Blocking, local, any thread. */
DTRAIN_API dtrain_status_t dtrain_checkpoint_wait(dtrain_table_t *const *tables, uint32_t count,
                                                  uint64_t after,
                                                  const dtrain_checkpoint_params_t *params,
                                                  uint64_t *step_p);
/* Writes the step of the checkpoint that dtrain_table_create() restored. With the option
 * "checkpoint.restore" it restores the table from the newest checkpoint that has it, before it
 * returns on any worker. DTRAIN_ERR_NOT_FOUND: there was no checkpoint with this table (or the
 * option is not set). Local. */
DTRAIN_API dtrain_status_t dtrain_table_restored(const dtrain_table_t *table, uint64_t *step_p);

/* ---- roles and servers ----------------------------------------------------------------------- */
/* Roles of processes. An evaluator (TF_CONFIG's task of this type, or DTRAIN_ROLE=evaluator) is no
 * member of the job: dtrain_comm_create() returns DTRAIN_ERR_UNSUPPORTED, except for a job of its
 * own (size = 1), in which it can follow the checkpoints of the other one
 * (dtrain_checkpoint_wait()). */
enum { DTRAIN_ROLE_WORKER = 1, DTRAIN_ROLE_SERVER = 2, DTRAIN_ROLE_EVALUATOR = 3 };
/* Writes as what the environment starts this process, DTRAIN_ROLE_*; a worker where nothing tells.
 * DTRAIN_ERR_CONFIG: as dtrain_comm_create(). Local, any thread. */
DTRAIN_API dtrain_status_t dtrain_join_role(uint32_t *role_p);

typedef struct dtrain_server_params {
    uint32_t struct_size;
    int32_t size;                /* number of workers of the job; 0: all from the environment */
    int32_t servers;             /* number of servers                                         */
    int32_t index;               /* which server this is, 0 <= index < servers                */
    int64_t timeout_ns;          /* for joining; 0: option join.timeout; < 0: none            */
    dtrain_oob_allgather_fn oob; /* for "oob": workers first, then servers            */
    void *oob_arg;
} dtrain_server_params_t;
/* Joins the job as a server and serves in the background from then on (in a separate process, or a
 * thread of any process). Rendezvous as in dtrain_comm_create(). Blocking. */
DTRAIN_API dtrain_status_t dtrain_server_create(dtrain_context_t *context, const char *rendezvous,
                                                const dtrain_server_params_t *params,
                                                dtrain_server_t **server_p);
/* Waits until all workers have left (DTRAIN_OK), the job has failed (its error), or timeout_ns has
 * passed (DTRAIN_IN_PROGRESS; < 0: no limit). */
DTRAIN_API dtrain_status_t dtrain_server_wait(dtrain_server_t *server, int64_t timeout_ns);
/* Exclusive. Clients that still need the server get DTRAIN_ERR_PEER. */
DTRAIN_API dtrain_status_t dtrain_server_destroy(dtrain_server_t *server);
/* Writes weights[dedicated + serving], for dtrain_table_params_t. They minimize the load of the
 * busiest network link of a job when each of its workers pushes and pulls everything, `serving` of
 * them (at most all) also serve, and all links are equal. Jiang et al., OSDI 2020. Local. */
DTRAIN_API dtrain_status_t dtrain_server_weights(uint32_t workers, uint32_t dedicated,
                                                 uint32_t serving, uint32_t *weights);

/* ---- statistics ------------------------------------------------------------------------------ */
typedef struct dtrain_device_stats { /* of bytes of the program's memory, both ways */
    uint32_t struct_size; /* of the caller, by DTRAIN_INIT; no more bytes are written     */
    uint32_t reserved;
    uint64_t copied;   /* by the transport between the program's memory and the transport's    */
    uint64_t in_place; /* taken by the network from, or written by it to, the program's memory: in
                          RDMA libraries without a copy                                         */
    /* Memory that is registered with the network now: by the program and by the library itself, */
    uint64_t registrations, registered_bytes;
    uint64_t cache_entries, cache_bytes; /* and in the transport's cache (option ofi.cache)     */
    /* Pieces of messages that the program has not registered: found in the cache, or registered
     * by the transport, each time anew if it has no cache. */
    uint64_t cache_hits, cache_misses;
    uint64_t cache_evictions; /* for lack of room, or because the memory was freed              */
} dtrain_device_stats_t;
/* Statistics of the index-th of dtrain_context_describe()'s "transports", since the context was
 * created. DTRAIN_ERR_NOT_FOUND past the last one, DTRAIN_ERR_UNSUPPORTED if the transport does not
 * count. */
DTRAIN_API dtrain_status_t dtrain_stats_device(dtrain_context_t *context, uint32_t index,
                                               dtrain_device_stats_t *stats);

/* Always counted; the cost is a few additions per request. */
#define DTRAIN_STATS_BUCKETS                                                                       \
    40 /* bucket 0: zeros; bucket i: 2^(i-1) to 2^i - 1; the last also everything above */
typedef struct dtrain_table_stats {
    uint32_t struct_size; /* of the caller, by DTRAIN_INIT; no more bytes are written          */
    uint32_t reserved;
    uint64_t requests;       /* answered; an operation is one or more per server                */
    uint64_t repeats;        /* sent again because no answer came (option ps.retry)             */
    uint64_t refused;        /* requests that ended in an error                                 */
    uint64_t dropped;        /* came too early for their server, which asked for them again     */
    uint64_t elements;       /* elements or rows of the requests                                */
    uint64_t sent_bytes;     /* payload, including that of repeats                              */
    uint64_t received_bytes; /* payload                                                         */
    uint64_t latency_sum;    /* ns from the first send to the answer                            */
    uint64_t staleness_sum;  /* of pushes: updates that their server had applied since this
                                worker's last pull from it (BSP: clocks)                        */
    uint64_t latency[DTRAIN_STATS_BUCKETS], staleness[DTRAIN_STATS_BUCKETS];
    uint64_t stale; /* QUORUM: requests dropped because their step was over (pushes and clocks) */
    uint64_t not_finite; /* requests of pushes that were dropped (DTRAIN_NOT_FINITE_DROP)       */
} dtrain_table_stats_t;
/* Counts of this worker's requests to one server, or to all servers (-1), since the table was
 * created. */
DTRAIN_API dtrain_status_t dtrain_stats_table(dtrain_table_t *table, int32_t server,
                                              dtrain_table_stats_t *stats);
/* Writes what this server has counted, per table and worker, as text for Prometheus (the answer of
 * "dtrain-server --metrics"). buf, len and result as in dtrain_last_error(). */
DTRAIN_API size_t dtrain_stats_server(dtrain_server_t *server, char *buf, size_t len);

/* ---- TFRecord files -------------------------------------------------------------------------- */
typedef struct dtrain_reader_params {
    uint32_t struct_size;
    int32_t shard;       /* this reader's share: 0 <= shard < shards                          */
    int32_t shards;      /* 0 and 1: everything. With at least `shards` files each shard gets
                            whole files (file i goes to shard i % shards), else single records */
    uint32_t flags;      /* none yet                                                          */
    uint64_t max_record; /* longest record accepted, bytes; 0: 64 MiB                       */
} dtrain_reader_params_t;
/* Opens paths[count], to be read in this order. Both CRC32C of every record are checked. */
DTRAIN_API dtrain_status_t dtrain_reader_open(const char *const *paths, uint32_t count,
                                              const dtrain_reader_params_t *params,
                                              dtrain_reader_t **reader_p);
/* Reads the next record. DTRAIN_ERR_NOT_FOUND: the end. DTRAIN_ERR_CORRUPT, for truncated files
 * too, names the file, the offset and what is wrong. DTRAIN_ERR_LIMIT: the record is longer than
 * max_record. After a failure every call fails until dtrain_reader_rewind(). *data_p may have any
 * alignment and is valid until the next call. */
DTRAIN_API dtrain_status_t dtrain_reader_next(dtrain_reader_t *reader, const void **data_p,
                                              uint64_t *length_p);
DTRAIN_API dtrain_status_t dtrain_reader_rewind(dtrain_reader_t *reader); /* back to the start */
DTRAIN_API void dtrain_reader_close(dtrain_reader_t *reader);             /* exclusive */
/* Creates or replaces path; the file appears under this name when the writer is closed. */
DTRAIN_API dtrain_status_t dtrain_writer_open(const char *path, dtrain_writer_t **writer_p);
DTRAIN_API dtrain_status_t dtrain_writer_append(dtrain_writer_t *writer, const void *data,
                                                uint64_t length);
/* Exclusive. Frees the handle in any case; an error means that the file was not written. */
DTRAIN_API dtrain_status_t dtrain_writer_close(dtrain_writer_t *writer);

/* ---- tuning ---------------------------------------------------------------------------------- */
/* Collective, blocking, takes some seconds. Measures messages, sums and copies between the ranks of
 * comm while nothing else runs; rank 0 writes the results to path, which the option "tuning.file"
 * reads. comm continues as before. DTRAIN_ERR_IO on all ranks when the file cannot be written. */
DTRAIN_API dtrain_status_t dtrain_comm_tune(dtrain_comm_t *comm, const char *path);

/* ---- timeline: what each rank does when, for chrome://tracing and ui.perfetto.dev ------------ */
/* Starts to write every operation that begins from now on, and every step of it, to a file of this
 * rank: path with %r replaced by the rank, or with ".<rank>.json" appended. It replaces an existing
 * file, but not a link. Before the context has joined a job nothing is written. The option
 * "timeline" does the same from the start. DTRAIN_ERR_IO: the file cannot be written.
 * DTRAIN_ERR_STATE: a timeline is being written already. When the disk becomes full later, the
 * timeline ends with a warning and the job continues. See docs/TIMELINE.md. */
DTRAIN_API dtrain_status_t dtrain_timeline_start(dtrain_context_t *context, const char *path);
/* Writes the buffered rest and closes the file. DTRAIN_ERR_STATE: no timeline is being written. */
DTRAIN_API dtrain_status_t dtrain_timeline_stop(dtrain_context_t *context);
/* Marks this moment in the timeline under the given name (copied). Does nothing when no timeline is
 * being written. */
DTRAIN_API dtrain_status_t dtrain_timeline_mark(dtrain_context_t *context, const char *name);

#ifdef __cplusplus
}
#endif
#endif
