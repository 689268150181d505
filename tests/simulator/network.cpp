// Connections whose bytes take their time, break and close as those of the kernel do.
// SPDX-License-Identifier: Apache-2.0
#include "network.h"
#include "scheduler.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <netinet/in.h>
#include <poll.h>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr uint32_t network = 0x0A000000; // 10.0.0.0; a host's number comes last
constexpr uint64_t some_room = 4096;     // bytes; with less there is none
constexpr int64_t call_again = 1 * second;

int64_t latency(int from, int to) {
    if (from == to) return 5 * us;
    const int64_t usual = world->links[from][to].latency;
    return usual + int64_t(random_below(uint64_t(usual / 4 + 1)));
}

// When what is sent now arrives. What a link that is cut loses is sent again after it.
int64_t arrival(int from, int to) {
    const int64_t until = world->links[from][to].cut_until;
    if (until >= never) return never;
    if (until > world->clock) return until + latency(from, to) + int64_t(random_below(200 * ms));
    return world->clock + latency(from, to);
}

void settle(Pipe &pipe) {
    while (pipe.count > 0) {
        const Pipe::Piece &piece = pipe.pieces[pipe.first];
        if (piece.at > world->clock) return;
        pipe.arrived = piece.end;
        pipe.first = (pipe.first + 1) % std::size(pipe.pieces);
        pipe.count--;
    }
}

// The one or two parts of a ring that these bytes are in.
void for_each_part(uint64_t begin, uint64_t bytes, auto &&part) {
    for (uint64_t done = 0, some; done < bytes; done += some) {
        const uint64_t at = (begin + done) % ring_bytes;
        some = std::min<uint64_t>(bytes - done, ring_bytes - at);
        part(at, done, some);
    }
}

int64_t last_arrival(const Pipe &pipe) {
    if (pipe.count == 0) return 0;
    return pipe.pieces[(pipe.first + pipe.count - 1) % std::size(pipe.pieces)].at;
}

int make_pipe(int from, int to) {
    for (int i = 0; i < most_pipes; i++)
        if (!world->pipes[i].used) {
            world->pipes[i] = {};
            world->pipes_used = std::max(world->pipes_used, i + 1);
            world->pipes[i].used = true;
            world->pipes[i].from = from;
            world->pipes[i].to = to;
            return i;
        }
    fail_life("the simulator has too few pipes");
}

bool has_end(const Pipe &pipe) {
    return pipe.end_at <= world->clock && pipe.arrived == pipe.written;
}
bool is_reset(const Pipe &pipe) { return pipe.reset_at <= world->clock; }

bool is_taken(int host, uint16_t port) {
    return std::ranges::any_of(all_objects(), [&](const Object &object) {
        return object.kind == Object::Kind::socket && !object.socket.datagram &&
               object.socket.host == host && object.socket.port == port &&
               object.socket.state != Socket::State::up; // of connections, only the listener's
    });
}

uint16_t free_port(int host) {
    do world->next_port++;
    while (world->next_port < 40'000 || is_taken(host, world->next_port));
    return world->next_port;
}

int host_of(const sockaddr *address, int self) {
    const uint32_t ip = ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr);
    if (ip >> 24 == 127 || ip == 0) return self;
    return (ip & 0xFFFFFF00) == network ? int(ip & 0xFF) - 1 : nobody;
}

int listener_at(int host, uint16_t port) {
    for (int i = 1; i < world->objects_used; i++) {
        const Object &object = object_at(i);
        if (object.kind == Object::Kind::socket &&
            object.socket.state == Socket::State::listening && object.socket.host == host &&
            object.socket.port == port)
            return i;
    }
    return 0;
}

void note_answer(const Socket &caller) {
    if (caller.state == Socket::State::connecting)
        world->next_answer = std::min(world->next_answer, caller.at);
}

