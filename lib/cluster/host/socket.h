// TCP sockets for the control connections: non-blocking, close-on-exec, no delay.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace dtrain::cluster {

struct Endpoint {
    std::string host; // name or numeric, without brackets
    std::string port; // decimal
};
// Parses "host:port" or "[v6]:port"; DTRAIN_ERR_INVALID, whose text begins with `what`.
Status parse_endpoint(const std::string &text, const char *what, Endpoint &out);
std::string join_endpoint(const std::string &host, const std::string &port); // with brackets for v6

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
};
// All addresses of a name, at least one on DTRAIN_OK. DTRAIN_ERR_TIMEOUT: the resolver has not
// answered by deadline_ns (monotonic).
Status resolve(const Endpoint &endpoint, int64_t deadline_ns, std::vector<SocketAddress> &out);
// The full name of a host, with its domain; "" if the resolver knows none by then.
std::string canonical_name(const std::string &host, int64_t deadline_ns);
// The address of a numeric host, at once.
Status resolve_numeric(const Endpoint &endpoint, std::vector<SocketAddress> &out);

// DTRAIN_ERR_BUSY: the port is in use. DTRAIN_ERR_NOT_FOUND: this host does not have the address.
Status listen_on(const SocketAddress &address, Fd &out);
// Listens at all addresses of IPv6 and IPv4, as far as this machine has them.
Status listen_everywhere(const std::string &port, Fd &out);
// Checks that fd is a listening socket and takes a duplicate.
Status adopt_listener(int fd, Fd &out);
// Begins to connect; the socket is writable when that has ended: see connect_result().
// DTRAIN_ERR_NOT_FOUND: refused.
Status begin_connect(const SocketAddress &address, Fd &out);
int connect_result(int fd); // errno, 0 when connected
void prepare_accepted(int fd);
int64_t round_trip_ns(int fd); // the shortest that a connection has seen; 0: unknown

Endpoint local_endpoint(int fd); // numeric
Endpoint remote_endpoint(int fd);
Endpoint endpoint_of(const SocketAddress &address); // numeric
std::string numeric_host(const sockaddr &address);
bool is_loopback(const std::string &host); // numeric
void set_port(SocketAddress &address, uint16_t port);
// The numeric address of this host on the route there; "" if that is the host itself by its
// loopback, or unknown. Nothing is sent.
std::string local_address_towards(const std::vector<SocketAddress> &there);

} // namespace dtrain::cluster
