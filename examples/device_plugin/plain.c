/* The device "plain": host memory that plays an accelerator's. Its queues do their work at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dtrain_device.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ALIGNMENT    256u
#define LIMIT        ((uint64_t)1 << 40)
#define MAX_OPERANDS 64u

struct dtrain_dv_dev {
    const dtrain_dv_host_t *host;
    pid_t owner; /* a child made by fork() must not use it */
};
struct dtrain_dv_mem {
    dtrain_dv_mem_t *next;
    dtrain_dv_dev_t *dev;
    unsigned char *address;
    uint64_t bytes, id;
    uint32_t kind;
};
struct dtrain_dv_queue {
    dtrain_dv_dev_t *dev;
};

/* Any thread may allocate and classify. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dtrain_dv_mem_t *memories;
static uint64_t last_id;

static dtrain_status_t fail(const dtrain_dv_host_t *host, dtrain_status_t status, const char *why) {
    return host->fail(host->self, status, why);
}
static dtrain_status_t check(const dtrain_dv_dev_t *dev) {
    if (dev->owner == getpid()) return DTRAIN_OK;
    return fail(dev->host, DTRAIN_ERR_STATE,
                "plain: the device was opened before fork() and belongs to the parent process");
}

/* ---- devices */

static dtrain_status_t list(const dtrain_dv_host_t *host, char *names, size_t len) {
    (void)host;
    snprintf(names, len, "plain0");
    return DTRAIN_OK;
}

static dtrain_status_t query(const dtrain_dv_host_t *host, const char *name,
                             dtrain_dv_attr_t *attr) {
    dtrain_dv_attr_t full = {.caps = DTRAIN_DV_CAP_SHARED,
                             .limit_bytes = LIMIT,
                             .max_operands = MAX_OPERANDS,
                             .numa_node = -1,
                             .uuid = "plain0",
                             .name = "host memory"};
    if (strcmp(name, "plain0") != 0)
        return fail(host, DTRAIN_ERR_NOT_FOUND, "plain: the only device is plain0");
    full.memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    /* An older core's struct is shorter. */
    full.struct_size = attr->struct_size;
    memcpy(attr, &full, attr->struct_size < sizeof full ? attr->struct_size : sizeof full);
    return DTRAIN_OK;
}

static dtrain_status_t open_device(const dtrain_dv_host_t *host, const char *name,
                                   dtrain_dv_dev_t **dev_p) {
    if (strcmp(name, "plain0") != 0)
        return fail(host, DTRAIN_ERR_NOT_FOUND, "plain: the only device is plain0");
    dtrain_dv_dev_t *dev = malloc(sizeof *dev);
    if (dev == NULL) return fail(host, DTRAIN_ERR_NO_MEMORY, "plain: no memory for a device");
    dev->host = host;
    dev->owner = getpid();
    *dev_p = dev;
    return DTRAIN_OK;
}

static void close_device(dtrain_dv_dev_t *dev) { free(dev); }

static dtrain_status_t prepare(dtrain_dv_dev_t *dev, uint32_t dtype) {
    if (dtype == 0 || dtype == DTRAIN_F32) return check(dev);
    return fail(dev->host, DTRAIN_ERR_UNSUPPORTED, "plain: it computes in f32 only");
}

/* ---- memory */

static dtrain_status_t classify(const dtrain_dv_host_t *host, const void *address, uint64_t bytes,
                                dtrain_dv_range_t *range) {
    dtrain_dv_range_t full = {.kind = DTRAIN_DV_HOST, .ordinal = -1};
    const uint64_t at = (uint64_t)(uintptr_t)address;
    uint64_t offset = 0;
    pthread_mutex_lock(&lock);
    for (const dtrain_dv_mem_t *mem = memories; mem != NULL; mem = mem->next) {
        const uint64_t base = (uint64_t)(uintptr_t)mem->address;
        if (at - base >= mem->bytes) continue;
        offset = at - base;
        full.kind = mem->kind;
        full.address = at;
        full.base = base;
        full.length = mem->bytes;
        full.id = mem->id;
        full.ordinal = mem->kind == DTRAIN_DV_DEVICE ? 0 : -1;
    }
    pthread_mutex_unlock(&lock);
    if (full.kind != DTRAIN_DV_HOST && bytes > full.length - offset)
        return fail(host, DTRAIN_ERR_INVALID,
                    "plain: the range ends outside of the allocation in which it begins");
    full.struct_size = range->struct_size;
    memcpy(range, &full, range->struct_size < sizeof full ? range->struct_size : sizeof full);
    return DTRAIN_OK;
}

