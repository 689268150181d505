// Texts that say where processes are: places of members, endpoints, rendezvous and lists of hosts.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include "cluster/environment/slurm.h"
#include "cluster/host/place.h"
#include "cluster/join/rendezvous.h"
#include "wire/limits.h"

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text(reinterpret_cast<const char *>(data), size);
    const std::string host = first_host(text);
    FUZZ_REQUIRE(host.size() <= text.size());
    Place place;
    if (Place::parse(text, "place", place) == DTRAIN_OK) {
        FUZZ_REQUIRE(!place.endpoints.empty());
        const std::string once = place.text();
        FUZZ_REQUIRE(once.size() < wire::max_address);
        Place again;
        const bool cut = once.back() == '@'; // not even the first one fits
        FUZZ_REQUIRE(cut || Place::parse(once, "place", again) == DTRAIN_OK);
        FUZZ_REQUIRE(cut || (again.host == place.host && again.text() == once));
    }
    for (const int32_t index : {0, 1}) {
        Identity identity;
        identity.index = index;
        identity.workers = 2;
        identity.rendezvous = text;
        Rendezvous rendezvous;
        (void)rendezvous.parse(identity, "", nullptr, nullptr);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const char *text :
         {"5f3a77e1@10.0.0.4:4711,[fd00::4]:4711", "10.0.0.4:4711", "localhost:1",
          "gpu[03-05,9],login", "node7", "a[1-2][3-4]b", "tcp://host:29500", "tcp://[::1]:1",
          "file:///tmp/rendezvous", "oob", "pmi", "at:1@[fe80::1%eth0]:1", "tcp://:0"})
        out.push_back(bytes_of(text));
    return out;
}
