// Where processes may be reached: in texts, in turn, and beside torch's port.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/host/interfaces.h"
#include "cluster/host/place.h"
#include "cluster/host/ports.h"
#include "cluster/join/dialling.h"
#include "cluster/join/rendezvous.h"
#include "wire/auth.h"
#include "wire/limits.h"

#include "temporary_folder.h"

#include <cstring>
#include <fcntl.h>
#include <functional>
#include <netinet/in.h>
#include <set>
#include <unistd.h>
#include <utility>

using namespace dtrain;
using namespace dtrain::cluster;

// What another process does just before this one removes, moves or links a file.
static std::function<void()> before_file_goes;
static void tell() {
    if (const std::function<void()> told = std::exchange(before_file_goes, nullptr)) {
        told();
        before_file_goes = told;
    }
}
extern "C" int unlink(const char *path) noexcept {
    tell();
    return unlinkat(AT_FDCWD, path, 0);
}
extern "C" int rename(const char *from, const char *to) noexcept {
    tell();
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}
extern "C" int link(const char *from, const char *to) noexcept {
    tell();
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

namespace {

std::vector<std::string> texts(const std::vector<SocketAddress> &addresses) {
    std::vector<std::string> out;
    for (const SocketAddress &address : addresses) {
        const Endpoint one = endpoint_of(address);
        out.push_back(join_endpoint(one.host, one.port));
    }
    return out;
}

void places_travel_as_texts(void **) {
    const Place place{0x5f3a, {{"10.0.0.4", "4711"}, {"fd00::4", "4711"}}};
    assert_string_equal(place.text().c_str(), "5f3a@10.0.0.4:4711,[fd00::4]:4711");
    Place read;
    assert_int_equal(Place::parse(place.text(), "place", read), DTRAIN_OK);
    assert_int_equal(read.host, 0x5f3a);
    assert_string_equal(read.text().c_str(), place.text().c_str());
    Place many;
    for (int i = 0; i < 100; i++) many.endpoints.push_back({"fd00:1111:2222:3333::4", "47111"});
    assert_true(many.text().size() < wire::max_address);
    assert_int_equal(Place::parse(many.text(), "place", read), DTRAIN_OK);
    assert_true(read.endpoints.size() > 4);
    for (const char *bad : {"", "5f3a@", "xyz@10.0.0.4:1", "5f@", "1@10.0.0.4", "1@a:1,,b:2",
                            "1@[[::1]]:80", "1@a[0]:1", "1@]:1"})
        assert_int_equal(Place::parse(bad, "place", read), DTRAIN_ERR_INVALID);
}

void loopback_leads_to_the_own_host_only(void **) {
    Place place{host_number(), {{"127.0.0.1", "7"}, {"192.0.2.9", "7"}}};
    std::vector<SocketAddress> out;
    assert_int_equal(place.candidates(out), DTRAIN_OK);
    assert_int_equal(out.size(), 2);
    place.host++;
    assert_int_equal(place.candidates(out), DTRAIN_OK);
    assert_int_equal(out.size(), 1);
    assert_string_equal(texts(out)[0].c_str(), "192.0.2.9:7");
    place.endpoints.resize(1);
    for (const std::string &own : own_addresses()) place.endpoints.push_back({own, "7"});
    assert_int_equal(place.candidates(out), DTRAIN_ERR_NOT_FOUND);
    assert_non_null(std::strstr(error_text(), "listen.address"));
}

void a_listener_everywhere_is_found_by_both_families(void **) {
    Fd listener, four, six;
    assert_int_equal(listen_everywhere("0", listener), DTRAIN_OK);
    const std::string port = local_endpoint(listener.get()).port;
    const Place place = place_of(listener.get());
    assert_string_equal(place.endpoints[0].host.c_str(), "127.0.0.1");
    assert_string_equal(place.endpoints[0].port.c_str(), port.c_str());
    assert_int_equal(place.endpoints.size(), 1 + own_addresses().size());
    std::vector<SocketAddress> address;
    assert_int_equal(resolve_numeric({"127.0.0.1", port}, address), DTRAIN_OK);
    assert_int_equal(begin_connect(address[0], four), DTRAIN_OK);
    assert_int_equal(resolve_numeric({"::1", port}, address), DTRAIN_OK);
    if (local_endpoint(listener.get()).host == "::")
        assert_int_equal(begin_connect(address[0], six), DTRAIN_OK);
    Fd again;
    assert_int_equal(listen_everywhere(port, again), DTRAIN_ERR_BUSY);
}

std::vector<SocketAddress> some(size_t n) {
    std::vector<SocketAddress> out, one;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(resolve_numeric({"127.0.0." + std::to_string(i + 1), "9"}, one),
                         DTRAIN_OK);
        out.push_back(one[0]);
    }
    return out;
}

void candidates_begin_in_turn(void **) {
    Dialling dial(some(3), 0);
    assert_non_null(dial.next(0));
    assert_null(dial.next(0));
    assert_int_equal(dial.next_deadline(), Dialling::patience);
    assert_non_null(dial.next(Dialling::patience)); // the first is silent
    dial.failed({"b", "9"}, DTRAIN_ERR_NOT_FOUND, "refused");
    assert_null(dial.next(Dialling::patience)); // the first is still under way
    dial.failed({"a", "9"}, DTRAIN_ERR_TIMEOUT, "silent");
    assert_false(dial.over());
    assert_non_null(dial.next(Dialling::patience)); // at once: none is
    dial.failed({"c", "9"}, DTRAIN_ERR_NOT_FOUND, "refused");
    assert_true(dial.over());
    assert_int_equal(dial.next_deadline(), INT64_MAX);
    const DialFailed failed = dial.outcome(7);
    assert_int_equal(failed.status, DTRAIN_ERR_TIMEOUT);
    assert_false(failed.refused);
    assert_string_equal(failed.text.c_str(), "b:9: refused; a:9: silent; c:9: refused");
}

void refused_everywhere_is_refused(void **) {
    Dialling dial(some(2), 0);
    while (dial.next(0) != nullptr) dial.failed({"a", "9"}, DTRAIN_ERR_NOT_FOUND, "refused");
    assert_true(dial.over());
    assert_true(dial.outcome(7).refused);
    Dialling other(some(Dialling::max_candidates + 5), 0);
    size_t begun = 0;
    for (; other.next(0) != nullptr; begun++)
        other.failed({"a", "9"}, DTRAIN_ERR_NOT_FOUND, "refused");
    assert_int_equal(begun, Dialling::max_candidates);
}

void a_wrong_secret_is_not_tried_elsewhere(void **) {
    Dialling dial(some(3), 0);
    assert_non_null(dial.next(0));
    dial.failed({"a", "9"}, DTRAIN_ERR_AUTH, "wrong secret");
    assert_null(dial.next(0));
    assert_true(dial.over());
    assert_int_equal(dial.outcome(7).status, DTRAIN_ERR_AUTH);
}

void ports_from_a_seed(void **) {
    for (int32_t master = 1; master <= 65535; master++) {
        const auto ports = ports_from(uint32_t(master));
        const std::set<uint16_t> all(ports.begin(), ports.end());
        assert_int_equal(all.size(), ports.size());
        assert_true(*all.begin() >= 1024 && *all.rbegin() < 32768);
        for (int32_t near = 0; near < 100; near++)
            assert_false(all.contains(uint16_t(master + near)));
    }
    assert_int_equal(ports_from(29500)[0], 32577); // as docs/JOINING.md says
}

// Two jobs that have come to the same port.
void meetings_tell_jobs_apart(void **) {
    const wire::Credentials secret;
    using Side = wire::Handshake::Side;
    for (uint16_t theirs : {5, 6}) {
        wire::Handshake dialler(Side::dialler, secret, 1, 0, {}, 5);
        wire::Handshake listener(Side::listener, secret, 0, wire::Handshake::anybody, {}, theirs);
        std::vector<uint8_t> to, from;
        assert_int_equal(dialler.advance(from, to), DTRAIN_IN_PROGRESS);
        const Status heard = listener.advance(to, from);
        const Status told = dialler.advance(from, to);
        assert_int_equal(heard, theirs == 5 ? DTRAIN_IN_PROGRESS : DTRAIN_ERR_BUSY);
        assert_int_equal(told, theirs == 5 ? DTRAIN_OK : DTRAIN_ERR_BUSY);
    }
    assert_non_null(std::strstr(error_text(), "another job"));
}

Rendezvous published(const std::string &file) {
    Identity first;
    first.workers = 2;
    first.elastic = true;
    first.rendezvous = "file://" + file;
    Rendezvous rendezvous;
    Fd listener;
    assert_int_equal(rendezvous.parse(first, "127.0.0.1", nullptr, nullptr), DTRAIN_OK);
    assert_int_equal(rendezvous.open(INT64_MAX, listener), DTRAIN_OK);
    return rendezvous;
}

// The meeting that the file names, or 0.
uint16_t found(const std::string &file) {
    Identity second;
    second.workers = 2;
    second.index = 1;
    second.rendezvous = "file://" + file;
    Rendezvous rendezvous;
    std::vector<SocketAddress> addresses;
    assert_int_equal(rendezvous.parse(second, "", nullptr, nullptr), DTRAIN_OK);
    return rendezvous.find(INT64_MAX, addresses) == DTRAIN_OK ? rendezvous.meeting() : 0;
}

// Rank 0 leaves an elastic job, and at any moment the next one writes its own file.
void the_next_one_keeps_its_file(void **) {
    const TemporaryFolder folder;
    const std::string file = folder.file("job");
    for (int others : {0, 1, 2}) {
        Rendezvous old = published(file);
        std::vector<Rendezvous> next;
        before_file_goes = [&] {
            if (int(next.size()) < others) next.push_back(published(file));
        };
        old.close();
        before_file_goes = nullptr;
        assert_int_equal(next.size(), others);
        assert_int_equal(found(file), others == 0 ? 0 : next.back().meeting());
        assert_int_equal(folder.count(), others == 0 ? 0 : 1); // nothing else is left behind
        if (others != 0) next.back().close();
        assert_int_equal(folder.count(), 0);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(places_travel_as_texts),
        cmocka_unit_test(loopback_leads_to_the_own_host_only),
        cmocka_unit_test(a_listener_everywhere_is_found_by_both_families),
        cmocka_unit_test(candidates_begin_in_turn),
        cmocka_unit_test(refused_everywhere_is_refused),
        cmocka_unit_test(a_wrong_secret_is_not_tried_elsewhere),
        cmocka_unit_test(ports_from_a_seed),
        cmocka_unit_test(meetings_tell_jobs_apart),
        cmocka_unit_test(the_next_one_keeps_its_file),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
