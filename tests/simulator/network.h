// Connections and other objects behind descriptors.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "world.h"

#include <sys/socket.h>

namespace dtrain::simulator {

// What poll() would say of it now.
short ready_events(int object);
// When something happens next on the network and at timers, without anybody's doing.
int64_t next_arrival();
// Connection attempts whose time has come are answered.
void settle_network();

int make_object(Object::Kind kind, bool nonblocking);
void release_object(int object);
void close_all_of(Process &process);
void cut(int host, int other, int64_t until);

int64_t receive_bytes(Socket &socket, void *into, size_t length); // or -errno
int64_t send_bytes(Socket &socket, const void *from, size_t length);
void send_end(Socket &socket);
int64_t unsent_bytes(const Socket &socket);
int listen_at(Object &object);
int connect_to(Object &object, const sockaddr *address, socklen_t length);
int accept_from(Object &listener); // an object, or -errno
int bind_to(Object &object, const sockaddr *address, socklen_t length);
int name_of(int host, uint16_t port, sockaddr *address, socklen_t *length);

} // namespace dtrain::simulator