void answer(Socket &caller) {
    const int host = caller.host, other = caller.peer_host;
    if (host != other && world->links[host][other].cut_until > world->clock) {
        caller.at = std::max(world->links[host][other].cut_until, world->clock + call_again);
        return;
    }
    const int listener = listener_at(other, caller.peer_port);
    if (listener == 0) {
        caller.state = Socket::State::refused;
        caller.error = ECONNREFUSED;
        caller.at = arrival(other, host);
        return;
    }
    Socket &at = object_at(listener).socket;
    if (at.waiting == int(std::size(at.backlog))) {
        caller.at = world->clock + call_again;
        return;
    }
    const int made = make_object(Object::Kind::socket, false);
    if (made < 0) fail_life("the simulator has too few objects");
    Socket &called = object_at(made).socket;
    called = {};
    called.state = caller.state = Socket::State::up;
    called.host = other;
    called.port = caller.peer_port;
    called.peer_host = host;
    called.peer_port = caller.port;
    called.sends = caller.receives = make_pipe(other, host);
    called.receives = caller.sends = make_pipe(host, other);
    called.at = world->clock;
    caller.at = arrival(other, host);
    at.backlog[at.waiting++] = made;
}

short events_of(const Socket &socket) {
    switch (socket.state) {
    case Socket::State::fresh: return POLLOUT | POLLHUP;
    case Socket::State::listening: return socket.waiting > 0 ? POLLIN : 0;
    case Socket::State::connecting: return 0;
    case Socket::State::refused:
        return socket.at <= world->clock ? short(POLLIN | POLLOUT | POLLERR | POLLHUP) : short(0);
    case Socket::State::up: break;
    }
    if (socket.at > world->clock) return 0;
    Pipe &in = world->pipes[socket.receives], &out = world->pipes[socket.sends];
    settle(in);
    settle(out);
    if (is_reset(in)) return POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
    short events = 0;
    if (in.arrived > in.read || has_end(in)) events |= POLLIN;
    if (has_end(in)) events |= short(POLLRDHUP | (socket.sent_end ? POLLHUP : 0));
    if (out.written - out.read <= ring_bytes - some_room) events |= POLLOUT;
    return events;
}

void close_socket(Socket &socket) {
    if (socket.state == Socket::State::listening)
        for (int i = 0; i < socket.waiting; i++) release_object(socket.backlog[i]);
    if (socket.state != Socket::State::up) return;
    Pipe &in = world->pipes[socket.receives], &out = world->pipes[socket.sends];
    if (in.written > in.read) // as the kernel does where something was not read
        out.reset_at = std::max(last_arrival(out), arrival(out.from, out.to));
    else
        send_end(socket);
    in.reset_at = -1; // a writer will hear of it
    for (Pipe *pipe : {&in, &out}) {
        const bool other_is_there = std::ranges::any_of(all_objects(), [&](const Object &object) {
            return object.kind == Object::Kind::socket && &object.socket != &socket &&
                   object.socket.state == Socket::State::up &&
                   (&world->pipes[object.socket.receives] == pipe ||
                    &world->pipes[object.socket.sends] == pipe);
        });
        if (!other_is_there) pipe->used = false;
    }
}

} // namespace

short ready_events(int number) {
    const Object &object = object_at(number);
    switch (object.kind) {
    case Object::Kind::none: return POLLNVAL;
    case Object::Kind::event: return short(POLLOUT | (object.count > 0 ? POLLIN : 0));
    case Object::Kind::timer: return object.timer.at <= world->clock ? POLLIN : 0;
    case Object::Kind::epoll:
        for (int i = 0; i < object.epoll.count; i++) {
            const Epoll::Item &item = object.epoll.items[i];
            if (ready_events(item.object) & (short(item.events) | POLLERR | POLLHUP)) return POLLIN;
        }
        return 0;
    case Object::Kind::socket: return events_of(object.socket);
    }
    return 0;
}

int64_t next_arrival() {
    int64_t next = never;
    const auto note = [&](int64_t at) {
        if (at > world->clock) next = std::min(next, at);
    };
    for (const Pipe &pipe : all_pipes()) {
        if (!pipe.used) continue;
        if (pipe.count > 0) note(pipe.pieces[pipe.first].at);
        note(pipe.end_at);
        note(pipe.reset_at);
    }
    for (const Object &object : all_objects()) {
        if (object.kind == Object::Kind::timer) note(object.timer.at);
        if (object.kind == Object::Kind::socket && object.socket.state != Socket::State::listening)
            note(object.socket.at);
    }
    return next;
}

