// What connections cost that have not proven themselves, and that none of them pushes out a member.
// SPDX-License-Identifier: Apache-2.0
#include "job_harness.h"

#include "cluster/join/connection.h"
#include "cluster/join/strangers.h"
#include "flood.h"
#include "wire/auth.h"
#include "wire/limits.h"

#include <cstdlib>
#include <malloc.h>
#include <new>
#include <set>
#include <sys/resource.h>

namespace {

std::atomic<size_t> held = 0; // bytes of all that was allocated by new

void *take(size_t length) {
    void *out = std::malloc(length);
    if (out == nullptr) throw std::bad_alloc();
    held += malloc_usable_size(out);
    return out;
}
void give_back(void *piece) {
    if (piece != nullptr) held -= malloc_usable_size(piece);
    std::free(piece);
}

} // namespace

void *operator new(size_t length) { return take(length); }
void *operator new[](size_t length) { return take(length); }
void operator delete(void *piece) noexcept { give_back(piece); }
void operator delete[](void *piece) noexcept { give_back(piece); }
void operator delete(void *piece, size_t) noexcept { give_back(piece); }
void operator delete[](void *piece, size_t) noexcept { give_back(piece); }

using namespace harness;
using dtrain::test::Flood;

namespace {

constexpr size_t most_bytes = 512;       // of a connection that has not proven itself
constexpr size_t node_bytes = 56;        // its place in the driver's map
constexpr size_t private_key_bytes = 32; // in secret memory, which is not counted here
using Side = wire::Handshake::Side;

std::vector<uint8_t> hello_of(int32_t member, const wire::Credentials &own) {
    wire::Handshake handshake(Side::dialler, own, member, 0, wire::Nonce{1});
    std::vector<uint8_t> in, out;
    assert_int_equal(handshake.advance(in, out), DTRAIN_IN_PROGRESS);
    return out;
}

// A connection to nobody in particular: what it says is `said`.
struct Stranger {
    explicit Stranger(const wire::Credentials &own) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        other = ends[1];
        const size_t before = held;
        connection = std::make_unique<Connection>(Fd(ends[0]), Side::listener, own, 0,
                                                  wire::Handshake::anybody, INT64_MAX);
        at_first = before;
    }
    ~Stranger() { close(other); }
    Status says(const uint8_t *bytes, size_t length) {
        assert_int_equal(send(other, bytes, length, MSG_NOSIGNAL), length);
        std::vector<wire::Message> messages;
        return connection->ready_to_read(messages);
    }
    size_t cost() const { return held - at_first + node_bytes + private_key_bytes; }

    int other = -1;
    size_t at_first = 0;
    std::unique_ptr<Connection> connection;
};

void a_stranger_costs_little_at_every_moment(void **) {
    for (const char *secret : {"", "a secret"}) {
        const wire::Credentials own{secret, protection::Level::encrypted};
        std::vector<uint8_t> said = hello_of(1, own);
        said.resize(said.size() + 32); // and a proof, but for its last byte
        for (const size_t piece : {size_t{1}, size_t{33}, said.size()}) {
            Stranger stranger(own);
            size_t most = stranger.cost();
            for (size_t at = 0; at < said.size(); at += piece) {
                const size_t length = std::min(piece, said.size() - at);
                assert_true(stranger.says(said.data() + at, length) >= 0);
                most = std::max(most, stranger.cost());
            }
            assert_true(stranger.connection->introduced());
            print_message("%zu bytes at a time, %s secret: %zu bytes\n", piece,
                          *secret == 0 ? "without" : "with a", most);
            assert_true(most <= most_bytes);
        }
    }
}

