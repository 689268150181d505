/* Plays a core of another release with a plugin for accelerators: asks all that has a struct_size,
 * and has a device add up two vectors. usage: device_core PLUGIN (a path)
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <dtrain_device.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef ADDED
#define END(type) offsetof(type, added)
#else
#define END(type) sizeof(type)
#endif
enum { COUNT = 1000, SUM_AT = 2 * COUNT, WORD_AT = 3 * COUNT, SIZE = 4096 };

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
static dtrain_status_t no_option(void *self, const char *key, char *buf, size_t len) {
    (void)self, (void)key, (void)buf, (void)len;
    return DTRAIN_ERR_NOT_FOUND;
}
static dtrain_status_t fail_with(void *self, dtrain_status_t status, const char *text) {
    (void)self;
    fprintf(stderr, "%s\n", text);
    return status;
}

/* ---- what is written is no more than the struct_size says, and no more than the plugin knows */

static union {
    unsigned char bytes[sizeof(dtrain_dv_attr_t) + sizeof(dtrain_dv_range_t) + 64];
    dtrain_dv_attr_t attr;
    dtrain_dv_range_t range;
} answer;

static void prepare(size_t size) {
    memset(&answer, 0xa5, sizeof answer);
    answer.attr.struct_size = (uint32_t)size;
}
static void untouched(size_t from, const char *what) {
    for (size_t i = from; i < sizeof answer.bytes; i++) must(answer.bytes[i] == 0xa5, what);
}

/* dst = dst - 0.5 * src, if the plugin has update rules. */
static dtrain_status_t update(const dtrain_dv_ops_t *ops, dtrain_dv_dev_t *dev,
                              dtrain_dv_queue_t *queue, void *dst, const void *src) {
    const dtrain_dv_update_t update = {.struct_size = sizeof update,
                                       .columns = COUNT,
#ifdef ADDED
                                       .added = 0,
#endif
                                       .stride = COUNT,
                                       .rate = 0.5};
    const dtrain_dv_work_t work = {.struct_size = sizeof work,
                                   .kind = DTRAIN_DV_UPDATE,
                                   .dtype = DTRAIN_F32,
                                   .op = DTRAIN_RULE_SGD,
                                   .count = COUNT,
                                   .dsts = &dst,
                                   .srcs = &src,
                                   .m = 1,
                                   .n = 1,
                                   .update = &update};
    const dtrain_status_t status = ops->prepare(dev, DTRAIN_DV_RULES | DTRAIN_F32);
    return status == DTRAIN_OK ? ops->run(queue, &work) : status;
}

static void add_up(const dtrain_dv_ops_t *ops, dtrain_dv_dev_t *dev, float *memory) {
    dtrain_dv_mem_t *pinned, *own;
    dtrain_dv_queue_t *queue;
    ok(ops->pin(dev, memory, SIZE * sizeof *memory, &pinned), "pin");
    ok(ops->alloc(dev, COUNT * sizeof *memory, 0, &own), "alloc");
    ok(ops->queue_own(dev, 1, &queue), "queue_own");
    float *host = ops->address(pinned);
    void *dsts[] = {ops->address(own)};
    const void *srcs[] = {host, host + COUNT};
    const dtrain_dv_work_t work = {.struct_size = sizeof work,
                                   .kind = DTRAIN_DV_REDUCE,
                                   .dtype = DTRAIN_F32,
                                   .op = DTRAIN_SUM,
                                   .count = COUNT,
                                   .dsts = dsts,
                                   .srcs = srcs,
#ifdef ADDED
                                   .added = 0,
#endif
                                   .m = 1,
                                   .n = 2};
    ok(ops->prepare(dev, DTRAIN_F32), "prepare");
    ok(ops->run(queue, &work), "run");
    const dtrain_status_t updated = update(ops, dev, queue, dsts[0], srcs[0]);
    if (updated != DTRAIN_ERR_UNSUPPORTED) ok(updated, "update");
    ok(ops->copy(queue, host + SUM_AT, dsts[0], COUNT * sizeof *memory), "copy");
    ok(ops->signal(queue, pinned, WORD_AT * sizeof *memory, 7), "signal");
    const uint32_t *word = (const uint32_t *)(const void *)(memory + WORD_AT);
    const time_t end = time(NULL) + 20;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 7)
        must(time(NULL) < end, "no signal in 20 s");
    const float sum = updated == DTRAIN_OK ? 2.5f : 3;
    for (int i = 0; i < COUNT; i++) must(memory[SUM_AT + i] == sum * (float)i, "the sum");
    ops->queue_free(queue);
    ops->release(own);
    ops->release(pinned);
}

int main(int argc, char **argv) {
    must(argc == 2, "usage: device_core PLUGIN");
    void *handle = dlopen(argv[1], RTLD_NOW);
    must(handle != NULL, "dlopen");
    const dtrain_dv_plugin_t *(*query)(uint32_t);
    *(void **)&query = dlsym(handle, "dtrain_device_query");
    must(query != NULL, "dtrain_device_query");
    /* Of an ABI that is not its own a plugin answers with that, so that it can be named. */
    must(query(DTRAIN_DV_ABI - 1)->abi == DTRAIN_DV_ABI, "asked for an older ABI");
    must(query(DTRAIN_DV_ABI + 1)->abi == DTRAIN_DV_ABI, "asked for a newer ABI");
    const dtrain_dv_ops_t *ops = query(DTRAIN_DV_ABI)->ops;

    dtrain_dv_host_t host = {.struct_size = sizeof host,
                             .abi = DTRAIN_DV_ABI,
                             .log = log_line,
                             .option = no_option,
#ifdef ADDED
                             .added = 1,
#endif
                             .fail = fail_with};
    char names[4096];
    ok(ops->list(&host, names, sizeof names), "list");
    names[strcspn(names, ",")] = 0;
    must(names[0] != 0, "no device");
    prepare(sizeof(dtrain_dv_attr_t));
    ok(ops->query(&host, names, &answer.attr), "query");
    untouched(END(dtrain_dv_attr_t), "query() wrote too much");
    dtrain_dv_dev_t *dev;
    ok(ops->open(&host, names, &dev), "open");
    static float memory[SIZE];
    for (int i = 0; i < COUNT; i++) memory[i] = (float)i, memory[COUNT + i] = (float)(2 * i);
    prepare(sizeof(dtrain_dv_range_t));
    ok(ops->classify(&host, memory, sizeof memory, &answer.range), "classify");
    must(answer.range.kind == DTRAIN_DV_HOST, "host memory");
    untouched(END(dtrain_dv_range_t), "classify() wrote too much");
    add_up(ops, dev, memory);
    ops->close(dev);
    return 0;
}
