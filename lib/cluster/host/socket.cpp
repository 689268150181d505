// Resolves names, and opens sockets that listen or connect.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/socket.h"

#include "base/clock.h"
#include "common/names.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

void set_flag(int fd, int level, int option) {
    int on = 1;
    setsockopt(fd, level, option, &on, sizeof on);
}

Endpoint numeric(const sockaddr_storage &storage, socklen_t length) {
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    getnameinfo(reinterpret_cast<const sockaddr *>(&storage), length, host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    std::string_view text = host;
    if (text.starts_with("::ffff:")) text.remove_prefix(7); // IPv4 on a socket for both
    return {std::string(text), port};
}

std::string name_of(const SocketAddress &address) {
    Endpoint e = numeric(address.storage, address.length);
    return join_endpoint(e.host, e.port);
}

Status listen_at(const SocketAddress &address, bool both_families, Fd &out) {
    Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail_errno(errno, "socket");
    set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR);
    const int only_v6 = both_families ? 0 : 1;
    if (address.storage.ss_family == AF_INET6)
        setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
    if (bind(fd.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.length) != 0 ||
        listen(fd.get(), SOMAXCONN) != 0) {
        int error = errno;
        if (error == EADDRINUSE)
            return fail(DTRAIN_ERR_BUSY,
                        "%s: the port is in use by another program; choose another one",
                        name_of(address).c_str());
        Status s = fail_errno(error, "listening on %s", name_of(address).c_str());
        return error == EADDRNOTAVAIL ? DTRAIN_ERR_NOT_FOUND : s;
    }
    out = std::move(fd);
    return DTRAIN_OK;
}

addrinfo tcp_hints() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    return hints;
}

Status unresolved(const char *host, int error) {
    if (error == EAI_SYSTEM) return fail_errno(errno, "host \"%.100s\"", host);
    return fail(error == EAI_MEMORY ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_IO, "host \"%.100s\": %s",
                host, gai_strerror(error));
}

Status take(addrinfo *list, const char *host, std::vector<SocketAddress> &out) {
    out.clear();
    for (const addrinfo *at = list; at != nullptr; at = at->ai_next) {
        SocketAddress address;
        if (at->ai_addrlen > sizeof address.storage) continue;
        std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
        address.length = at->ai_addrlen;
        out.push_back(address);
    }
    freeaddrinfo(list);
    return out.empty() ? fail(DTRAIN_ERR_IO, "host \"%.100s\" has no address", host) : DTRAIN_OK;
}

} // namespace

Status parse_endpoint(const std::string &text, const char *what, Endpoint &out) {
    size_t colon = text.rfind(':');
    std::string host = text.substr(0, colon);
    std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
    bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    unsigned number = 0;
    auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (host.empty() || port.empty() || error != std::errc{} || *end != 0 || number > 65535 ||
        (!bracketed && host.find(':') != std::string::npos) || host.size() > 255 ||
        host.find_first_of("[]") != std::string::npos)
        return fail(DTRAIN_ERR_INVALID, "%s: \"%.200s\" is not host:port", what, text.c_str());
    out = {host, port};
    return DTRAIN_OK;
}

