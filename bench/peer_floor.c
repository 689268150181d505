/* What two ranks on one host need at the least: the bytes, the flags and the system calls of an
 * all-reduce, without a library around them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * PROGRAM shm|tcp BYTES...; forks the second rank itself.
 *   shm   private buffers: up to 16 KiB everyone publishes everything; beyond, chunks of both
 *         halves go through a ring of 2 MiB, and each sum is stored to both places at once; with
 *         BENCH_SHARED set buffers that both map: each rank sums one half into both
 *   tcp   up to 64 KiB both send everything; beyond, halves are exchanged, added, exchanged */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { CALLS, COPIED, REDUCED, TAKEN };
enum { RING = 2 << 20, SLOT = 16 << 10, PIECE = 256 << 10 };
static const size_t window_bytes = (size_t)512 << 20; /* of the shared buffers */

typedef struct line {
    _Alignas(128) uint64_t value;
} line_t;

/* What both ranks see. */
static struct board {
    line_t flags[2][4]; /* of a rank: calls published; blocks copied, reduced, taken */
    float slots[2][2][SLOT / 4];
    float rings[2][RING / 4];
} * board;
static char *windows[2];
static float *buffers[2]; /* where the ranks' buffers are mapped here (shared) */
static float scratch[PIECE / 4];
static int me, peer_socket;
static uint64_t calls, blocks;

static void fatal(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

static void publish(int flag, uint64_t value) {
    __atomic_store_n(&board->flags[me][flag].value, value, __ATOMIC_RELEASE);
}
static void await(int flag, uint64_t value) {
    while (__atomic_load_n(&board->flags[1 - me][flag].value, __ATOMIC_ACQUIRE) < value)
        __builtin_ia32_pause();
}

static void copy(void *to, const void *from, size_t bytes) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
/* The loop that follows has no dependences that the compiler cannot see. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
/* `to` may be one of the others, element by element. */
static void add(float *to, const float *a, const float *b, size_t count) {
    INDEPENDENT
    for (size_t i = 0; i < count; i++) to[i] = a[i] + b[i];
}
static void add_twice(float *to, float *also, const float *a, const float *b, size_t count) {
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const float sum = a[i] + b[i];
        to[i] = sum;
        also[i] = sum;
    }
}

/* ---- shared memory ---- */

static void one_shot(float *buffer, size_t count) {
    calls++;
    float *slot = board->slots[me][calls & 1];
    copy(slot, buffer, count * 4);
    publish(CALLS, calls);
    await(CALLS, calls);
    add(buffer, buffer, board->slots[1 - me][calls & 1], count);
}

/* Blocks of two chunks, one for each half, at most four in the ring; numbered over all calls. */
static void pipeline(float *buffer, size_t count) {
    size_t chunk = 4096; /* floats; two blocks and more, but no chunk of more than 256 KiB */
    while (chunk < count / 4 && chunk < RING / 4 / 8) chunk *= 2;
    const size_t slots = RING / 4 / (2 * chunk);
    const size_t n = (count + 2 * chunk - 1) / (2 * chunk);
    for (size_t j = 0; j < n + 2; j++) {
        for (size_t stage = 0; stage < 3; stage++) {
            if (j < stage || j - stage >= n) continue;
            const size_t b = j - stage, begin = b * 2 * chunk;
            const size_t left = count - begin < 2 * chunk ? count - begin : 2 * chunk;
            const size_t half = left / 2, own = begin + (me ? half : 0);
            const size_t other = begin + (me ? 0 : half);
            const size_t own_count = me ? left - half : half, other_count = left - own_count;
            const uint64_t number = blocks + b + 1;
            float *out = board->rings[me] + (blocks + b) % slots * 2 * chunk;
            const float *in = board->rings[1 - me] + (blocks + b) % slots * 2 * chunk;
            if (stage == 0) {
                if (number > slots) await(TAKEN, number - slots);
                copy(out, buffer + other, other_count * 4);
                publish(COPIED, number);
            } else if (stage == 1) {
                await(COPIED, number);
                add_twice(buffer + own, out + chunk, buffer + own, in, own_count);
                publish(REDUCED, number);
            } else {
                await(REDUCED, number);
                copy(buffer + other, in + chunk, other_count * 4);
                publish(TAKEN, number);
            }
        }
    }
    blocks += n;
}

static void sum_shm(void *self, float *buffer, size_t count) {
    (void)self;
    if (count <= SLOT / 4)
        one_shot(buffer, count);
    else
        pipeline(buffer, count);
}

static void sum_shared(void *self, float *buffer, size_t count) {
    (void)self;
    if (buffer != buffers[me]) return sum_shm(self, buffer, count); /* the harness's own */
    const size_t half = count / 2, begin = me ? half : 0, own = me ? count - half : half;
    const uint64_t now = blocks += 1;
    publish(COPIED, now);
    await(COPIED, now);
    add_twice(buffer + begin, buffers[1 - me] + begin, buffers[0] + begin, buffers[1] + begin, own);
    publish(REDUCED, now);
    publish(TAKEN, now);
    await(REDUCED, now);
}