void settle_network() {
    if (world->clock < world->next_answer) return;
    world->next_answer = never;
    for (Object &object : all_objects())
        if (object.kind == Object::Kind::socket &&
            object.socket.state == Socket::State::connecting) {
            if (object.socket.at <= world->clock) answer(object.socket);
            note_answer(object.socket);
        }
}

int make_object(Object::Kind kind, bool nonblocking) {
    for (int i = 1; i < most_objects; i++) {
        Object &object = object_at(i);
        if (object.references > 0) continue;
        object = {};
        world->objects_used = std::max(world->objects_used, i + 1);
        object.kind = kind;
        object.nonblocking = nonblocking;
        object.references = 1;
        if (kind == Object::Kind::socket) object.socket = {};
        if (kind == Object::Kind::epoll) object.epoll.count = 0;
        if (kind == Object::Kind::timer) object.timer = {never, 0};
        return i;
    }
    return -EMFILE;
}

void release_object(int number) {
    Object &object = object_at(number);
    if (--object.references > 0) return;
    if (object.kind == Object::Kind::socket) close_socket(object.socket);
    object.kind = Object::Kind::none;
    for (Object &other : all_objects()) {
        if (other.kind != Object::Kind::epoll) continue;
        auto *end = std::remove_if(other.epoll.items, other.epoll.items + other.epoll.count,
                                   [&](const Epoll::Item &item) { return item.object == number; });
        other.epoll.count = int(end - other.epoll.items);
    }
}

void close_all_of(Process &process) {
    for (int16_t &object : process.objects)
        if (object != 0) {
            release_object(object);
            object = 0;
        }
}

void cut(int host, int other, int64_t until) {
    for (auto [from, to] : {std::pair{host, other}, std::pair{other, host}}) {
        Link &link = world->links[from][to];
        link.cut_until = std::max(link.cut_until, until);
        for (Pipe &pipe : all_pipes()) {
            if (!pipe.used || pipe.from != from || pipe.to != to) continue;
            settle(pipe);
            const int64_t again = arrival(from, to);
            for (uint32_t i = 0; i < pipe.count; i++)
                pipe.pieces[(pipe.first + i) % std::size(pipe.pieces)].at = again;
            if (pipe.end_at > world->clock && pipe.end_at < never) pipe.end_at = again;
            if (pipe.reset_at > world->clock && pipe.reset_at < never) pipe.reset_at = again;
        }
    }
}

int64_t receive_bytes(Socket &socket, void *into, size_t length) {
    if (socket.state == Socket::State::refused) return -socket.error;
    if (socket.state != Socket::State::up) return -ENOTCONN;
    Pipe &pipe = world->pipes[socket.receives];
    settle(pipe);
    uint64_t there = std::min<uint64_t>(pipe.arrived - pipe.read, length);
    if (there == 0) {
        if (is_reset(pipe)) return -ECONNRESET;
        return has_end(pipe) || length == 0 ? 0 : -EAGAIN;
    }
    if (random_below(8) == 0) there = 1 + random_below(there); // the kernel may give less
    const unsigned char *ring = world->rings[socket.receives];
    for_each_part(pipe.read, there, [&](uint64_t at, uint64_t done, uint64_t some) {
        memcpy(static_cast<unsigned char *>(into) + done, ring + at, some);
    });
    pipe.read += there;
    return int64_t(there);
}