static dtrain_status_t remember(dtrain_dv_dev_t *dev, uint32_t kind, void *address, uint64_t bytes,
                                dtrain_dv_mem_t **mem_p) {
    dtrain_dv_mem_t *mem = malloc(sizeof *mem);
    if (mem == NULL) return fail(dev->host, DTRAIN_ERR_NO_MEMORY, "plain: out of memory");
    *mem = (dtrain_dv_mem_t){.dev = dev, .address = address, .bytes = bytes, .kind = kind};
    pthread_mutex_lock(&lock);
    const unsigned char *end = mem->address + bytes;
    for (const dtrain_dv_mem_t *other = memories; other != NULL; other = other->next)
        if (mem->address < other->address + other->bytes && other->address < end) {
            pthread_mutex_unlock(&lock);
            free(mem);
            return fail(dev->host, DTRAIN_ERR_BUSY,
                        "plain: a part of the range is registered already");
        }
    mem->id = ++last_id;
    mem->next = memories;
    memories = mem;
    pthread_mutex_unlock(&lock);
    *mem_p = mem;
    return DTRAIN_OK;
}

static dtrain_status_t alloc(dtrain_dv_dev_t *dev, uint64_t bytes, uint64_t flags,
                             dtrain_dv_mem_t **mem_p) {
    dtrain_status_t status = check(dev);
    if (status != DTRAIN_OK) return status;
    if (bytes == 0 || bytes > LIMIT)
        return fail(dev->host, DTRAIN_ERR_INVALID, "plain: an allocation of 0 or too many bytes");
    if (flags != 0)
        return fail(dev->host, DTRAIN_ERR_UNSUPPORTED, "plain: its memory cannot be exported");
    void *address = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (address == NULL) return fail(dev->host, DTRAIN_ERR_NO_MEMORY, "plain: out of memory");
    status = remember(dev, DTRAIN_DV_DEVICE, address, bytes, mem_p);
    if (status != DTRAIN_OK) free(address);
    return status;
}

static dtrain_status_t pin(dtrain_dv_dev_t *dev, void *address, uint64_t bytes,
                           dtrain_dv_mem_t **mem_p) {
    const dtrain_status_t status = check(dev);
    if (status != DTRAIN_OK) return status;
    if (address == NULL || bytes == 0)
        return fail(dev->host, DTRAIN_ERR_INVALID, "plain: nothing to pin");
    return remember(dev, DTRAIN_DV_PINNED, address, bytes, mem_p);
}

static void *address_of(dtrain_dv_mem_t *mem) { return mem->address; }

static void release(dtrain_dv_mem_t *mem) {
    pthread_mutex_lock(&lock);
    dtrain_dv_mem_t **at = &memories;
    while (*at != mem) at = &(*at)->next;
    *at = mem->next;
    pthread_mutex_unlock(&lock);
    if (mem->kind == DTRAIN_DV_DEVICE) free(mem->address);
    free(mem);
}

/* ---- queues */

static dtrain_status_t queue_own(dtrain_dv_dev_t *dev, uint32_t urgent,
                                 dtrain_dv_queue_t **queue_p) {
    const dtrain_status_t status = check(dev);
    if (status != DTRAIN_OK) return status;
    dtrain_dv_queue_t *queue = malloc(sizeof *queue);
    (void)urgent;
    if (queue == NULL) return fail(dev->host, DTRAIN_ERR_NO_MEMORY, "plain: out of memory");
    queue->dev = dev;
    *queue_p = queue;
    return DTRAIN_OK;
}