/* Maps the common memory over the buffer. */
static void share(void *self, kind_t kind, float *send, float *buffer, size_t count) {
    const size_t bytes = (count * 4 + 4095) / 4096 * 4096;
    (void)self;
    (void)kind;
    (void)send;
    if (bytes > window_bytes ||
        mremap(windows[me], 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, buffer) == MAP_FAILED)
        fatal("mremap");
    madvise(buffer, bytes, MADV_POPULATE_WRITE);
    buffers[me] = buffer;
    buffers[1 - me] = (float *)(void *)windows[1 - me];
}

/* ---- TCP ---- */

/* Sends all of `out` and receives as much, at the same time; adds what comes to `in`, or stores it.
 */
static void duplex(const float *out, size_t out_count, float *in, size_t in_count, int adds) {
    const char *from = (const char *)out;
    size_t to_send = out_count * 4, to_get = in_count * 4, have = 0;
    while (to_send > 0 || to_get > 0) {
        if (to_send > 0) {
            const ssize_t n = send(peer_socket, from, to_send < 4 * PIECE ? to_send : 4 * PIECE,
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN) fatal("send");
            if (n > 0) from += n, to_send -= (size_t)n;
        }
        if (to_get == 0) continue;
        char *at = adds ? (char *)scratch + have : (char *)in;
        const size_t room = adds ? PIECE - have : 4 * PIECE;
        const ssize_t n = recv(peer_socket, at, to_get < room ? to_get : room, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) fatal("recv");
        if (n <= 0) continue;
        to_get -= (size_t)n;
        if (!adds) {
            in = (float *)(void *)((char *)in + n);
            continue;
        }
        have += (size_t)n;
        const size_t whole = have / 4;
        add(in, in, scratch, whole);
        in += whole;
        memmove(scratch, scratch + whole, have -= whole * 4);
    }
}

static void sum_tcp(void *self, float *buffer, size_t count) {
    (void)self;
    if (count <= 16384) {
        /* The own values must not change before they are sent: receive first, then add. */
        static float theirs[16384];
        duplex(buffer, count, theirs, count, 0);
        add(buffer, buffer, theirs, count);
        return;
    }
    const size_t half = count / 2;
    float *own = buffer + (me ? half : 0), *other = buffer + (me ? 0 : half);
    const size_t own_count = me ? count - half : half, other_count = count - own_count;
    duplex(other, other_count, own, own_count, 1);
    duplex(own, own_count, other, other_count, 0);
}

static void tune(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static int listen_on_loopback(struct sockaddr_in *address) {
    socklen_t len = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) != 0 ||
        listen(fd, 1) != 0 || getsockname(fd, (struct sockaddr *)address, &len) != 0)
        fatal("listen");
    return fd;
}

static void connect_ranks(int listener, const struct sockaddr_in *address) {
    if (me == 0) {
        peer_socket = accept(listener, NULL, NULL);
    } else {
        peer_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(peer_socket, (const struct sockaddr *)address, sizeof *address) != 0)
            fatal("connect");
    }
    if (peer_socket < 0) fatal("accept");
    tune(peer_socket);
}

static void barrier(void *self) {
    float one = 1;
    (void)self;
    sum_shm(NULL, &one, 1);
}
static void exchange(void *self, float *values, size_t count) {
    (void)self;
    sum_shm(NULL, values, count);
}

static void *map_shared(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fatal("mmap");
    return at;
}

typedef void sum_t(void *self, float *buffer, size_t count);

/* self: how to sum. */
static void run(void *self, kind_t kind, float *send, float *recv, size_t count) {
    (void)send;
    if (kind == ALLREDUCE) (*(sum_t *const *)self)(NULL, recv, count);
}

int main(int argc, char **argv) {
    const char *transport = argc > 2 ? argv[2] : "";
    sum_t *sum = getenv("BENCH_SHARED") != NULL  ? sum_shared
                 : strcmp(transport, "tcp") == 0 ? sum_tcp
                                                 : sum_shm;
    struct sockaddr_in address;
    const int shared = getenv("BENCH_SHARED") != NULL;
    const int listener = listen_on_loopback(&address);
    board = (struct board *)map_shared(sizeof *board);
    for (int r = 0; r < 2; r++) windows[r] = (char *)map_shared(window_bytes);
    const pid_t child = fork();
    if (child < 0) fatal("fork");
    me = child == 0;
    if (me) prctl(PR_SET_PDEATHSIG, SIGKILL);
    connect_ranks(listener, &address);
    const contender_t contender = {.name = shared ? "floor-shared" : "floor",
                                   .version = "no library",
                                   .rank = me,
                                   .size = 2,
                                   .self = &sum,
                                   .prepare = shared ? share : NULL,
                                   .run = run,
                                   .exchange = exchange,
                                   .barrier = barrier};
    int result = harness_run(&contender, argc, argv), status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) result = EXIT_FAILURE;
    return result;
}
