/* Push and pull over plain ZeroMQ, as ps-lite does it: one DEALER, one ROUTER, which adds what is
 * pushed. usage: peer_zmq NAME ENDPOINT; prints what bench_tables prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { SAMPLES = 7, MOST = 64 << 20 };
static const double sample_us = 60e3;

typedef struct header {
    uint64_t first, bytes;
    int32_t pull;
    int32_t unused;
} header_t;

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(EXIT_FAILURE);
}

static void serve(const char *endpoint) {
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
    char *table = calloc(1, MOST);
    require(table != NULL && zmq_bind(socket, endpoint) == 0, "bind");
    for (;;) {
        zmq_msg_t client, head, body;
        header_t header;
        zmq_msg_init(&client);
        zmq_msg_init(&head);
        zmq_msg_recv(&client, socket, 0);
        zmq_msg_recv(&head, socket, 0);
        memcpy(&header, zmq_msg_data(&head), sizeof header);
        if (!header.pull) {
            zmq_msg_init(&body);
            zmq_msg_recv(&body, socket, 0);
            const float *values = zmq_msg_data(&body);
            float *to = (float *)(table + header.first);
            for (uint64_t i = 0; i < header.bytes / sizeof *to; i++) to[i] += values[i];
            zmq_msg_close(&body);
        }
        zmq_msg_send(&client, socket, ZMQ_SNDMORE);
        zmq_msg_send(&head, socket, header.pull ? ZMQ_SNDMORE : 0);
        if (header.pull) zmq_send(socket, table + header.first, header.bytes, 0);
    }
}

static void start(void *socket, const header_t *header, const char *values) {
    zmq_send(socket, header, sizeof *header, header->pull ? 0 : ZMQ_SNDMORE);
    if (!header->pull) zmq_send(socket, values, header->bytes, 0);
}

static void end(void *socket, const header_t *header, char *values) {
    header_t answer;
    zmq_recv(socket, &answer, sizeof answer, 0);
    if (header->pull) zmq_recv(socket, values, header->bytes, 0);
}

static double time_of(void *socket, header_t header, uint64_t in_flight, uint64_t count,
                      char *values) {
    const double begin = now_us();
    for (uint64_t sent = 0, done = 0; done < count; done++) {
        for (; sent < count && sent < done + in_flight; sent++) {
            header.first = sent % in_flight * header.bytes;
            start(socket, &header, values + header.first);
        }
        end(socket, &header, values + done % in_flight * header.bytes);
    }
    return (now_us() - begin) / (double)count;
}

static void measure(const char *name, void *socket, uint64_t bytes, uint64_t in_flight,
                    char *values, const char *unit) {
    for (int pull = 0; pull < 2; pull++) {
        const header_t header = {.bytes = bytes, .pull = pull};
        double samples[SAMPLES];
        time_of(socket, header, in_flight, 2 * in_flight, values);
        const double guess = time_of(socket, header, in_flight, 2 * in_flight, values);
        for (int s = 0; s < SAMPLES; s++)
            samples[s] = time_of(socket, header, in_flight,
                                 (uint64_t)(sample_us / guess) + 2 * in_flight, values);
        sort(samples, SAMPLES);
        const double us = samples[SAMPLES / 2];
        printf("%s\t%s%s\t%llu\t%.4g\t%s\n", name, pull ? "pull" : "push",
               in_flight > 1 ? " in flight" : "", (unsigned long long)bytes,
               unit[0] == 'u'   ? us
               : unit[0] == 'M' ? 1 / us
                                : 1e-3 * (double)bytes / us,
               unit);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return EXIT_FAILURE;
    const pid_t server = fork();
    if (server == 0) serve(argv[2]);
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
    char *values = calloc(1, MOST);
    require(values != NULL && zmq_connect(socket, argv[2]) == 0, "connect");
    measure(argv[1], socket, 4, 1, values, "us");
    measure(argv[1], socket, 4096, 1, values, "us");
    measure(argv[1], socket, 4, 64, values, "M/s");
    measure(argv[1], socket, 4 << 10, 32, values, "GB/s");
    measure(argv[1], socket, 64 << 10, 16, values, "GB/s");
    measure(argv[1], socket, 1 << 20, 8, values, "GB/s");
    measure(argv[1], socket, 64 << 20, 1, values, "GB/s");
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return EXIT_SUCCESS;
}
