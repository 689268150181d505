// Addresses of devices, as peers wrote them: tcp, shm, and those over libfabric and UCX.
// SPDX-License-Identifier: Apache-2.0
//
// Input: one bit for each part that is made genuine (which host, user and checksum), then the
// bytes.
#include "tests/fuzz/host_services.h"

#include "rdm/address.h"
#include "shm/address.h"
#include "tcp/address.h"

using namespace dtrain;
using fuzz::Bytes;

namespace {

fuzz::HostServices &services() {
    static auto *all = new fuzz::HostServices;
    return *all;
}

void check_tcp(const Bytes &bytes) {
    tcp::Address address;
    if (!address.decode(bytes.data(), bytes.size())) return;
    FUZZ_REQUIRE(address.count >= 1 && address.count <= tcp::Address::most);
    uint8_t again[tcp::Address::wire_length];
    address.encode(again);
    tcp::Address second;
    FUZZ_REQUIRE(second.decode(again, sizeof again) && second.count == address.count);
    for (uint32_t i = 0; i < address.count; i++) {
        FUZZ_REQUIRE(*tcp::text_of(address.sockets[i]).text);
        FUZZ_REQUIRE(tcp::same_ip(address.sockets[i], second.sockets[i]));
        (void)tcp::is_loopback(address.sockets[i]);
    }
}

void check_shm(Bytes bytes, uint8_t genuine) {
    const tp::Host host(services().table());
    static shm::Address own;
    static const bool made = shm::make_address(host, own) == DTRAIN_OK;
    if (!made) return;
    if (bytes.size() >= sizeof own) {
        shm::Address peer;
        std::memcpy(&peer, bytes.data(), sizeof peer);
        if (genuine & 1) peer.magic = own.magic, peer.version = own.version;
        if (genuine & 2) peer.boot_id = own.boot_id;
        if (genuine & 4) peer.network = own.network;
        if (genuine & 8) peer.uid = own.uid;
        std::memcpy(bytes.data(), &peer, sizeof peer);
        if (genuine & 16) bytes.resize(sizeof peer);
    }
    shm::Address out;
    if (shm::check_reach(host, own, bytes.data(), bytes.size(), out) == DTRAIN_OK)
        FUZZ_REQUIRE(out.boot_id == own.boot_id && out.uid == own.uid);
}

void check_rdm(const Bytes &bytes, uint8_t genuine) {
    const tp::Host host(services().table());
    rdm::Address address;
    if (!(genuine & 1)) {
        (void)address.decode(bytes.data(), bytes.size());
        return;
    }
    std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof address),
                reinterpret_cast<uint8_t *>(&address));
    address.seal(host);
    if (genuine & 2) address.mac[0] ^= 1;
    rdm::Address peer;
    if (!peer.decode(&address, sizeof address)) return;
    FUZZ_REQUIRE(le16toh(peer.fabric_len) <= rdm::max_fabric_address);
    FUZZ_REQUIRE(std::find(peer.kind, std::end(peer.kind), 0) != std::end(peer.kind));
    FUZZ_REQUIRE((peer.judge(host) == tp::Verdict::accepted) == ((genuine & 2) == 0));
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t genuine = in.byte();
    const Bytes bytes = in.rest();
    check_tcp(bytes);
    check_shm(bytes, genuine);
    check_rdm(bytes, genuine);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    tcp::Address address;
    address.id = {7};
    address.host = 5;
    tcp::SocketAddress four = tcp::everywhere(AF_INET), six = tcp::everywhere(AF_INET6);
    four.four.sin_addr.s_addr = htonl(0x0a000004);
    six.six.sin6_addr.s6_addr[0] = 0xfd;
    address.add(four);
    address.add(six);
    address.set_port(htons(4711));
    Bytes tcp(tcp::Address::wire_length);
    address.encode(tcp.data());
    return {Made().byte(0).all(tcp), Made().byte(31).all(Bytes(sizeof(shm::Address))),
            Made().byte(1).all(Bytes(64)), Made().byte(3).all(Bytes(8)),
            Made().byte(27).all(Bytes(sizeof(shm::Address)))};
}
