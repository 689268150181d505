// The three kinds of rendezvous: a TCP address, a file, and the program's all-gather.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/rendezvous.h"

#include "base/callback.h"
#include "cluster/host/interfaces.h"
#include "wire/auth.h"
#include "wire/limits.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

constexpr std::string_view tcp = "tcp://", file = "file://";
constexpr char file_head[] = "dtrain-rendezvous ";
constexpr char oob_failed = '!'; // precedes an error text in place of an address

bool is_number(const std::string &host) {
    in6_addr any;
    return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// Writes all of `data` into a new file; removes the file on failure.
Status write_whole(const std::string &path, const std::string &data) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(errno, "rendezvous file \"%s\"", path.c_str());
    ssize_t n = write(fd.get(), data.data(), data.size());
    if (n == ssize_t(data.size())) return DTRAIN_OK;
    int error = n < 0 ? errno : ENOSPC;
    unlink(path.c_str());
    return fail_errno(error, "rendezvous file \"%s\"", path.c_str());
}

bool means_loopback(const std::string &host) { return host == "localhost" || is_loopback(host); }

std::string likely_address(const std::vector<SocketAddress> &there) {
    if (std::string own = local_address_towards(there); !own.empty()) return own;
    // Worker 0's own name may resolve to its loopback (Debian's 127.0.1.1).
    const std::vector<std::string> all = own_addresses();
    return all.empty() ? "" : all[0];
}

} // namespace

Status own_address(const std::string &rendezvous, int64_t deadline_ns, std::string &out) {
    out.clear();
    if (rendezvous.empty()) return DTRAIN_OK;
    std::vector<SocketAddress> there;
    if (rendezvous.starts_with(tcp)) {
        Endpoint endpoint;
        if (parse_endpoint(rendezvous.substr(tcp.size()), "rendezvous", endpoint) != DTRAIN_OK ||
            means_loopback(endpoint.host))
            return DTRAIN_OK;
        if (resolve(endpoint, deadline_ns, there) == DTRAIN_ERR_TIMEOUT)
            return fail_within(DTRAIN_ERR_TIMEOUT, "rendezvous");
    }
    out = likely_address(there);
    return DTRAIN_OK;
}

std::array<uint16_t, 4> ports_beside(int32_t master_port) {
    constexpr int32_t first = 1024, count = 32768 - first, step = 2053; // a prime
    std::array<uint16_t, 4> ports{};
    for (int32_t i = 0; i < int32_t(ports.size()); i++)
        ports[size_t(i)] = uint16_t(first + (master_port + step * (i + 1)) % count);
    return ports;
}

Status Rendezvous::parse(const Identity &identity, const std::string &listen_address,
                         dtrain_oob_allgather_fn oob, void *oob_arg) {
    identity_ = identity;
    oob_ = oob;
    oob_arg_ = oob_arg;
    listen_host_ = listen_address;
    const std::string &where = identity.rendezvous;
    if (single()) return DTRAIN_OK;
    if (where.starts_with(tcp)) {
        kind_ = Kind::tcp;
        if (Status s = parse_endpoint(where.substr(tcp.size()), "rendezvous", endpoint_);
            s != DTRAIN_OK)
            return s;
        ports_ = {endpoint_.port};
        if (identity.master_port == 0) return DTRAIN_OK;
        meeting_ = uint16_t(identity.master_port);
        ports_.clear();
        for (uint16_t port : ports_beside(identity.master_port))
            ports_.push_back(std::to_string(port));
        return DTRAIN_OK;
    }
    if (where.starts_with(file) && where.size() > file.size() + 1 && where[file.size()] == '/') {
        kind_ = Kind::file;
        path_ = where.substr(file.size());
        return DTRAIN_OK;
    }
    if (where == "oob") {
        kind_ = Kind::oob;
        if (oob == nullptr)
            return fail(DTRAIN_ERR_INVALID, "rendezvous oob: the oob callback is NULL");
        return DTRAIN_OK;
    }
    return fail(DTRAIN_ERR_INVALID,
                "rendezvous \"%.200s\" is not env, tcp://host:port, file:///path or oob",
                where.c_str());
}

