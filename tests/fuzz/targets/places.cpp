// Texts that say where processes are: places of members, rendezvous, the file where processes meet,
// what rank 0 passes on, and lists of hosts.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/memory_file.h"

#include "cluster/environment/slurm.h"
#include "cluster/host/place.h"
#include "cluster/join/rendezvous.h"
#include "wire/limits.h"

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

namespace {

// All of them are numeric, so no resolver is asked.
void check_candidates(const Place &place) {
    std::vector<SocketAddress> found;
    if (place.candidates(found) != DTRAIN_OK) return;
    FUZZ_REQUIRE(!found.empty());
    for (const SocketAddress &address : found) FUZZ_REQUIRE(!endpoint_of(address).host.empty());
}

void check_place(const std::string &text) {
    Place place;
    if (Place::parse(text, "place", place) != DTRAIN_OK) return;
    FUZZ_REQUIRE(!place.endpoints.empty());
    const std::string once = place.text();
    FUZZ_REQUIRE(once.size() < wire::max_address);
    Place again;
    const bool cut = once.back() == '@'; // not even the first one fits
    FUZZ_REQUIRE(cut || Place::parse(once, "place", again) == DTRAIN_OK);
    FUZZ_REQUIRE(cut || (again.host == place.host && again.text() == once));
    check_candidates(place);
    place.host = 0; // here
    check_candidates(place);
}

Identity identity_of(int32_t index, const std::string &rendezvous) {
    Identity identity;
    identity.index = index;
    identity.workers = 2;
    identity.rendezvous = rendezvous;
    return identity;
}

// As member 1 does.
void find(Rendezvous &rendezvous) {
    std::vector<SocketAddress> found;
    Fd none;
    if (rendezvous.open(0, none) != DTRAIN_OK || rendezvous.find(0, found) != DTRAIN_OK) return;
    FUZZ_REQUIRE(!found.empty() && !none);
    (void)rendezvous.meeting();
    (void)rendezvous.is_local();
}

// The text as a rendezvous, as the file where processes meet, and as what rank 0 has passed on.
void check_rendezvous(const std::string &text) {
    static fuzz::MemoryFile file;
    file.assign(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    for (const int32_t index : {0, 1}) {
        Rendezvous one;
        if (one.parse(identity_of(index, text), "", nullptr, nullptr) != DTRAIN_OK) continue;
        if (index == 1 && text.starts_with("at:")) find(one);
    }
    Rendezvous by_file, by_gather;
    FUZZ_REQUIRE(by_file.parse(identity_of(1, "file://" + file.path()), "", nullptr, nullptr) ==
                 DTRAIN_OK);
    find(by_file);
    const auto gather = [](void *arg, const void *, void *all, size_t bytes) -> int32_t {
        const std::string &said = *static_cast<const std::string *>(arg);
        said.copy(static_cast<char *>(all), bytes); // it may fill all of it
        return said.starts_with("\xff") ? 1 : 0;
    };
    FUZZ_REQUIRE(by_gather.parse(identity_of(1, "oob"), "", gather,
                                 const_cast<std::string *>(&text)) == DTRAIN_OK);
    find(by_gather);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text(reinterpret_cast<const char *>(data), size);
    FUZZ_REQUIRE(first_host(text).size() <= text.size());
    check_place(text);
    check_rendezvous(text);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const char *text :
         {"5f3a77e1@10.0.0.4:4711,[fd00::4]:4711",
          "10.0.0.4:4711",
          "localhost:1",
          "gpu[03-05,9],login",
          "node7",
          "a[1-2][3-4]b",
          "tcp://host:29500",
          "tcp://[::1]:1",
          "file:///tmp/rendezvous",
          "oob",
          "pmi",
          "at:1@[fe80::1%eth0]:1",
          "tcp://:0",
          "1@127.0.0.1:1",
          "at:127.0.0.1:1,[::1]:2",
          "at:",
          "x@1:1",
          "dtrain-rendezvous 1@10.0.0.4:4711,127.0.0.1:4711 77 00000000deadbeef 0\n",
          "dtrain-rendezvous 127.0.0.1:4711 77 1234 2\n",
          "dtrain-rendezvous over\n",
          "dtrain-rendezvous no-place 77 1234 2\n",
          "dtrain-rendezvous 127.0.0.1:4711\n",
          "beef 127.0.0.1:4711",
          "beef nowhere",
          "!it could not listen",
          "beef",
          "\xff"})
        out.push_back(bytes_of(text));
    out.push_back(bytes_of("1@" + std::string(300, '1') + ":1"));
    return out;
}
