// Makes a device's address, and checks whether a peer's can be reached.
// SPDX-License-Identifier: Apache-2.0
#include "shm/address.h"
#include "common/fd.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace dtrain::shm {
namespace {

constexpr const char *boot_id_path = "/proc/sys/kernel/random/boot_id";
constexpr const char *network_path = "/proc/self/ns/net";

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// Converts "01234567-89ab-..." to bytes.
bool read_boot_id(std::array<uint8_t, 16> &out) {
    tp::Fd fd(open(boot_id_path, O_RDONLY | O_CLOEXEC));
    char text[64];
    ssize_t n = fd ? read(fd.get(), text, sizeof text) : -1;
    size_t digits = 0;
    for (ssize_t i = 0; i < n && digits < 32; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0) continue;
        uint8_t &byte = out[digits++ / 2];
        byte = static_cast<uint8_t>(byte << 4 | digit);
    }
    return digits == 32;
}

} // namespace

Status make_address(const Host &host, Address &out) {
    struct stat network;
    if (!read_boot_id(out.boot_id) || stat(network_path, &network) != 0)
        return host.fail(
            DTRAIN_ERR_UNSUPPORTED,
            "shm: cannot tell which host this is: %s or %s is not readable; mount /proc",
            boot_id_path, network_path);
    out.network = network.st_ino;
    out.uid = geteuid();
    out.pid = static_cast<uint32_t>(getpid());
    host.random(out.name.data(), out.name.size());
    return DTRAIN_OK;
}

Status check_reach(const Host &host, const Address &own, const void *address, size_t len,
                   Address &out) {
    Address peer;
    if (len != sizeof peer || address == nullptr)
        return host.fail(DTRAIN_ERR_UNSUPPORTED,
                         "shm: the peer's address has %zu bytes, so it is "
                         "not one of shm",
                         len);
    std::memcpy(&peer, address, sizeof peer);
    const char *why = nullptr;
    if (peer.magic != own.magic)
        why = "the address is not one of shm";
    else if (peer.version != own.version)
        why = "the peer's version of dtrain uses another layout of shared memory";
    else if (peer.boot_id != own.boot_id)
        why = "the peer is on another host";
    else if (peer.network != own.network)
        why = "the peer is in another network namespace";
    else if (peer.uid != own.uid)
        why = "the peer runs as another user";
    if (why != nullptr) return host.fail(DTRAIN_ERR_UNSUPPORTED, "shm: %s", why);
    out = peer;
    return DTRAIN_OK;
}

} // namespace dtrain::shm
