// Formats and parses the places where processes listen.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/host/place.h"

#include "base/hash.h"
#include "cluster/host/host.h"
#include "cluster/host/interfaces.h"
#include "wire/limits.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>

namespace dtrain::cluster {
namespace {

bool is_everywhere(const std::string &host) { return host == "0.0.0.0" || host == "::"; }

Status add_addresses(const Endpoint &endpoint, std::vector<SocketAddress> &out) {
    std::vector<SocketAddress> found;
    if (Status s = resolve_numeric(endpoint, found); s != DTRAIN_OK) return s;
    out.insert(out.end(), found.begin(), found.end());
    return DTRAIN_OK;
}

} // namespace

uint64_t host_number() {
    uint64_t number = 1;
    for (char c : host_identity()) number = mix(number, uint8_t(c));
    return mix(number);
}

std::string Place::text() const {
    char head[32];
    std::snprintf(head, sizeof head, "%" PRIx64 "@", host);
    std::string out = head;
    for (size_t i = 0; i < endpoints.size(); i++) {
        const std::string one = join_endpoint(endpoints[i].host, endpoints[i].port);
        if (out.size() + one.size() + 1 >= wire::max_address) break;
        out += (i > 0 ? "," : "") + one;
    }
    return out;
}

Status Place::parse(const std::string &text, const char *what, Place &out) {
    Place place;
    std::string rest = text;
    if (size_t at = text.find('@'); at != std::string::npos) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + at, place.host, 16);
        if (error != std::errc{} || end != text.data() + at)
            return fail(DTRAIN_ERR_INVALID, "%s: \"%.200s\" is not a list of addresses", what,
                        text.c_str());
        rest = text.substr(at + 1);
    }
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        Endpoint one;
        if (Status s = parse_endpoint(rest.substr(0, comma), what, one); s != DTRAIN_OK) return s;
        place.endpoints.push_back(std::move(one));
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    if (place.endpoints.empty()) return fail(DTRAIN_ERR_INVALID, "%s: there is no address", what);
    return out = std::move(place), DTRAIN_OK;
}

Status Place::candidates(std::vector<SocketAddress> &out) const {
    const bool here = host == 0 || host == host_number();
    const std::vector<std::string> own = here ? std::vector<std::string>() : own_addresses();
    out.clear();
    std::string passed;
    for (const Endpoint &one : endpoints) {
        const bool useless = is_loopback(one.host) || std::ranges::find(own, one.host) != own.end();
        if (here || !useless) {
            if (Status s = add_addresses(one, out); s != DTRAIN_OK) return s;
            continue;
        }
        passed += (passed.empty() ? "" : ", ") + one.host;
    }
    if (!out.empty()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_NOT_FOUND,
                "it is on another host, and none of its addresses (%s) leads there from this host; "
                "set option listen.address to one that does",
                passed.c_str());
}

Place place_of(int listener) {
    const Endpoint bound = local_endpoint(listener);
    Place place{host_number(), {}};
    if (!is_everywhere(bound.host)) {
        place.endpoints.push_back(bound);
        return place;
    }
    place.endpoints.push_back({"127.0.0.1", bound.port});
    for (std::string &address : own_addresses())
        if (bound.host == "::" || address.find(':') == std::string::npos)
            place.endpoints.push_back({std::move(address), bound.port});
    return place;
}

} // namespace dtrain::cluster
