/* Redis as a parameter server is used: values are set and got, rows by batches of keys. It adds
 * nothing up. usage: peer_redis NAME SOCKET [SECTION...]; prints what bench_tables prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <hiredis/hiredis.h>
#include <string.h>

enum { SAMPLES = 7, ROWS = 1000000, FILL = 10000 };
static const double sample_us = 60e3;

static void end(const redisReply *reply, const redisContext *redis) {
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR) return;
    fprintf(stderr, "redis: %s\n", reply != NULL ? reply->str : redis->errstr);
    exit(EXIT_FAILURE);
}

/* One command of many parts: what follows the name are keys, or keys and values. */
typedef struct load {
    redisContext *redis;
    const char *command;
    uint64_t keys, bytes; /* per command; of a value */
    uint64_t rows, first, in_flight;
    int sends;
    const char **parts;
    size_t *sizes;
    char (*names)[24];
    char *value;
} load_t;

static void append(load_t *load) {
    int n = 0;
    load->parts[n] = load->command;
    load->sizes[n++] = strlen(load->command);
    for (uint64_t k = 0; k < load->keys; k++) {
        load->first = load->first * 6364136223846793005u + 1442695040888963407u;
        const uint64_t key = load->keys == 1 ? 0 : (load->first >> 33) % load->rows;
        load->parts[n] = load->names[k];
        load->sizes[n++] =
            (size_t)snprintf(load->names[k], sizeof load->names[k], "%llu:%llu",
                             (unsigned long long)load->bytes, (unsigned long long)key);
        if (!load->sends) continue;
        load->parts[n] = load->value;
        load->sizes[n++] = load->bytes;
    }
    redisAppendCommandArgv(load->redis, n, load->parts, load->sizes);
}

static void take(load_t *load) {
    void *reply = NULL;
    redisGetReply(load->redis, &reply);
    end(reply, load->redis);
    freeReplyObject(reply);
}

static double time_of(load_t *load, uint64_t commands) {
    const double begin = now_us();
    for (uint64_t sent = 0, done = 0; done < commands; done++) {
        for (; sent < commands && sent < done + load->in_flight; sent++) append(load);
        take(load);
    }
    return (now_us() - begin) / (double)commands;
}

static double median_us(load_t *load) {
    double samples[SAMPLES];
    time_of(load, 2 * load->in_flight);
    const double guess = time_of(load, 2 * load->in_flight);
    for (int s = 0; s < SAMPLES; s++)
        samples[s] = time_of(load, (uint64_t)(sample_us / guess) + 2 * load->in_flight);
    sort(samples, SAMPLES);
    return samples[SAMPLES / 2];
}

static void measure(const char *name, redisContext *redis, uint64_t keys, uint64_t bytes,
                    uint64_t in_flight, const char *what, const char *unit) {
    load_t load = {.redis = redis,
                   .keys = keys,
                   .bytes = bytes,
                   .rows = ROWS,
                   .in_flight = in_flight,
                   .parts = malloc((2 * keys + 1) * sizeof(char *)),
                   .sizes = malloc((2 * keys + 1) * sizeof(size_t)),
                   .names = malloc(keys * sizeof *load.names),
                   .value = calloc(1, bytes)};
    if (load.parts == NULL || load.sizes == NULL || load.names == NULL || load.value == NULL)
        exit(EXIT_FAILURE);
    for (load.sends = 1; load.sends >= 0; load.sends--) {
        load.command = load.sends ? keys > 1 ? "MSET" : "SET" : keys > 1 ? "MGET" : "GET";
        const double us = median_us(&load);
        const double value = strcmp(unit, "us") == 0     ? us
                             : strcmp(unit, "GB/s") == 0 ? 1e-3 * (double)bytes / us
                                                         : (double)keys / us;
        printf("%s\t%s%s\t%llu\t%.4g\t%s\n", name, load.sends ? "push" : "pull", what,
               (unsigned long long)(keys > 1 ? keys : bytes), value, unit);
        fflush(stdout);
    }
    free(load.parts);
    free(load.sizes);
    free(load.names);
    free(load.value);
}

static void fill(redisContext *redis, uint64_t bytes) {
    char *value = calloc(1, bytes), key[24];
    for (uint64_t i = 0; i < ROWS; i++) {
        const int size = snprintf(key, sizeof key, "%llu:%llu", (unsigned long long)bytes,
                                  (unsigned long long)i);
        redisAppendCommand(redis, "SET %b %b", key, (size_t)size, value, (size_t)bytes);
        if (i % FILL != FILL - 1) continue;
        for (int n = 0; n < FILL; n++) {
            void *reply = NULL;
            redisGetReply(redis, &reply);
            end(reply, redis);
            freeReplyObject(reply);
        }
    }
    free(value);
}

int main(int argc, char **argv) {
    if (argc < 3) return EXIT_FAILURE;
    redisContext *redis =
        argv[2][0] == '/' ? redisConnectUnix(argv[2]) : redisConnect("127.0.0.1", atoi(argv[2]));
    if (redis == NULL || redis->err != 0) {
        fprintf(stderr, "redis: cannot connect to %s\n", argv[2]);
        return EXIT_FAILURE;
    }
    measure(argv[1], redis, 1, 4, 1, "", "us");
    measure(argv[1], redis, 1, 4096, 1, "", "us");
    measure(argv[1], redis, 1, 4, 64, " in flight", "M/s");
    measure(argv[1], redis, 1, 4 << 10, 32, " in flight", "GB/s");
    measure(argv[1], redis, 1, 64 << 10, 16, " in flight", "GB/s");
    measure(argv[1], redis, 1, 1 << 20, 8, " in flight", "GB/s");
    for (uint64_t dim = 16; dim <= 64; dim *= 4) {
        char what[2][40];
        snprintf(what[0], sizeof what[0], " rows dim %d", (int)dim);
        snprintf(what[1], sizeof what[1], " rows dim %d in flight", (int)dim);
        fill(redis, dim * sizeof(float));
        measure(argv[1], redis, 64, dim * sizeof(float), 1, what[0], "Mkeys/s");
        measure(argv[1], redis, 10000, dim * sizeof(float), 1, what[0], "Mkeys/s");
        measure(argv[1], redis, 10000, dim * sizeof(float), 4, what[1], "Mkeys/s");
    }
    redisFree(redis);
    return EXIT_SUCCESS;
}