static dtrain_status_t queue_adopt(dtrain_dv_dev_t *dev, void *stream,
                                   dtrain_dv_queue_t **queue_p) {
    if (stream != NULL)
        return fail(dev->host, DTRAIN_ERR_INVALID, "plain: its only stream is NULL");
    return queue_own(dev, 0, queue_p);
}

static void queue_free(dtrain_dv_queue_t *queue) { free(queue); }

static dtrain_status_t queue_done(dtrain_dv_queue_t *queue) { return check(queue->dev); }

/* Whether the bytes are in memory that the device may access. */
static dtrain_status_t check_range(dtrain_dv_queue_t *queue, const void *address, uint64_t bytes) {
    dtrain_dv_range_t range = {.struct_size = sizeof range};
    dtrain_status_t status = check(queue->dev);
    if (status == DTRAIN_OK) status = classify(queue->dev->host, address, bytes, &range);
    if (status != DTRAIN_OK || range.kind != DTRAIN_DV_HOST) return status;
    return fail(queue->dev->host, DTRAIN_ERR_INVALID,
                "plain: an address is neither pinned nor the device's");
}

static dtrain_status_t copy(dtrain_dv_queue_t *queue, void *dst, const void *src, uint64_t bytes) {
    dtrain_status_t status = check_range(queue, dst, bytes);
    if (status == DTRAIN_OK) status = check_range(queue, src, bytes);
    if (status == DTRAIN_OK && bytes > 0) memmove(dst, src, bytes);
    return status;
}

static dtrain_status_t fill(dtrain_dv_queue_t *queue, void *dst, uint8_t value, uint64_t bytes) {
    const dtrain_status_t status = check_range(queue, dst, bytes);
    if (status == DTRAIN_OK && bytes > 0) memset(dst, value, bytes);
    return status;
}

static dtrain_status_t signal_word(dtrain_dv_queue_t *queue, dtrain_dv_mem_t *mem, uint64_t offset,
                                   uint32_t value) {
    const dtrain_status_t status = check(queue->dev);
    if (status != DTRAIN_OK) return status;
    if (mem->kind != DTRAIN_DV_PINNED || offset % 4 != 0 || mem->bytes < 4 ||
        offset > mem->bytes - 4)
        return fail(queue->dev->host, DTRAIN_ERR_INVALID, "plain: no word in pinned memory");
    __atomic_store_n((uint32_t *)(void *)(mem->address + offset), value, __ATOMIC_RELEASE);
    return DTRAIN_OK;
}

/* ---- arithmetic in f32 */

static int is_nan(float x) { return x != x; }
static int is_less(float a, float b) {
    return a < b || (a == b && __builtin_signbit(a) && !__builtin_signbit(b));
}
static float canonical(float x) { return is_nan(x) ? __builtin_nanf("") : x; }
static float combine(uint32_t op, float a, float b) {
    if (op == DTRAIN_PROD) return a * b;
    if (op == DTRAIN_SUM || op == DTRAIN_AVG) return a + b;
    if (is_nan(a) || is_nan(b)) return __builtin_nanf("");
    return is_less(a, b) == (op == DTRAIN_MIN) ? a : b;
}

static float element(const dtrain_dv_work_t *work, uint64_t i) {
    const float *const *srcs = (const float *const *)work->srcs;
    const float first = srcs[0][i];
    float result = first;
    switch (work->kind) {
    case DTRAIN_DV_SCALE: return first / (float)work->divisor;
    case DTRAIN_DV_MULTIPLY: return first * (float)work->weights[0];
    case DTRAIN_DV_WEIGH:
        result = (float)work->weights[0] * first;
        for (uint32_t k = 1; k < work->n; k++) {
            volatile float product = (float)work->weights[k] * srcs[k][i]; /* rounded */
            result += product;
        }
        return result;
    default:
        for (uint32_t k = 1; k < work->n; k++) result = combine(work->op, result, srcs[k][i]);
        return work->op == DTRAIN_AVG ? result / (float)work->n : result;
    }
}

