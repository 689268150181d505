// The three kinds of rendezvous: a TCP address, a file, and the program's all-gather.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/rendezvous.h"

#include "base/callback.h"
#include "base/random.h"
#include "cluster/environment/source.h"
#include "cluster/host/interfaces.h"
#include "cluster/host/ports.h"
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

constexpr std::string_view tcp = "tcp://", file = "file://", at = "at:";
constexpr char file_head[] = "dtrain-rendezvous ", file_over[] = "dtrain-rendezvous over\n";
constexpr char cannot_listen = '!'; // precedes an error text in place of an address

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
        if (endpoint.host != any_host &&
            resolve(endpoint, deadline_ns, there) == DTRAIN_ERR_TIMEOUT)
            return fail_within(DTRAIN_ERR_TIMEOUT, "rendezvous");
    }
    out = likely_address(there);
    return DTRAIN_OK;
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
        if (identity.port_seed == 0) return DTRAIN_OK;
        meeting_ = uint16_t(identity.port_seed ^ identity.port_seed >> 16);
        ports_.clear();
        for (uint16_t port : ports_from(identity.port_seed)) ports_.push_back(std::to_string(port));
        return DTRAIN_OK;
    }
    if (where.starts_with(file) && where.size() > file.size() + 1 && where[file.size()] == '/') {
        kind_ = Kind::file;
        path_ = where.substr(file.size());
        return DTRAIN_OK;
    }
    if (where.starts_with(at)) {
        kind_ = Kind::place;
        place_ = where.substr(at.size());
        return DTRAIN_OK;
    }
    if (where == "oob") {
        kind_ = Kind::oob;
        if (oob == nullptr)
            return fail(DTRAIN_ERR_INVALID, "rendezvous oob: the oob callback is NULL");
        return DTRAIN_OK;
    }
    if (exchange_ = exchange_named(where); exchange_ != nullptr) {
        kind_ = Kind::exchange;
        return DTRAIN_OK;
    }
    return fail(DTRAIN_ERR_INVALID,
                "rendezvous \"%.200s\" is not env, tcp://host:port, file:///path, oob, pmi or pmix",
                where.c_str());
}

Status Rendezvous::open(int64_t deadline_ns, Fd &listener, uint32_t formed) {
    if (identity_.member() != 0) return passes_on() ? pass_on("", deadline_ns) : DTRAIN_OK;
    Status s = listen(deadline_ns, listener);
    if (s == DTRAIN_OK) return publish(listener, formed, deadline_ns);
    if (!passes_on()) return s;
    const std::string why = error_text(); // the others wait to be told
    (void)pass_on(cannot_listen + why, deadline_ns);
    return fail(s, "%s", why.c_str());
}

Status Rendezvous::listen(int64_t deadline_ns, Fd &listener) {
    if (listener) return DTRAIN_OK;
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
    if (s != DTRAIN_ERR_BUSY || identity_.port_seed == 0) return s;
    return fail(DTRAIN_ERR_BUSY,
                "%s, and the ports where rank 0 may listen (%s, %s, %s, %s) are all in use; set "
                "DTRAIN_RENDEZVOUS to tcp://HOST:PORT for all",
                identity_.port_reason.c_str(), ports_[0].c_str(), ports_[1].c_str(),
                ports_[2].c_str(), ports_[3].c_str());
}

Status Rendezvous::listen_tcp(const std::string &port, int64_t deadline_ns, Fd &listener) const {
    if (endpoint_.host == any_host) return listen_everywhere(port, listener);
    std::vector<SocketAddress> addresses;
    if (Status s = resolve({endpoint_.host, port}, deadline_ns, addresses); s != DTRAIN_OK)
        return fail_within(s, "rendezvous");
    const bool exact = is_number(endpoint_.host) || endpoint_.host == "localhost";
    Status s = DTRAIN_ERR_NOT_FOUND;
    for (size_t i = 0; i < addresses.size() && exact && s == DTRAIN_ERR_NOT_FOUND; i++)
        s = listen_on(addresses[i], listener);
    return s == DTRAIN_ERR_NOT_FOUND ? listen_everywhere(port, listener) : s;
}

