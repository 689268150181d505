// A rendezvous file when the power goes while rank 0 writes it, notes that the job has formed, and
// removes it. Nothing of it is synced, since no process of the job lives on; it must not lead the
// next job's ranks elsewhere: they find an address of the old file or of the new one, or that there
// is none yet; and what the next rank 0 writes there, they find.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/join/rendezvous.h"
#include "crash/states.h"
#include "crash/traced.h"
#include "temporary_folder.h"

#include <cstdio>
#include <fstream>
#include <netinet/in.h>
#include <set>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

Identity member(int index, const std::string &folder) {
    Identity identity;
    identity.workers = 2;
    identity.index = index;
    identity.elastic = true;
    identity.rendezvous = "file://" + folder + "/job";
    return identity;
}

struct Published {
    explicit Published(const std::string &folder) {
        REQUIRE(rendezvous.parse(member(0, folder), "127.0.0.1", nullptr, nullptr) == DTRAIN_OK);
        REQUIRE(rendezvous.open(INT64_MAX, listener) == DTRAIN_OK);
    }
    Rendezvous rendezvous;
    Fd listener;
};

// The meeting and the ports that the file names; "": none yet.
std::string found(const std::string &folder) {
    Rendezvous rendezvous;
    std::vector<SocketAddress> addresses;
    assert_int_equal(rendezvous.parse(member(1, folder), "", nullptr, nullptr), DTRAIN_OK);
    const Status s = rendezvous.find(INT64_MAX, addresses);
    if (s != DTRAIN_OK) assert_int_equal(s, DTRAIN_ERR_NOT_FOUND);
    if (s != DTRAIN_OK) return "";
    std::string text = std::to_string(rendezvous.meeting());
    for (const SocketAddress &address : addresses)
        text += " " + std::to_string(
                          ntohs(reinterpret_cast<const sockaddr_in &>(address.storage).sin_port));
    return text;
}

void a_rendezvous_file_comes_and_goes(void **) {
    const TemporaryFolder folder("/dev/shm"), scratch("/dev/shm");
    Published earlier(folder.name); // of a job that was killed
    std::set<std::string> allowed = {"", found(folder.name)};
    const crash::Tree before = crash::read_tree(folder.name);
    const crash::DiskLog log = crash::log_of(folder.name, [&] {
        Published now(folder.name);
        REQUIRE(now.rendezvous.note_formed() == DTRAIN_OK);
        now.rendezvous.close();
        return 0;
    });
    crash::DiskModel all(folder.name, before); // what the file has at any moment if nothing is lost
    for (const crash::DiskCall &call : log) {
        all.apply(call);
        if (call.kind != crash::DiskCall::Kind::rename) continue;
        crash::write_tree(all.now(), scratch.name);
        allowed.insert(found(scratch.name));
    }
    assert_int_equal(allowed.size(), 3);
    crash::Counts counts;
    const std::string why = crash::check_states(
        folder.name, before, log, 0, {14, 500}, 1,
        [&](const crash::Tree &tree, bool) -> std::string {
            crash::write_tree(tree, scratch.name);
            if (const std::string at = found(scratch.name); !allowed.contains(at))
                return "it leads to " + at;
            Published next(scratch.name);
            const std::string at = found(scratch.name);
            next.rendezvous.close();
            return at.empty() || allowed.contains(at) ? "the next job is not found" : "";
        },
        counts);
    assert_string_equal(why.c_str(), "");
    print_message("%llu states\n", static_cast<unsigned long long>(counts.states));
    assert_true(counts.states > 5);
}

} // namespace

int main() {
    if (!crash::Traced::works()) return std::puts(crash::Traced::skipped), 77;
    const CMUnitTest tests[] = {cmocka_unit_test(a_rendezvous_file_comes_and_goes)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