// Keys cost time, too.
void keys_are_made_for_those_who_speak(void **) {
    const wire::Credentials own{"a secret", protection::Level::encrypted};
    const std::vector<uint8_t> hello = hello_of(1, own);
    Stranger stranger(own);
    assert_int_equal(stranger.says(hello.data(), hello.size() - 1), DTRAIN_OK);
    const size_t silent = stranger.cost();
    assert_false(stranger.connection->introduced());
    assert_int_equal(stranger.says(hello.data() + hello.size() - 1, 1), DTRAIN_OK);
    assert_true(stranger.connection->introduced());
    assert_true(stranger.cost() + hello.size() > silent + sizeof(protection::Offer));
}

void the_oldest_silent_one_gives_way_first(void **) {
    Strangers strangers(3);
    for (Link link = 2; link < 2 + 2 * Link(wire::min_strangers); link += 2) {
        assert_false(strangers.full());
        strangers.add(link);
    }
    assert_true(strangers.full());
    assert_int_equal(strangers.to_give_way(), 2);
    strangers.introduced(4);
    strangers.introduced(2);
    assert_int_equal(strangers.to_give_way(), 6);
    strangers.remove(6);
    assert_false(strangers.full());
    assert_int_equal(strangers.to_give_way(), 8);
    for (Link link = 8; link < 2 + 2 * Link(wire::min_strangers); link += 2) strangers.remove(link);
    assert_int_equal(strangers.oldest_silent(), 0);
    assert_int_equal(strangers.to_give_way(), 2); // in the order in which they came
    strangers.remove(2);
    assert_int_equal(strangers.to_give_way(), 4);
    strangers.remove(4);
    assert_int_equal(strangers.to_give_way(), 0);
    Strangers many(1000); // members of one job do not push out each other
    for (Link link = 2; link <= 2000; link += 2) {
        assert_false(many.full());
        many.add(link);
    }
    assert_true(many.full());
}

bool hung_up(int fd, int64_t patience) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, int(patience / ms)) > 0;
}

// Rank 0 of two, which waits for rank 1.
struct Waiting {
    Waiting() {
        listener = listen_somewhere(port);
        ranks = make_ranks(2, 0, tcp_rendezvous(port));
        ranks[0]->params.identity.listen_fd = listener;
        for (auto &rank : ranks) rank->params.timeout_ns = 100 * second;
        zero = std::thread([this] { ranks[0]->join(); });
    }
    void finish() {
        assert_int_equal(ranks[1]->join(), DTRAIN_OK);
        zero.join();
        assert_int_equal(ranks[0]->status, DTRAIN_OK);
        close(listener);
    }
    int port = 0, listener = -1;
    std::vector<std::unique_ptr<Rank>> ranks;
    std::thread zero;
};

// Someone in the middle of a handshake is not pushed out by those who say nothing.
void a_crowd_does_not_push_out_who_has_spoken(void **) {
    Waiting job;
    const wire::Credentials none;
    const int member = connect_to(job.port);
    wire::Handshake handshake(Side::dialler, none, 1, 0, wire::Nonce{1});
    std::vector<uint8_t> in, out;
    assert_int_equal(handshake.advance(in, out), DTRAIN_IN_PROGRESS);
    assert_int_equal(send(member, out.data(), out.size(), MSG_NOSIGNAL), out.size());
    uint8_t answer[256];
    const ssize_t n = recv(member, answer, sizeof answer, 0);
    assert_true(n > 0);
    std::vector<int> crowd;
    for (size_t i = 0; i < 3 * wire::min_strangers; i++) crowd.push_back(connect_to(job.port));
    // All but the newest make room at once, long before their time is over.
    for (size_t i = 0; i < 2 * wire::min_strangers; i++)
        assert_true(hung_up(crowd[i], 60 * second));
    in.assign(answer, answer + n);
    out.clear();
    assert_int_equal(handshake.advance(in, out), DTRAIN_OK);
    assert_int_equal(send(member, out.data(), out.size(), MSG_NOSIGNAL), out.size());
    close(member);
    job.finish();
    // The others go when their time is over.
    for (int fd : crowd) assert_true(hung_up(fd, 60 * second));
    for (int fd : crowd) close(fd);
}