Status Rendezvous::open(int64_t deadline_ns, Fd &listener) {
    if (identity_.member() != 0) return kind_ == Kind::oob ? gather("") : DTRAIN_OK;
    Status s = listen(deadline_ns, listener);
    if (s != DTRAIN_OK) {
        if (kind_ != Kind::oob) return s;
        std::string why = error_text(); // the others wait in the all-gather
        gather(oob_failed + why);
        return fail(s, "%s", why.c_str());
    }
    return publish(listener);
}

Status Rendezvous::listen(int64_t deadline_ns, Fd &listener) {
    if (identity_.listen_fd >= 0) {
        Status s = adopt_listener(identity_.listen_fd, listener);
        if (s == DTRAIN_OK) given_ = Unshared(identity_.listen_fd);
        return s;
    }
    if (kind_ == Kind::tcp) return listen_tcp(deadline_ns, listener);
    if (listen_host_.empty()) return listen_everywhere("0", listener);
    std::vector<SocketAddress> addresses;
    Status s = resolve({listen_host_, "0"}, deadline_ns, addresses);
    if (s == DTRAIN_OK) s = listen_on(addresses[0], listener);
    return s == DTRAIN_OK ? s : fail_within(s, "option listen.address");
}

Status Rendezvous::listen_tcp(int64_t deadline_ns, Fd &listener) const {
    if (endpoint_.port == "0")
        return fail(DTRAIN_ERR_INVALID, "rendezvous \"%s\": the port must not be 0",
                    identity_.rendezvous.c_str());
    Status s = DTRAIN_ERR_BUSY;
    for (size_t i = 0; i < ports_.size() && s == DTRAIN_ERR_BUSY; i++)
        s = listen_tcp(ports_[i], deadline_ns, listener);
    if (s != DTRAIN_ERR_BUSY || identity_.master_port == 0) return s;
    return fail(DTRAIN_ERR_BUSY,
                "MASTER_PORT=%d is torch's own port, and the ports where rank 0 may listen beside "
                "it (%s, %s, %s, %s) are all in use; choose another MASTER_PORT, or set "
                "DTRAIN_RENDEZVOUS to tcp://HOST:PORT for all",
                identity_.master_port, ports_[0].c_str(), ports_[1].c_str(), ports_[2].c_str(),
                ports_[3].c_str());
}

Status Rendezvous::listen_tcp(const std::string &port, int64_t deadline_ns, Fd &listener) const {
    std::vector<SocketAddress> addresses;
    if (Status s = resolve({endpoint_.host, port}, deadline_ns, addresses); s != DTRAIN_OK)
        return fail_within(s, "rendezvous");
    const bool exact = is_number(endpoint_.host) || endpoint_.host == "localhost";
    Status s = DTRAIN_ERR_NOT_FOUND;
    for (size_t i = 0; i < addresses.size() && exact && s == DTRAIN_ERR_NOT_FOUND; i++)
        s = listen_on(addresses[i], listener);
    return s == DTRAIN_ERR_NOT_FOUND ? listen_everywhere(port, listener) : s;
}

Status Rendezvous::publish(const Fd &listener) {
    if (kind_ == Kind::tcp) return DTRAIN_OK;
    wire::random_bytes(&meeting_, sizeof meeting_);
    const std::string place = place_of(listener.get()).text();
    return kind_ == Kind::file ? write_file(place) : gather(place);
}

// The meeting is the end of the nonce, by which rank 0 recognizes its own file.
Status Rendezvous::write_file(const std::string &place) {
    uint64_t nonce = 0;
    wire::random_bytes(&nonce, sizeof nonce);
    meeting_ = uint16_t(nonce);
    char line[512];
    std::snprintf(line, sizeof line, "%s%s %d %016llx\n", file_head, place.c_str(), getpid(),
                  static_cast<unsigned long long>(nonce));
    std::string fresh = path_ + "." + std::to_string(getpid()) + "." + std::to_string(nonce);
    if (Status s = write_whole(fresh, line); s != DTRAIN_OK) return s;
    if (rename(fresh.c_str(), path_.c_str()) != 0) {
        int error = errno;
        unlink(fresh.c_str());
        return fail_errno(error, "rendezvous file \"%s\"", path_.c_str());
    }
    written_ = line;
    return DTRAIN_OK;
}

