// Strangers on every port of a running job, wrong secrets, ports in use, nobody there, no
// descriptors left.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "ports.h"

#include <cstddef>
#include <dirent.h>
#include <netinet/in.h>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using dtrain::test::bind_port;
using dtrain::test::free_port;
using ranks::last_error;

std::set<int> open_descriptors() {
    std::set<int> found;
    DIR *folder = opendir("/proc/self/fd");
    REQUIRE(folder != nullptr);
    while (dirent *entry = readdir(folder))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
            found.insert(atoi(entry->d_name));
    closedir(folder);
    return found;
}

struct Address {
    sockaddr_storage bytes;
    socklen_t length;
    int type;
};

// Every socket of this process that strangers can reach: listening, or datagrams under a name.
std::vector<Address> doors() {
    std::vector<Address> found;
    for (int fd : open_descriptors()) {
        Address a = {{}, sizeof a.bytes, 0};
        int listens = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) continue;
        size = sizeof a.type;
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &a.type, &size);
        getsockname(fd, reinterpret_cast<sockaddr *>(&a.bytes), &a.length);
        bool named = a.bytes.ss_family == AF_UNIX && a.length > offsetof(sockaddr_un, sun_path);
        if (listens || (a.type == SOCK_DGRAM && named)) found.push_back(a);
    }
    return found;
}

// Connects, sends rubbish, sometimes stays a while. Everything may be refused.
void pester(const std::vector<Address> &addresses, std::mt19937 &random, std::vector<int> &open) {
    for (const Address &a : addresses) {
        int fd = socket(a.bytes.ss_family, a.type | SOCK_NONBLOCK, 0);
        REQUIRE(fd >= 0);
        (void)connect(fd, reinterpret_cast<const sockaddr *>(&a.bytes), a.length);
        std::vector<char> rubbish(random() % 3000);
        for (char &c : rubbish) c = char(random());
        (void)send(fd, rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
        if (random() % 4 == 0)
            open.push_back(fd);
        else
            close(fd);
    }
}

void garbage(const ranks::Options &options) {
    ranks::run(3, options, [](int rank, dtrain_comm_t *comm) {
        int32_t one = 1, sum = 0;
        // Rank 0 is the stranger, too.
        std::vector<int> open;
        std::mt19937 random(5);
        std::vector<Address> addresses;
        if (rank == 0) addresses = doors();
        if (rank == 0) REQUIRE(!addresses.empty());
        for (int round = 0; round < 40; round++) {
            if (rank == 0) pester(addresses, random, open);
            OK(dtrain_allreduce(comm, &one, &sum, 1, DTRAIN_I32, DTRAIN_SUM, nullptr, nullptr));
            REQUIRE(sum == 3);
            dtrain_comm_t *other = nullptr; // needs connections and windows
            if (round % 8 == 0) {
                OK(dtrain_comm_duplicate(comm, &other));
                OK(dtrain_comm_destroy(other));
            }
        }
        for (int fd : open) close(fd);
    });
}
void garbage_on_all_ports(void **) {
    garbage({});
    garbage({{"transports", "tcp"}});
    garbage({{"secret", "a long enough secret"}});
}

dtrain_status_t join(const ranks::Options &options, const std::string &rendezvous, int rank,
                     int size, int64_t timeout_ns) {
    dtrain_context_t *context = ranks::make_context(options);
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = size;
    params.rank = rank;
    params.timeout_ns = timeout_ns;
    dtrain_comm_t *comm = nullptr;
    dtrain_status_t s = dtrain_comm_create(context, rendezvous.c_str(), &params, &comm);
    std::string text = last_error();
    if (s == DTRAIN_OK) OK(dtrain_comm_destroy(comm));
    OK(dtrain_context_destroy(context)); // a failed join leaves nothing
    if (s != DTRAIN_OK) std::printf("%s\n", text.c_str());
    return s;
}

void wrong_secret(void **) {
    const std::string rendezvous = "tcp://127.0.0.1:" + std::to_string(free_port());
    std::thread first([&] {
        FAILS(DTRAIN_ERR_TIMEOUT, join({{"secret", "one"}}, rendezvous, 0, 2, 1'000'000'000));
    });
    FAILS(DTRAIN_ERR_AUTH, join({{"secret", "two"}}, rendezvous, 1, 2, 10'000'000'000));
    first.join();
}

void port_in_use(void **) {
    const int port = free_port(), held = bind_port(SOCK_STREAM, port);
    const std::string rendezvous = "tcp://127.0.0.1:" + std::to_string(port);
    REQUIRE(listen(held, 1) == 0);
    dtrain_status_t s = join({}, rendezvous, 0, 2, 10'000'000'000);
    close(held);
    assert_true(s == DTRAIN_ERR_BUSY || s == DTRAIN_ERR_IO);
    assert_non_null(strstr(last_error().c_str(), "in use"));
}

void nobody_there(void **) {
    const int port = free_port(), held = bind_port(SOCK_STREAM, port); // which does not listen
    const std::string rendezvous = "tcp://127.0.0.1:" + std::to_string(port);
    FAILS(DTRAIN_ERR_TIMEOUT, join({}, rendezvous, 1, 2, 300'000'000));
    close(held);
    FAILS(DTRAIN_ERR_TIMEOUT, join({}, "file:///tmp/dtrain-no-such-job", 1, 2, 300'000'000));
    FAILS(DTRAIN_ERR_INVALID, join({}, "tcp://127.0.0.1:0", 0, 2, 300'000'000));
}

// With n more descriptors than are open: an error or success, never a leak.
void without_descriptors(void **) {
    join({}, "env", 0, 0, 0); // what is opened once stays open
    rlimit before;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    std::set<int> open = open_descriptors();
    bool worked = false;
    for (rlim_t more = 0; more < 64 && !worked; more++) {
        rlimit tight = {rlim_t(*open.rbegin()) + 1 + more, before.rlim_max};
        REQUIRE(setrlimit(RLIMIT_NOFILE, &tight) == 0);
        dtrain_context_t *context = nullptr;
        dtrain_comm_t *comm = nullptr;
        dtrain_status_t s = dtrain_context_create(DTRAIN_API_VERSION, nullptr, &context);
        if (s == DTRAIN_OK) s = dtrain_comm_create(context, "env", nullptr, &comm);
        std::string text = last_error();
        worked = s == DTRAIN_OK;
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        REQUIRE(open_descriptors() == open);
        if (worked) continue;
        if (text.find("open files") == std::string::npos) std::printf("%s\n", text.c_str());
        REQUIRE(text.find("open files") != std::string::npos);
    }
    assert_true(worked);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(garbage_on_all_ports), cmocka_unit_test(wrong_secret),
        cmocka_unit_test(port_in_use),          cmocka_unit_test(nobody_there),
        cmocka_unit_test(without_descriptors),
    };
    return cmocka_run_group_tests_name("hostile", tests, nullptr, nullptr);
}