// The local ports from which something tries to connect to this one and gets no answer.
void add_unanswered(int port, std::set<std::string> &found) {
    std::FILE *file = std::fopen("/proc/self/net/tcp", "r");
    assert_non_null(file);
    char line[300], wanted[16], local[32], remote[32], state[8];
    std::snprintf(wanted, sizeof wanted, ":%04X", unsigned(port));
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, " %*d: %31s %31s %7s", local, remote, state) == 3 &&
            std::strstr(remote, wanted) != nullptr && std::strcmp(state, "02") == 0)
            found.insert(local);
    std::fclose(file);
}

// A full queue answers nobody, and the system would ask again after a second, then after two more.
void who_is_not_answered_tries_anew(void **) {
    int port = 0;
    const int listener = listen_somewhere(port);
    assert_int_equal(listen(listener, 0), 0);
    const int filler = connect_to(port); // a queue of 0 has room for one
    assert_true(filler >= 0);
    Rank rank;
    rank.params = params_for(1, 2, 0, tcp_rendezvous(port));
    rank.params.timeout_ns = 100 * second;
    std::thread joins([&] { rank.join(); });
    std::set<std::string> ports;
    while (ports.size() < 2) {
        add_unanswered(port, ports);
        usleep(1000);
    }
    Rank zero; // takes the queue over, and makes it longer
    zero.params = params_for(0, 2, 0, tcp_rendezvous(port));
    zero.params.identity.listen_fd = listener;
    zero.params.timeout_ns = 100 * second;
    assert_int_equal(zero.join(), DTRAIN_OK);
    joins.join();
    assert_int_equal(rank.status, DTRAIN_OK);
    close(filler);
    close(listener);
}

// Joins while connections come in very fast; descriptors: how many more than now there may be.
void join_in_a_flood(rlim_t descriptors) {
    int port = 0;
    const int listener = listen_somewhere(port);
    Flood flood(port, 20'000);
    JoinParams params = params_for(1, 2, 0, tcp_rendezvous(port));
    params.timeout_ns = 100 * second;
    while (flood.opened() < 4 * wire::min_strangers) usleep(1000); // the queue is full of them
    const pid_t one = fork_rank(params);
    Rank zero;
    zero.params = params_for(0, 2, 0, tcp_rendezvous(port));
    zero.params.identity.listen_fd = listener;
    zero.params.timeout_ns = 100 * second;
    rlimit before{};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const size_t open = open_descriptors();
    rlimit tight{std::min<rlim_t>(before.rlim_cur, open + descriptors), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    const Status status = zero.join();
    print_message("%llu connections came meanwhile\n",
                  static_cast<unsigned long long>(flood.opened()));
    // The flood goes on, and so does the job: it holds no more than it may, and closes the others.
    const uint64_t then = flood.opened();
    while (flood.opened() < then + 10 * wire::min_strangers) usleep(1000);
    const size_t now = open_descriptors();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(zero.text.c_str(), "");
    assert_int_equal(status, DTRAIN_OK);
    assert_true(now <= open + wire::min_strangers + 16);
    assert_false(zero.seen.has("lost"));
    flood.stop();
    zero.stop();
    kill(one, SIGKILL);
    waitpid(one, nullptr, 0);
    close(listener);
}
void a_job_forms_in_a_flood(void **) { join_in_a_flood(10'000); }
// The oldest stranger gives up its descriptor.
void a_job_forms_in_a_flood_with_few_descriptors(void **) { join_in_a_flood(24); }

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_costs_little_at_every_moment),
        cmocka_unit_test(keys_are_made_for_those_who_speak),
        cmocka_unit_test(the_oldest_silent_one_gives_way_first),
        cmocka_unit_test(a_crowd_does_not_push_out_who_has_spoken),
        cmocka_unit_test(who_is_not_answered_tries_anew),
        cmocka_unit_test(a_job_forms_in_a_flood),
        cmocka_unit_test(a_job_forms_in_a_flood_with_few_descriptors),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
