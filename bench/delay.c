/* A switch that hands every frame on after a delay, for machines without netem (bench/hosts).
 * usage: bench_delay MICROSECONDS INTERFACE...
 * It learns which address is behind which interface; what it does not know it sends to all. Frames
 * of up to 64 KiB pass as they are, so it needs few system calls. Ends with its standard input.
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_PORTS = 16,
    MOST_ADDRESSES = 64,
    MOST_BYTES = (64 << 10) + 256,
    MOST_WAITING = 1 << 16
};
#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

typedef struct frame {
    int64_t came_ns;
    int from;
    size_t bytes;
    uint8_t *data;
} frame_t;

static struct pollfd ports[MOST_PORTS + 1]; /* the last one: standard input */
static int port_count;
static frame_t waiting[MOST_WAITING]; /* a ring: all wait equally long */
static size_t first, count;
static struct {
    uint8_t address[ETH_ALEN];
    int port;
} known[MOST_ADDRESSES];
static int known_count;

static void die(const char *what) {
    fprintf(stderr, "bench_delay: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int open_port(const char *name) {
    const int one = 1, room = 64 << 20;
    const struct sockaddr_ll at = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex(name)};
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) ||
        bind(fd, (const struct sockaddr *)&at, sizeof at))
        die(name);
    return fd;
}

static const uint8_t *ethernet(const frame_t *frame) {
    return frame->data + sizeof(struct virtio_net_hdr);
}

static void learn(const uint8_t *address, int port) {
    for (int i = 0; i < known_count; i++)
        if (!memcmp(known[i].address, address, ETH_ALEN)) return;
    if (known_count == MOST_ADDRESSES) return;
    memcpy(known[known_count].address, address, ETH_ALEN);
    known[known_count++].port = port;
}

static void take(int port) {
    static uint8_t bytes[MOST_BYTES];
    for (;;) {
        const ssize_t got = recv(ports[port].fd, bytes, sizeof bytes, 0);
        if (got < (ssize_t)(sizeof(struct virtio_net_hdr) + ETH_HLEN)) return;
        if (count == MOST_WAITING) continue; /* lost, as in a switch */
        frame_t *frame = &waiting[(first + count++) % MOST_WAITING];
        *frame = (frame_t){.came_ns = now_ns(), .from = port, .bytes = (size_t)got};
        frame->data = malloc(frame->bytes);
        if (frame->data == NULL) die("malloc");
        memcpy(frame->data, bytes, frame->bytes);
        learn(ethernet(frame) + ETH_ALEN, port);
    }
}

static void hand_on(const frame_t *frame) {
    int to = -1;
    for (int i = 0; i < known_count && to < 0; i++)
        if (!memcmp(known[i].address, ethernet(frame), ETH_ALEN)) to = known[i].port;
    for (int port = 0; port < port_count; port++)
        if (port != frame->from && (to < 0 || to == port))
            (void)send(ports[port].fd, frame->data, frame->bytes, 0); /* else lost */
    free(frame->data);
}

int main(int argc, char **argv) {
    if (argc < 3 || argc - 2 > MOST_PORTS) {
        fprintf(stderr, "usage: bench_delay MICROSECONDS INTERFACE...\n");
        return EXIT_FAILURE;
    }
    const int64_t delay_ns = atoll(argv[1]) * 1000;
    for (; port_count < argc - 2; port_count++)
        ports[port_count] =
            (struct pollfd){.fd = open_port(argv[port_count + 2]), .events = POLLIN};
    ports[port_count] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    printf("ready\n");
    fflush(stdout);
    while (!ports[port_count].revents) {
        int64_t wait_ns = 100000000;
        for (; count > 0; first = (first + 1) % MOST_WAITING, count--) {
            wait_ns = waiting[first].came_ns + delay_ns - now_ns();
            if (wait_ns > 0) break;
            hand_on(&waiting[first]);
        }
        const struct timespec t = {wait_ns > 0 ? wait_ns / 1000000000 : 0,
                                   wait_ns > 0 ? wait_ns % 1000000000 : 0};
        if (ppoll(ports, (nfds_t)port_count + 1, &t, NULL) < 0 && errno != EINTR) die("ppoll");
        for (int port = 0; port < port_count; port++)
            if (ports[port].revents) take(port);
    }
    return EXIT_SUCCESS;
}