Status Rendezvous::publish(const Fd &listener, uint32_t formed, int64_t deadline_ns) {
    if (kind_ == Kind::tcp || kind_ == Kind::place) return DTRAIN_OK;
    uint64_t nonce = 0;
    random_bytes(&nonce, sizeof nonce);
    meeting_ = uint16_t(nonce); // of the file, the end of its nonce
    const std::string place = place_of(listener.get()).text();
    if (kind_ != Kind::file) return pass_on(place, deadline_ns);
    char line[512];
    std::snprintf(line, sizeof line, "%s%s %d %016llx", file_head, place.c_str(), getpid(),
                  static_cast<unsigned long long>(nonce));
    announced_ = line;
    return write_file(formed);
}

Status Rendezvous::note_formed() { return written_.empty() ? DTRAIN_OK : write_file(1); }

// Beside the file, where no other process looks.
std::string Rendezvous::unique_path() const {
    uint64_t unique = 0;
    random_bytes(&unique, sizeof unique);
    return path_ + "." + std::to_string(getpid()) + "." + std::to_string(unique);
}

Status Rendezvous::write_file(uint32_t formed) {
    const std::string line = announced_ + " " + std::to_string(formed) + "\n";
    const std::string fresh = unique_path();
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
    if (std::strcmp(line, file_over) == 0)
        return fail(DTRAIN_ERR_ABORTED, "the job is over, as rendezvous file \"%s\" says",
                    path_.c_str());
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

// What is passed on: the meeting and the place, or cannot_listen and an error text.
Status Rendezvous::pass_on(const std::string &place, int64_t deadline_ns) {
    std::string text = place;
    if (!place.empty() && place[0] != cannot_listen) {
        char head[8];
        std::snprintf(head, sizeof head, "%x ", unsigned(meeting_));
        text = head + place;
    }
    text.resize(std::min(text.size(), size_t{wire::max_address} + 4));
    Status s = DTRAIN_OK;
    if (kind_ == Kind::oob) {
        s = gather(text);
    } else {
        Exchange *exchange = nullptr;
        const Getenv environment = [](const char *name) { return std::getenv(name); };
        s = exchange_->open(Variables(environment), exchange);
        if (s == DTRAIN_OK) s = exchange->pass(identity_.member() == 0, text, deadline_ns);
    }
    if (s != DTRAIN_OK) return s;
    if (text.starts_with(cannot_listen))
        return identity_.member() == 0
                   ? DTRAIN_OK
                   : fail(DTRAIN_ERR_PEER, "rank 0 could not listen: %s", text.c_str() + 1);
    const size_t space = text.find(' ');
    meeting_ = uint16_t(std::strtoul(text.c_str(), nullptr, 16));
    place_ = space == std::string::npos ? "" : text.substr(space + 1);
    return DTRAIN_OK;
}

// text: this member's contribution, then that of member 0.
Status Rendezvous::gather(std::string &text) {
    constexpr size_t blob = wire::max_address + sizeof "ffff ";
    std::vector<char> mine(blob), all(blob * size_t(identity_.members()));
    std::memcpy(mine.data(), text.data(), std::min(text.size(), blob - 1));
    int32_t error = 0;
    if (Thrown thrown;
        !returns([&] { error = oob_(oob_arg_, mine.data(), all.data(), blob); }, thrown))
        return fail(DTRAIN_ERR_IO, "rendezvous: the oob callback threw %s", thrown.text);
    if (error != 0) return fail(DTRAIN_ERR_IO, "rendezvous: the oob callback returned %d", error);
    all[blob - 1] = 0;
    text = all.data();
    if (!text.empty()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_CONFIG,
                "rendezvous: the oob callback did not pass on rank 0's contribution");
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

bool Rendezvous::has_written(const std::string &path) const {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    char line[512];
    const ssize_t n = fd ? read(fd.get(), line, sizeof line) : -1;
    return n == ssize_t(written_.size()) && std::memcmp(line, written_.data(), size_t(n)) == 0;
}

// Another process may put its own file there at any moment: the next job's rank 0, or the next
// generation's. So the file is moved to where nobody else looks before it is removed, and put back
// if it is not this process's.
void Rendezvous::close() {
    if (written_.empty()) return;
    const std::string moved = unique_path();
    if (has_written(path_) && rename(path_.c_str(), moved.c_str()) == 0) {
        // Not over a newer one (EEXIST). Some file systems have no links.
        if (!has_written(moved) && link(moved.c_str(), path_.c_str()) != 0 && errno != EEXIST)
            (void)rename(moved.c_str(), path_.c_str());
        unlink(moved.c_str());
    }
    written_.clear();
}

} // namespace dtrain::cluster