int64_t send_bytes(Socket &socket, const void *from, size_t length) {
    if (socket.state == Socket::State::refused) return -socket.error;
    if (socket.state != Socket::State::up) return -ENOTCONN;
    if (is_reset(world->pipes[socket.receives])) return -ECONNRESET;
    if (socket.sent_end) return -EPIPE;
    Pipe &pipe = world->pipes[socket.sends];
    settle(pipe);
    if (pipe.reset_at == -1) { // the other side has closed: it answers with a reset
        Pipe &back = world->pipes[socket.receives];
        if (back.reset_at == never)
            back.reset_at = arrival(pipe.from, pipe.to) + latency(pipe.to, pipe.from);
        return int64_t(length);
    }
    uint64_t fits = std::min<uint64_t>(ring_bytes - (pipe.written - pipe.read), length);
    if (fits == 0 || (fits < length && fits < some_room)) return -EAGAIN;
    // The kernel takes a short message whole.
    if (fits > some_room && random_below(8) == 0) fits = some_room + random_below(fits - some_room);
    unsigned char *ring = world->rings[socket.sends];
    for_each_part(pipe.written, fits, [&](uint64_t at, uint64_t done, uint64_t some) {
        memcpy(ring + at, static_cast<const unsigned char *>(from) + done, some);
    });
    pipe.written += fits;
    const int64_t at = std::max(arrival(pipe.from, pipe.to), last_arrival(pipe));
    if (pipe.count == std::size(pipe.pieces)) pipe.count--; // the last two arrive together
    pipe.pieces[(pipe.first + pipe.count++) % std::size(pipe.pieces)] = {pipe.written, at};
    return int64_t(fits);
}

void send_end(Socket &socket) {
    Pipe &pipe = world->pipes[socket.sends];
    if (std::exchange(socket.sent_end, true) || pipe.end_at != never) return;
    pipe.end_at = std::max(last_arrival(pipe), arrival(pipe.from, pipe.to));
}

int64_t unsent_bytes(const Socket &socket) {
    if (socket.state != Socket::State::up) return 0;
    Pipe &pipe = world->pipes[socket.sends];
    settle(pipe);
    return int64_t(pipe.written - pipe.arrived);
}

int bind_to(Object &object, const sockaddr *address, socklen_t length) {
    if (length < sizeof(sockaddr_in) || address->sa_family != AF_INET) return -EAFNOSUPPORT;
    Socket &socket = object.socket;
    if (host_of(address, socket.host) != socket.host) return -EADDRNOTAVAIL;
    const uint16_t port = ntohs(reinterpret_cast<const sockaddr_in *>(address)->sin_port);
    if (port != 0 && is_taken(socket.host, port)) return -EADDRINUSE;
    socket.port = port != 0 ? port : free_port(socket.host);
    return 0;
}

int listen_at(Object &object) {
    Socket &socket = object.socket;
    if (socket.state == Socket::State::up) return -EINVAL;
    if (socket.port == 0) socket.port = free_port(socket.host);
    socket.state = Socket::State::listening;
    return 0;
}

int connect_to(Object &object, const sockaddr *address, socklen_t length) {
    if (length < sizeof(sockaddr_in) || address->sa_family != AF_INET) return -EAFNOSUPPORT;
    Socket &socket = object.socket;
    const int host = host_of(address, socket.host);
    if (host == nobody || host >= most_processes) return -ENETUNREACH;
    socket.peer_host = host;
    socket.peer_port = ntohs(reinterpret_cast<const sockaddr_in *>(address)->sin_port);
    if (socket.port == 0) socket.port = free_port(socket.host);
    if (socket.datagram) return 0;
    if (socket.state == Socket::State::connecting) return -EALREADY;
    if (socket.state != Socket::State::fresh) return -EISCONN;
    socket.state = Socket::State::connecting;
    socket.at = world->clock + latency(socket.host, host);
    note_answer(socket);
    return -EINPROGRESS;
}

int accept_from(Object &listener) {
    Socket &socket = listener.socket;
    if (socket.state != Socket::State::listening) return -EINVAL;
    if (socket.waiting == 0) return -EAGAIN;
    const int made = socket.backlog[0];
    std::copy(socket.backlog + 1, socket.backlog + socket.waiting, socket.backlog);
    socket.waiting--;
    return made;
}

int name_of(int host, uint16_t port, sockaddr *address, socklen_t *length) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(network + uint32_t(host) + 1);
    memcpy(address, &name, std::min<size_t>(*length, sizeof name));
    *length = sizeof name;
    return 0;
}

} // namespace dtrain::simulator