Status Rendezvous::read_file(std::string &place) {
    Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!fd && errno == ENOENT)
        return fail(DTRAIN_ERR_NOT_FOUND, "rendezvous file \"%s\" does not exist yet",
                    path_.c_str());
    if (!fd) return fail_errno(errno, "rendezvous file \"%s\"", path_.c_str());
    char line[512];
    const ssize_t n = read(fd.get(), line, sizeof line - 1);
    line[std::max<ssize_t>(n, 0)] = 0;
    char address[wire::max_address];
    unsigned long long nonce = 0;
    static_assert(wire::max_address == 256);
    if (std::sscanf(line, "dtrain-rendezvous %255s %*d %llx", address, &nonce) != 2)
        return fail(DTRAIN_ERR_NOT_FOUND, "\"%s\" is not a rendezvous file of dtrain",
                    path_.c_str());
    place = address;
    meeting_ = uint16_t(nonce);
    return DTRAIN_OK;
}

// The data exchanged: the meeting and the place, or oob_failed and an error text.
Status Rendezvous::gather(const std::string &place) {
    constexpr size_t blob = wire::max_address + sizeof "ffff ";
    std::vector<char> mine(blob), all(blob * size_t(identity_.members()));
    const bool failed = !place.empty() && place[0] == oob_failed;
    char head[8] = "";
    if (!failed) std::snprintf(head, sizeof head, "%x ", unsigned(meeting_));
    if (!place.empty()) std::snprintf(mine.data(), blob, "%s%s", head, place.c_str());
    int32_t error = 0;
    if (Thrown thrown;
        !returns([&] { error = oob_(oob_arg_, mine.data(), all.data(), blob); }, thrown))
        return fail(DTRAIN_ERR_IO, "rendezvous: the oob callback threw %s", thrown.text);
    if (error != 0) return fail(DTRAIN_ERR_IO, "rendezvous: the oob callback returned %d", error);
    all[blob - 1] = 0;
    const std::string told = all.data();
    if (told.empty())
        return fail(DTRAIN_ERR_CONFIG,
                    "rendezvous: the oob callback did not pass on rank 0's contribution");
    if (told[0] == oob_failed)
        return identity_.member() == 0
                   ? DTRAIN_OK
                   : fail(DTRAIN_ERR_PEER, "rank 0 could not listen: %s", told.c_str() + 1);
    const size_t space = told.find(' ');
    meeting_ = uint16_t(std::strtoul(told.c_str(), nullptr, 16));
    place_ = space == std::string::npos ? "" : told.substr(space + 1);
    return DTRAIN_OK;
}

Status Rendezvous::find(int64_t deadline_ns, std::vector<SocketAddress> &addresses) {
    if (kind_ == Kind::tcp) return find_tcp(deadline_ns, addresses);
    std::string text = place_;
    if (kind_ == Kind::file)
        if (Status s = read_file(text); s != DTRAIN_OK) return s;
    Place place;
    if (Status s = Place::parse(text, "rendezvous", place); s != DTRAIN_OK) return s;
    return place.candidates(addresses);
}

Status Rendezvous::find_tcp(int64_t deadline_ns, std::vector<SocketAddress> &addresses) {
    if (resolved_.empty())
        if (Status s = resolve(endpoint_, deadline_ns, resolved_); s != DTRAIN_OK) return s;
    addresses = resolved_;
    const int port = std::atoi(ports_[turn_++ % ports_.size()].c_str());
    for (SocketAddress &address : addresses) set_port(address, uint16_t(port));
    return DTRAIN_OK;
}

bool Rendezvous::is_local() const {
    return kind_ == Kind::tcp &&
           (means_loopback(endpoint_.host) || likely_address(resolved_).empty());
}

void Rendezvous::close() {
    if (written_.empty()) return;
    Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    char line[512];
    ssize_t n = fd ? read(fd.get(), line, sizeof line) : -1;
    // Another job may have put its own file there.
    if (n == ssize_t(written_.size()) && std::memcmp(line, written_.data(), size_t(n)) == 0)
        unlink(path_.c_str());
    written_.clear();
}

} // namespace dtrain::cluster
