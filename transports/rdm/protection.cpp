// What option protection means for a device.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/protection.h"

namespace dtrain::rdm {

bool protects_all(const tp::Host &host) {
    char level[16];
    return host.option("protection", level, sizeof level) &&
           (!strcmp(level, "integrity") || !strcmp(level, "encrypted"));
}

tp::Path path_of(const tp::Host &host, bool by_processors, uint64_t machine) {
    const struct {
        char label[16];
        uint64_t machine;
    } text{"dtrain rdm path", by_processors ? machine : 0};
    static_assert(sizeof text == 24);
    uint8_t mac[32];
    tp::Path path{};
    if (host.sign(&text, sizeof text, mac) == DTRAIN_OK) memcpy(path.data(), mac, path.size());
    return path;
}

} // namespace dtrain::rdm
