// SPDX-License-Identifier: Apache-2.0
#include "cluster/rendezvous.h"

#include "wire/auth.h"
#include "wire/limits.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

constexpr std::string_view tcp = "tcp://", file = "file://";
constexpr char file_head[] = "dtrain-rendezvous ";
constexpr char oob_failed = '!'; // before an error text instead of an address

bool is_number(const std::string &host) {
    in6_addr any;
    return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
           inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// All of `data` into a new file; removed again on failure.
Status write_whole(const std::string &path, const std::string &data) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return fail_errno(errno, "rendezvous file %s", path.c_str());
    ssize_t n = write(fd.get(), data.data(), data.size());
    if (n == ssize_t(data.size())) return DTRAIN_OK;
    int error = n < 0 ? errno : ENOSPC;
    unlink(path.c_str());
    return fail_errno(error, "rendezvous file %s", path.c_str());
}

} // namespace

std::string own_address(const std::string &rendezvous) {
    Endpoint endpoint;
    if (!rendezvous.starts_with(tcp) ||
        parse_endpoint(rendezvous.substr(tcp.size()), "rendezvous", endpoint) != DTRAIN_OK)
        return "";
    std::string own = local_address_towards(endpoint);
    bool is_local =
        endpoint.host == "localhost" || endpoint.host.starts_with("127.") || endpoint.host == "::1";
    if (!own.empty() || is_local) return own;
    // Worker 0's own name may mean its loopback (Debian's 127.0.1.1): where would packets leave?
    return local_address_towards({"192.0.2.1", "9"}); // an address of documentation, RFC 5737
}

Status Rendezvous::parse(const Identity &identity, const std::string &listen_address,
                         dtrain_oob_allgather_fn oob, void *oob_arg) {
    identity_ = identity;
    oob_ = oob;
    oob_arg_ = oob_arg;
    listen_host_ = listen_address.empty() ? "127.0.0.1" : listen_address;
    const std::string &where = identity.rendezvous;
    if (single()) return DTRAIN_OK;
    if (where.starts_with(tcp)) {
        kind_ = Kind::tcp;
        return parse_endpoint(where.substr(tcp.size()), "rendezvous", endpoint_);
    }
    if (where.starts_with(file) && where.size() > file.size() + 1 && where[file.size()] == '/') {
        kind_ = Kind::file;
        path_ = where.substr(file.size());
        return DTRAIN_OK;
    }
    if (where == "oob") {
        kind_ = Kind::oob;
        if (oob == nullptr) return fail(DTRAIN_ERR_INVALID, "rendezvous oob needs its callback");
        return DTRAIN_OK;
    }
    return fail(DTRAIN_ERR_INVALID,
                "rendezvous \"%.200s\" is not env, tcp://host:port, file:///path or oob",
                where.c_str());
}

Status Rendezvous::open(Fd &listener) {
    if (identity_.member() != 0) return kind_ == Kind::oob ? gather("") : DTRAIN_OK;
    Status s = listen(listener);
    if (s != DTRAIN_OK) {
        if (kind_ != Kind::oob) return s;
        std::string why = error_text(); // the others wait in the all-gather
        gather(oob_failed + why);
        return fail(s, "%s", why.c_str());
    }
    Endpoint own = local_endpoint(listener.get());
    return publish(join_endpoint(own.host, own.port));
}

Status Rendezvous::listen(Fd &listener) const {
    if (identity_.listen_fd >= 0) return adopt_listener(identity_.listen_fd, listener);
    if (kind_ == Kind::tcp) return listen_tcp(listener);
    std::vector<SocketAddress> addresses;
    Status s = resolve({listen_host_, "0"}, addresses);
    if (s == DTRAIN_OK) s = listen_on(addresses[0], listener);
    return s == DTRAIN_OK ? s : fail_within(s, "option listen.address");
}