std::string join_endpoint(const std::string &host, const std::string &port) {
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

Status resolve(const Endpoint &endpoint, int64_t deadline_ns, std::vector<SocketAddress> &out) {
    const char *host = endpoint.host.c_str();
    const int64_t begin_ns = monotonic_clock().now_ns();
    addrinfo *list = nullptr;
    const int error =
        tp::find_addresses(host, endpoint.port.c_str(), tcp_hints(), deadline_ns, &list);
    if (error == EAI_INPROGRESS)
        return fail(DTRAIN_ERR_TIMEOUT,
                    "host \"%.100s\": the resolver has not answered within %.1f s (option "
                    "join.timeout); give a numeric address instead, or find out what delays "
                    "\"getent hosts %.100s\" (/etc/resolv.conf)",
                    host, double(monotonic_clock().now_ns() - begin_ns) / double(second), host);
    return error == 0 ? take(list, host, out) : unresolved(host, error);
}

std::string canonical_name(const std::string &host, int64_t deadline_ns) {
    addrinfo hints = tcp_hints(), *list = nullptr;
    hints.ai_flags |= AI_CANONNAME;
    if (tp::find_addresses(host.c_str(), "0", hints, deadline_ns, &list) != 0) return "";
    std::string name = list->ai_canonname != nullptr ? list->ai_canonname : "";
    freeaddrinfo(list);
    return name;
}

Status resolve_numeric(const Endpoint &endpoint, std::vector<SocketAddress> &out) {
    const char *host = endpoint.host.c_str();
    addrinfo *list = nullptr;
    const int error = tp::find_numeric(host, endpoint.port.c_str(), tcp_hints(), &list);
    return error == 0 ? take(list, host, out) : unresolved(host, error);
}
Status listen_on(const SocketAddress &address, Fd &out) { return listen_at(address, false, out); }

Status listen_everywhere(const std::string &port, Fd &out) {
    std::vector<SocketAddress> all;
    if (Status s = resolve_numeric({"::", port}, all); s != DTRAIN_OK) return s;
    Status s = listen_at(all[0], true, out);
    if (s == DTRAIN_OK || s == DTRAIN_ERR_BUSY) return s;
    if (s = resolve_numeric({"0.0.0.0", port}, all); s != DTRAIN_OK)
        return s; // this machine has no IPv6
    return listen_at(all[0], false, out);
}

Status adopt_listener(int fd, Fd &out) {
    int listening = 0;
    socklen_t length = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || listening == 0)
        return fail(DTRAIN_ERR_CONFIG, "DTRAIN_LISTEN_FD=%d is not a listening socket", fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)listen(fd, SOMAXCONN); // whatever its queue was: a flood must not fill it so soon
    Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return fail_errno(errno, "DTRAIN_LISTEN_FD=%d", fd);
    fcntl(copy.get(), F_SETFL, fcntl(copy.get(), F_GETFL) | O_NONBLOCK);
    out = std::move(copy);
    return DTRAIN_OK;
}

Status begin_connect(const SocketAddress &address, Fd &out) {
    Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail_errno(errno, "socket");
    set_flag(fd.get(), IPPROTO_TCP, TCP_NODELAY);
    // If interrupted, connecting goes on in the background.
    if (connect(fd.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.length) !=
            0 &&
        errno != EINPROGRESS && errno != EINTR) {
        if (errno == ECONNREFUSED)
            return fail(DTRAIN_ERR_NOT_FOUND, "connection refused, no process listens there");
        return fail_errno(errno, "connecting to %s", name_of(address).c_str());
    }
    out = std::move(fd);
    return DTRAIN_OK;
}

int connect_result(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

void prepare_accepted(int fd) { set_flag(fd, IPPROTO_TCP, TCP_NODELAY); }

Endpoint local_endpoint(int fd) {
    SocketAddress a;
    a.length = sizeof a.storage;
    getsockname(fd, reinterpret_cast<sockaddr *>(&a.storage), &a.length);
    return numeric(a.storage, a.length);
}

Endpoint remote_endpoint(int fd) {
    SocketAddress a;
    a.length = sizeof a.storage;
    getpeername(fd, reinterpret_cast<sockaddr *>(&a.storage), &a.length);
    return numeric(a.storage, a.length);
}

Endpoint endpoint_of(const SocketAddress &address) {
    return numeric(address.storage, address.length);
}

std::string numeric_host(const sockaddr &address) {
    SocketAddress copy;
    copy.length = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&copy.storage, &address, copy.length);
    return endpoint_of(copy).host;
}

bool is_loopback(const std::string &host) { return host.starts_with("127.") || host == "::1"; }

void set_port(SocketAddress &address, uint16_t port) {
    if (address.storage.ss_family == AF_INET)
        reinterpret_cast<sockaddr_in &>(address.storage).sin_port = htons(port);
    else
        reinterpret_cast<sockaddr_in6 &>(address.storage).sin6_port = htons(port);
}

std::string local_address_towards(const std::vector<SocketAddress> &there) {
    for (const SocketAddress &address : there) {
        Fd fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (!fd || is_loopback(endpoint_of(address).host) ||
            connect(fd.get(), reinterpret_cast<const sockaddr *>(&address.storage),
                    address.length) != 0)
            continue;
        return local_endpoint(fd.get()).host;
    }
    return "";
}

} // namespace dtrain::cluster