static void move_rows(const dtrain_dv_work_t *work) {
    const unsigned char *src = work->srcs[0];
    unsigned char *dst = work->dsts[0];
    for (uint64_t i = 0; i < work->count; i++) {
        const uint64_t row = work->rows[i], bytes = work->row_bytes;
        if (work->kind == DTRAIN_DV_GATHER && row >= work->row_limit)
            memset(dst + i * bytes, 0, bytes);
        else if (work->kind == DTRAIN_DV_GATHER)
            memcpy(dst + i * bytes, src + row * bytes, bytes);
        else if (row < work->row_limit)
            memcpy(dst + row * bytes, src + i * bytes, bytes);
    }
}

static dtrain_status_t run(dtrain_dv_queue_t *queue, const dtrain_dv_work_t *given) {
    dtrain_dv_work_t work = {0};
    const dtrain_dv_host_t *host = queue->dev->host;
    const dtrain_status_t status = check(queue->dev);
    if (status != DTRAIN_OK) return status;
    memcpy(&work, given, given->struct_size < sizeof work ? given->struct_size : sizeof work);
    if (work.m < 1 || work.m > MAX_OPERANDS || work.n < 1 || work.n > MAX_OPERANDS)
        return fail(host, DTRAIN_ERR_INVALID, "plain: 1 to 64 dsts and srcs");
    if (work.kind == DTRAIN_DV_GATHER || work.kind == DTRAIN_DV_SCATTER) {
        move_rows(&work);
        return DTRAIN_OK;
    }
    if (work.kind < DTRAIN_DV_REDUCE || work.kind > DTRAIN_DV_WEIGH)
        return fail(host, DTRAIN_ERR_UNSUPPORTED, "plain: it has no such kernel");
    if (work.kind == DTRAIN_DV_REDUCE && work.dtype == 0) {
        if (work.n != 1) return fail(host, DTRAIN_ERR_INVALID, "plain: several srcs of bytes");
        for (uint32_t k = 0; k < work.m; k++) memmove(work.dsts[k], work.srcs[0], work.count);
        return DTRAIN_OK;
    }
    if (work.dtype != DTRAIN_F32)
        return fail(host, DTRAIN_ERR_STATE, "plain: no kernels of this dtype were prepared");
    if ((work.kind == DTRAIN_DV_REDUCE && (work.op < DTRAIN_SUM || work.op > DTRAIN_MAX)) ||
        (work.kind == DTRAIN_DV_SCALE && work.divisor == 0))
        return fail(host, DTRAIN_ERR_INVALID, "plain: no such op of f32, or a divisor of 0");
    for (uint64_t i = 0; i < work.count; i++) {
        const float result = canonical(element(&work, i));
        for (uint32_t k = 0; k < work.m; k++) ((float *)work.dsts[k])[i] = result;
    }
    return DTRAIN_OK;
}

static const dtrain_dv_ops_t operations = {
    .struct_size = sizeof operations,
    .list = list,
    .query = query,
    .open = open_device,
    .close = close_device,
    .prepare = prepare,
    .classify = classify,
    .alloc = alloc,
    .pin = pin,
    .address = address_of,
    .release = release,
    .queue_own = queue_own,
    .queue_adopt = queue_adopt,
    .queue_free = queue_free,
    .queue_done = queue_done,
    .copy = copy,
    .fill = fill,
    .run = run,
    .signal = signal_word,
};

static const dtrain_dv_plugin_t dtrain_dv_plugin_plain = {.struct_size =
                                                              sizeof dtrain_dv_plugin_plain,
                                                          .abi = DTRAIN_DV_ABI,
                                                          .name = "plain",
                                                          .version = "1.0",
                                                          .ops = &operations};

DTRAIN_API const dtrain_dv_plugin_t *dtrain_device_query(uint32_t core_abi) {
    (void)core_abi;
    return &dtrain_dv_plugin_plain;
}