Status Rendezvous::listen_tcp(Fd &listener) const {
    if (endpoint_.port == "0")
        return fail(DTRAIN_ERR_INVALID, "rendezvous %s: the port must not be 0",
                    identity_.rendezvous.c_str());
    std::vector<SocketAddress> addresses;
    if (Status s = resolve(endpoint_, addresses); s != DTRAIN_OK)
        return fail_within(s, "rendezvous");
    bool named = !is_number(endpoint_.host) && endpoint_.host != "localhost";
    bool vague = named && std::all_of(addresses.begin(), addresses.end(), is_loopback);
    Status s = DTRAIN_ERR_NOT_FOUND;
    for (size_t i = 0; i < addresses.size() && !vague && s == DTRAIN_ERR_NOT_FOUND; i++)
        s = listen_on(addresses[i], listener);
    if (s != DTRAIN_ERR_NOT_FOUND) return s;
    if (Status all = resolve({"0.0.0.0", endpoint_.port}, addresses); all != DTRAIN_OK) return all;
    return listen_on(addresses[0], listener);
}

Status Rendezvous::publish(const std::string &address) {
    switch (kind_) {
    case Kind::tcp: return DTRAIN_OK;
    case Kind::file: return write_file(address);
    case Kind::oob: return gather(address);
    }
    return DTRAIN_OK;
}

Status Rendezvous::write_file(const std::string &address) {
    uint64_t nonce = 0;
    wire::random_bytes(&nonce, sizeof nonce);
    char line[512];
    std::snprintf(line, sizeof line, "%s%s %d %016llx\n", file_head, address.c_str(), getpid(),
                  static_cast<unsigned long long>(nonce));
    std::string fresh = path_ + "." + std::to_string(getpid()) + "." + std::to_string(nonce);
    if (Status s = write_whole(fresh, line); s != DTRAIN_OK) return s;
    if (rename(fresh.c_str(), path_.c_str()) != 0) {
        int error = errno;
        unlink(fresh.c_str());
        return fail_errno(error, "rendezvous file %s", path_.c_str());
    }
    written_ = line;
    return DTRAIN_OK;
}

Status Rendezvous::read_file(std::string &address) const {
    Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!fd && errno == ENOENT)
        return fail(DTRAIN_ERR_NOT_FOUND, "%s is not there yet", path_.c_str());
    if (!fd) return fail_errno(errno, "rendezvous file %s", path_.c_str());
    char line[512];
    ssize_t n = read(fd.get(), line, sizeof line - 1);
    std::string text(line, size_t(std::max<ssize_t>(n, 0)));
    size_t start = sizeof file_head - 1, end = text.find(' ', start);
    if (!text.starts_with(file_head) || end == std::string::npos)
        return fail(DTRAIN_ERR_NOT_FOUND, "%s is no rendezvous file of dtrain", path_.c_str());
    address = text.substr(start, end - start);
    return DTRAIN_OK;
}

Status Rendezvous::gather(const std::string &address) {
    constexpr size_t blob = wire::max_address;
    std::vector<char> mine(blob), all(blob * size_t(identity_.members()));
    std::memcpy(mine.data(), address.data(), std::min(address.size(), blob - 1));
    if (int32_t error = oob_(oob_arg_, mine.data(), all.data(), blob); error != 0)
        return fail(DTRAIN_ERR_IO, "rendezvous: the oob callback returned %d", error);
    all[blob - 1] = 0;
    address_ = all.data();
    if (address_.empty())
        return fail(DTRAIN_ERR_CONFIG,
                    "rendezvous: the oob callback did not pass on what rank 0 gave");
    if (address_[0] == oob_failed && identity_.member() != 0)
        return fail(DTRAIN_ERR_PEER, "rank 0 could not listen: %s", address_.c_str() + 1);
    return DTRAIN_OK;
}

Status Rendezvous::find(std::vector<SocketAddress> &addresses) {
    if (kind_ == Kind::tcp) {
        if (resolved_.empty())
            if (Status s = resolve(endpoint_, resolved_); s != DTRAIN_OK) return s;
        addresses = resolved_;
        return DTRAIN_OK;
    }
    std::string address = address_;
    if (kind_ == Kind::file)
        if (Status s = read_file(address); s != DTRAIN_OK) return s;
    Endpoint endpoint;
    if (Status s = parse_endpoint(address, "rendezvous", endpoint); s != DTRAIN_OK) return s;
    return resolve(endpoint, addresses);
}

void Rendezvous::close() {
    if (written_.empty()) return;
    Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    char line[512];
    ssize_t n = fd ? read(fd.get(), line, sizeof line) : -1;
    // Another job may have put its own there.
    if (n == ssize_t(written_.size()) && std::memcmp(line, written_.data(), size_t(n)) == 0)
        unlink(path_.c_str());
    written_.clear();
}

} // namespace dtrain::cluster
