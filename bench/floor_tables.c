/* What pushes must at least take on one host, with no library: another process adds from shared
 * memory, without a copy; a copy of random rows; a raw TCP stream over loopback.
 * usage: floor_tables NAME; prints what bench_tables prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 15 };
static const double sample_us = 40e3;

static void require(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(EXIT_FAILURE);
}

/* Each on a cache line of its own. */
typedef struct shared {
    _Alignas(64) _Atomic uint64_t posted;
    _Alignas(64) _Atomic uint64_t done;
    _Alignas(64) float values[];
} shared_t;

static void add(shared_t *shared, uint64_t count, uint64_t at_once, float *table) {
    for (uint64_t n = 0;; n++) {
        while (atomic_load_explicit(&shared->posted, memory_order_acquire) <= n) {
        }
        const float *values = shared->values + n % at_once * count;
        float *to = table + n % at_once * count;
        for (uint64_t i = 0; i < count; i++) to[i] += values[i];
        atomic_store_explicit(&shared->done, n + 1, memory_order_release);
    }
}

static double time_of(shared_t *shared, uint64_t at_once, uint64_t *n, uint64_t pushes) {
    const double begin = now_us();
    for (const uint64_t end = *n + pushes; *n < end;) {
        while (atomic_load_explicit(&shared->done, memory_order_acquire) + at_once <= *n) {
        }
        atomic_store_explicit(&shared->posted, ++*n, memory_order_release);
    }
    while (atomic_load_explicit(&shared->done, memory_order_acquire) < *n) {
    }
    return (now_us() - begin) / (double)pushes;
}

static void print(const char *name, const char *what, uint64_t bytes, double value,
                  const char *unit) {
    printf("%s\t%s\t%llu\t%.4g\t%s\n", name, what, (unsigned long long)bytes, value, unit);
    fflush(stdout);
}

static void shared_adds(const char *name, uint64_t bytes, uint64_t at_once, const char *unit) {
    const uint64_t count = bytes / sizeof(float);
    const size_t size = sizeof(shared_t) + bytes * at_once;
    shared_t *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shared != MAP_FAILED, "mmap");
    madvise(shared, size, MADV_HUGEPAGE);
    for (uint64_t i = 0; i < count * at_once; i++) shared->values[i] = 1;
    const pid_t server = fork();
    require(server >= 0, "fork");
    if (server == 0) add(shared, count, at_once, calloc(count * at_once, sizeof(float)));
    uint64_t n = 0;
    time_of(shared, at_once, &n, 2 * at_once);
    const double guess = time_of(shared, at_once, &n, 2 * at_once);
    double samples[SAMPLES];
    for (int s = 0; s < SAMPLES; s++)
        samples[s] = time_of(shared, at_once, &n, (uint64_t)(sample_us / guess) + 2 * at_once);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    sort(samples, SAMPLES);
    const double us = samples[SAMPLES / 2];
    if (at_once == 1 && bytes < 1 << 16)
        print(name, "push", bytes, us, unit);
    else
        print(name, at_once > 1 ? "push in flight" : "push", bytes,
              unit[0] == 'M' ? 1 / us : 1e-3 * (double)bytes / us, unit);
    munmap(shared, size);
}

/* Rows at random from a million of them, by one processor that knows where each is: no look-up, no
 * second process. */
static void gather(const char *name, uint64_t dim) {
    enum { ROWS = 1000000, BATCH = 10000, AHEAD = 32, LINE = 64 };
    static uint32_t rows[BATCH];
    static _Alignas(64) char copied[32 << 10]; /* stays in the cache */
    const uint64_t row = dim * sizeof(float), room = sizeof copied / row;
    char *table =
        mmap(NULL, ROWS * row, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(table != MAP_FAILED, "mmap");
    madvise(table, ROWS * row, MADV_HUGEPAGE);
    memset(table, 1, ROWS * row);
    uint64_t random = 88172645463325252u; /* Marsaglia 2003: xorshift */
    double samples[SAMPLES];
    for (int s = 0; s < SAMPLES; s++) {
        double us = 0;
        uint64_t batches = 0;
        for (; us < sample_us; batches++) {
            for (int i = 0; i < BATCH; i++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                rows[i] = (uint32_t)(random % ROWS);
            }
            const double begin = now_us();
            for (uint64_t i = 0; i < BATCH; i++) {
                if (i + AHEAD < BATCH)
                    for (uint64_t at = 0; at < row; at += LINE)
                        __builtin_prefetch(table + rows[i + AHEAD] * row + at);
                memcpy(copied + i % room * row, table + rows[i] * row, row);
            }
            us += now_us() - begin;
        }
        samples[s] = (double)batches * BATCH / us;
    }
    munmap(table, ROWS * row);
    sort(samples, SAMPLES);
    char what[64];
    snprintf(what, sizeof what, "pull rows dim %d in flight", (int)dim);
    print(name, what, BATCH, samples[SAMPLES / 2], "Mkeys/s");
}

/* A stream of writes of that many bytes. */
static void stream(const char *name, uint64_t bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0);
    require(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    require(listen(listener, 1) == 0, "listen");
    require(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    const pid_t server = fork();
    require(server >= 0, "fork");
    static char buffer[1 << 20];
    if (server == 0) {
        close(out); // or the stream would never end
        const int in = accept(listener, NULL, NULL);
        while (read(in, buffer, 64 << 10) > 0) {
        }
        _exit(EXIT_SUCCESS);
    }
    require(connect(out, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    double samples[SAMPLES];
    for (int s = 0; s < SAMPLES; s++) {
        const double begin = now_us();
        uint64_t sent = 0;
        while (now_us() < begin + sample_us) {
            const ssize_t written = write(out, buffer, bytes);
            require(written > 0, "write");
            sent += (uint64_t)written;
        }
        samples[s] = 1e-3 * (double)sent / (now_us() - begin);
    }
    close(out);
    close(listener);
    waitpid(server, NULL, 0);
    sort(samples, SAMPLES);
    print(name, "stream", bytes, samples[SAMPLES / 2], "GB/s");
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "floor";
    shared_adds(name, 4, 1, "us");
    shared_adds(name, 4096, 1, "us");
    shared_adds(name, 4, 64, "M/s");
    shared_adds(name, 4 << 10, 32, "GB/s");
    shared_adds(name, 64 << 10, 16, "GB/s");
    shared_adds(name, 1 << 20, 8, "GB/s");
    shared_adds(name, 64 << 20, 1, "GB/s");
    gather(name, 16);
    gather(name, 64);
    for (uint64_t bytes = 4 << 10; bytes <= 1 << 20; bytes *= 16) stream(name, bytes);
    return EXIT_SUCCESS;
}
