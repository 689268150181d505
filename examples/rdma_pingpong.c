/* Messages between two ranks: how long one takes, and how many bytes arrive per second. They go
 * from and to registered memory, which the network card reads and writes by itself.
 *
 *     dtrain-run -n 2 -- rdma_pingpong [TRANSPORTS [BYTES ...]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdma_example.h"

enum { LARGEST = 2 << 20, WINDOW = 16, ENOUGH = 64 << 20, ROUNDS = 5000 };

typedef struct side {
    dtrain_comm_t *comm;
    int rank, peer;
    dtrain_op_params_t op; /* says that the buffers are registered */
    unsigned char *out;    /* LARGEST bytes */
    unsigned char *in;     /* WINDOW times as many */
} side_t;

static void fill(unsigned char *bytes, int size) {
    for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + i / 251 + size);
}

static void compare(const side_t *my, const unsigned char *got, int size) {
    if (memcmp(my->out, got, (size_t)size) == 0) return;
    fprintf(stderr, "rank %d: a message of %d bytes has not arrived as it was sent\n", my->rank,
            size);
    exit(1);
}

static void send_bytes(const side_t *my, const void *bytes, int size) {
    check(dtrain_send(my->comm, bytes, (uint64_t)size, DTRAIN_U8, my->peer, 0, &my->op, NULL),
          "send");
}

static void receive_bytes(const side_t *my, void *bytes, int size) {
    check(dtrain_recv(my->comm, bytes, (uint64_t)size, DTRAIN_U8, my->peer, 0, &my->op, NULL),
          "receive");
}

/* Half of a round trip. Both send the same bytes, as fi_pingpong and ucx_perftest do: to answer
 * with what has just come would measure how fast the processors' caches pass it on, too. */
static double latency(const side_t *my, int size, int rounds) {
    memset(my->in, 0, (size_t)size);
    double start = seconds();
    for (int i = 0; i < rounds; i++) {
        if (my->rank == 0) send_bytes(my, my->out, size);
        receive_bytes(my, my->in, size);
        if (my->rank == 1) send_bytes(my, my->out, size);
    }
    double time = (seconds() - start) / (2 * rounds);
    compare(my, my->in, size);
    return time;
}

/* Bytes per second from rank 0 to rank 1, with several messages on their way at a time. */
static double bandwidth(const side_t *my, int size, int rounds) {
    unsigned char done = 0;
    dtrain_op_params_t op = my->op;
    op.flags = DTRAIN_OP_AWAITED; /* at once, so that no other thread has to move them on */
    memset(my->in, 0, (size_t)size * WINDOW);
    double start = seconds();
    for (int round = 0; round < rounds; round++) {
        dtrain_request_t *requests[WINDOW];
        for (int i = 0; i < WINDOW; i++)
            check(my->rank == 0 ? dtrain_send(my->comm, my->out, (uint64_t)size, DTRAIN_U8, 1, 0,
                                              &op, &requests[i])
                                : dtrain_recv(my->comm, my->in + (size_t)i * (size_t)size,
                                              (uint64_t)size, DTRAIN_U8, 0, 0, &op, &requests[i]),
                  "message");
        for (int i = 0; i < WINDOW; i++) {
            check(dtrain_request_wait(requests[i], -1), "message");
            dtrain_request_free(requests[i]);
        }
    }
    /* The receiver says when it has everything. */
    if (my->rank == 0)
        check(dtrain_recv(my->comm, &done, 1, DTRAIN_U8, 1, 1, NULL, NULL), "receive");
    else
        check(dtrain_send(my->comm, &done, 1, DTRAIN_U8, 0, 1, NULL, NULL), "send");
    double time = seconds() - start;
    for (int i = 0; my->rank == 1 && i < WINDOW; i++)
        compare(my, my->in + (size_t)i * (size_t)size, size);
    return (double)size * WINDOW * rounds / time;
}

/* As many as say something, and on both ranks the same; on a slow network about a second's. */
static int rounds_of(const side_t *my, int size) {
    int most = ENOUGH / size < ROUNDS ? ENOUGH / size : ROUNDS;
    double fit = 1 / (2 * latency(my, size, 2));
    int rounds = fit > most ? most : fit < 2 ? 2 : (int)fit;
    check(dtrain_broadcast(my->comm, &rounds, 1, DTRAIN_I32, 0, NULL, NULL), "rounds");
    return rounds;
}

static void measure(const side_t *my, int size) {
    if (size < 1 || size > LARGEST) {
        fprintf(stderr, "a message has 1 to %d bytes\n", LARGEST);
        exit(1);
    }
    fill(my->out, size);
    latency(my, size, 2); /* connects, and warms up */
    int rounds = rounds_of(my, size);
    double time = latency(my, size, rounds), rate = bandwidth(my, size, 1 + rounds / WINDOW);
    if (my->rank == 0) printf("%10d %12.2f %12.1f\n", size, time * 1e6, rate * 1e-6);
}

int main(int argc, char **argv) {
    dtrain_context_t *context;
    dtrain_mem_t *memory;
    side_t my = {.comm = join(argc, argv, &context)};
    if (dtrain_comm_size(my.comm) != 2) return fprintf(stderr, "this takes two ranks\n"), 1;
    my.rank = dtrain_comm_rank(my.comm);
    my.peer = 1 - my.rank;
    check(dtrain_mem_alloc(context, (uint64_t)LARGEST * (1 + WINDOW), &memory), "memory");
    my.out = dtrain_mem_address(memory);
    my.in = my.out + LARGEST;
    DTRAIN_INIT(&my.op);
    my.op.send_mem = my.op.recv_mem = memory;

    if (my.rank == 0) printf("%10s %12s %12s\n", "bytes", "us one way", "MB/s");
    if (argc > 2)
        for (int i = 2; i < argc; i++) measure(&my, atoi(argv[i]));
    else
        for (int size = 8; size <= LARGEST; size *= 8) measure(&my, size);
    check(dtrain_mem_deregister(memory), "memory");
    leave(my.comm, context);
    return 0;
}
