// Joining when something is wrong: each cause is named, on every side that can know it, in time.
// SPDX-License-Identifier: Apache-2.0
#include "job_harness.h"

#include <cstring>

using namespace harness;

namespace {

bool has(const std::string &text, const char *part) {
    bool found = text.find(part) != std::string::npos;
    if (!found) print_error("\"%s\" is not in \"%s\"\n", part, text.c_str());
    return found;
}

void keep_line(void *arg, int32_t, const char *line) {
    static_cast<Recorder *>(arg)->member_lost(-1, DTRAIN_OK, line, false);
}

void sixty_four(void **) {
    auto ranks = make_ranks(64, 0, rendezvous_file("many"));
    int64_t start = monotonic_clock().now_ns();
    join_all(ranks);
    print_message("64 members joined in %.1f ms (noisy)\n",
                  double(monotonic_clock().now_ns() - start) / 1e6);
    for (auto &rank : ranks) {
        assert_string_equal(rank->text.c_str(), "");
        assert_int_equal(rank->job->members().size(), 64);
    }
}

void secrets(void **) {
    struct {
        const char *zero, *one;
        const char *text; // of rank 1
        const char *seen; // by rank 0
    } const cases[] = {
        {"right", "wrong", "different secret", "refused: wrong secret"},
        {"right", "", "this process has none", "other side has none"},
        {"", "right", "the other side has none", "this process has none"},
    };
    for (const auto &c : cases) {
        auto ranks = make_ranks(2, 0, rendezvous_file("secret"));
        ranks[0]->params.secret = c.zero;
        ranks[1]->params.secret = c.one;
        ranks[0]->params.timeout_ns = 2 * second;
        join_all(ranks);
        assert_int_equal(ranks[1]->status, DTRAIN_ERR_AUTH);
        assert_true(has(ranks[1]->text, c.text));
        assert_int_equal(ranks[0]->status, DTRAIN_ERR_TIMEOUT);
        assert_true(
            has(ranks[0]->text, "1 of 2 joined (rank 0); missing rank 1 (seen from 127.0.0.1"));
        assert_true(has(ranks[0]->text, c.seen));
    }
    auto ranks = make_ranks(3, 1, rendezvous_file("secret"));
    for (auto &rank : ranks) rank->params.secret = "the same";
    join_all(ranks);
    for (auto &rank : ranks) assert_int_equal(rank->status, DTRAIN_OK);
}

void wrong_size(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("size"));
    ranks[1]->params.identity.workers = 4;
    ranks[0]->params.timeout_ns = ranks[2]->params.timeout_ns = 2 * second;
    join_all(ranks);
    assert_int_equal(ranks[1]->status, DTRAIN_ERR_CONFIG);
    assert_true(has(ranks[1]->text, "it expects 4 workers and 0 servers, rank 0 expects 3 and 0"));
    for (size_t i : {0u, 2u}) { // everybody is told the same
        assert_int_equal(ranks[i]->status, DTRAIN_ERR_TIMEOUT);
        assert_true(has(ranks[i]->text, "2 of 3 joined (ranks 0,2); missing rank 1 (seen from"));
        assert_true(has(ranks[i]->text, "it expects 4 workers"));
    }
}

void duplicate_rank(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("twice"));
    ranks[2]->params = params_for(1, 3, 0, ranks[0]->params.identity.rendezvous);
    ranks[0]->params.timeout_ns = 2 * second;
    join_all(ranks);
    assert_int_equal(ranks[0]->status, DTRAIN_ERR_TIMEOUT);
    assert_true(has(ranks[0]->text, "missing rank 2 (never seen)"));
    Rank &refused = *ranks[ranks[1]->status == DTRAIN_ERR_CONFIG ? 1 : 2];
    assert_int_equal(refused.status, DTRAIN_ERR_CONFIG);
    assert_true(has(refused.text, "has joined already"));
}

void nobody_there(void **) {
    int port = 0;
    int fd = listen_somewhere(port);
    close(fd);
    for (const std::string &where : {tcp_rendezvous(port), rendezvous_file("never")}) {
        Rank rank;
        rank.params = params_for(1, 2, 0, where);
        rank.params.timeout_ns = 100 * ms;
        int64_t start = monotonic_clock().now_ns();
        assert_int_equal(rank.join(), DTRAIN_ERR_TIMEOUT);
        assert_true(monotonic_clock().now_ns() - start < 2 * second);
        assert_true(
            has(rank.text, where.starts_with("tcp") ? "connection refused" : "does not exist yet"));
    }
}

void port_in_use(void **) {
    int port = 0;
    int fd = listen_somewhere(port);
    Rank rank;
    rank.params = params_for(0, 2, 0, tcp_rendezvous(port));
    assert_int_equal(rank.join(), DTRAIN_ERR_BUSY);
    assert_true(has(rank.text, "the port is in use"));
    close(fd);
}

// What a launcher writes when an elastic job has ended: nobody waits for it until the deadline.
void a_job_that_is_over(void **) {
    const std::string where = rendezvous_file("over");
    FILE *file = std::fopen(where.substr(std::strlen("file://")).c_str(), "w");
    std::fputs("dtrain-rendezvous over\n", file);
    std::fclose(file);
    Rank rank;
    rank.params = params_for(0, 1, 0, where);
    rank.params.identity.elastic = rank.params.identity.newcomer = true;
    assert_int_equal(rank.join(), DTRAIN_ERR_ABORTED);
    assert_true(has(rank.text, "the job is over"));
}

void malformed_rendezvous(void **) {
    for (const char *where : {"", "tcp://", "tcp://host", "tcp://host:port", "tcp://host:70000",
                              "tcp://:1", "file://", "file://relative", "http://x:1", "oob"}) {
        Rank rank;
        rank.params = params_for(0, 2, 0, where);
        assert_int_equal(rank.join(), DTRAIN_ERR_INVALID);
        assert_true(has(rank.text, "rendezvous"));
    }
    Rank rank;
    rank.params = params_for(0, 2, 0, "file:///nonexistent/folder/x");
    assert_int_equal(rank.join(), DTRAIN_ERR_NOT_FOUND);
    assert_true(has(rank.text, "/nonexistent/folder/x"));
}

void inherited_listener(void **) {
    int port = 0;
    int fd = listen_somewhere(port);
    auto ranks = make_ranks(2, 0, tcp_rendezvous(port));
    ranks[0]->params.identity.listen_fd = fd;
    join_all(ranks);
    assert_int_equal(ranks[0]->status, DTRAIN_OK);
    assert_int_equal(ranks[1]->status, DTRAIN_OK);
    close(fd);
    Rank rank;
    rank.params = params_for(0, 2, 0, tcp_rendezvous(port));
    rank.params.identity.listen_fd = 0;
    assert_int_equal(rank.join(), DTRAIN_ERR_CONFIG);
    assert_true(has(rank.text, "DTRAIN_LISTEN_FD=0"));
}

// Garbage, half a handshake, and connections that say nothing cost nobody but themselves.
void scanners(void **) {
    int port = 0;
    int fd = listen_somewhere(port);
    auto ranks = make_ranks(4, 0, tcp_rendezvous(port));
    ranks[0]->params.identity.listen_fd = fd;
    std::thread zero([&] { ranks[0]->join(); });
    std::vector<int> strangers;
    const char *words[] = {"GET / HTTP/1.0\r\n\r\n", "\0\0\0\0\0\0\0\0", "dtrain", "",
                           "SSH-2.0-x\r\n"};
    for (int i = 0; i < 200; i++) {
        int stranger = connect_to(port);
        if (stranger < 0) continue;
        const char *word = words[i % 5];
        assert_true(send(stranger, word, i % 5 == 1 ? 8 : std::strlen(word), MSG_NOSIGNAL) >= 0);
        if (i % 2 == 0)
            strangers.push_back(stranger);
        else
            close(stranger);
    }
    std::vector<std::thread> others;
    for (size_t i = 1; i < 4; i++) others.emplace_back([&, i] { ranks[i]->join(); });
    zero.join();
    for (std::thread &t : others) t.join();
    for (auto &rank : ranks) assert_string_equal(rank->text.c_str(), "");
    for (int stranger : strangers) close(stranger);
    close(fd);
}

void stale_file(void **) {
    std::string where = rendezvous_file("stale");
    std::string path = where.substr(7);
    int port = 0;
    int other = listen_somewhere(port); // some other program has its port now, and never answers
    FILE *file = std::fopen(path.c_str(), "w");
    std::fprintf(file, "dtrain-rendezvous 127.0.0.1:%d 1 0\n", port);
    std::fclose(file);
    Rank one, zero;
    one.params = params_for(1, 2, 0, where);
    zero.params = params_for(0, 2, 0, where);
    std::thread early([&] { one.join(); });
    int stranger = accept(other, nullptr, nullptr); // it was fooled for now
    close(stranger);
    close(other);
    assert_int_equal(zero.join(), DTRAIN_OK);
    early.join();
    assert_string_equal(one.text.c_str(), "");
    assert_int_not_equal(access(path.c_str(), F_OK), 0); // nothing is left
}

std::string content_of(const std::string &path) {
    char text[512] = "";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0) text[0] = 0;
    if (fd >= 0) close(fd);
    return text;
}

// The file of an elastic job stays, and says in its last number whether the job has formed.
void file_of_an_elastic_job(void **) {
    const std::string where = rendezvous_file("elastic"), path = where.substr(7);
    Rank zero, one;
    zero.params = params_for(0, 2, 0, where);
    one.params = params_for(1, 2, 0, where);
    zero.params.identity.elastic = one.params.identity.elastic = true;
    std::thread early([&] { zero.join(); });
    while (content_of(path).empty()) usleep(1000);
    std::string before = content_of(path);
    assert_true(before.ends_with(" 0\n"));
    one.join();
    early.join();
    assert_string_equal((zero.text + one.text).c_str(), "");
    before.replace(before.size() - 3, 3, " 1\n"); // and nothing else has changed
    assert_string_equal(content_of(path).c_str(), before.c_str());
    one.stop();
    zero.stop();
    assert_int_not_equal(access(path.c_str(), F_OK), 0);
}

// An all-gather among threads, as a program might give.
struct Exchange {
    std::mutex mutex;
    std::condition_variable all_here;
    std::vector<std::vector<char>> blobs;
    size_t arrived = 0;
};
struct Seat {
    Exchange *exchange;
    size_t index;
};
int32_t all_gather(void *arg, const void *send, void *recv, size_t length) {
    Exchange *exchange = static_cast<Seat *>(arg)->exchange;
    size_t index = static_cast<Seat *>(arg)->index;
    std::unique_lock lock(exchange->mutex);
    auto *bytes = static_cast<const char *>(send);
    exchange->blobs[index].assign(bytes, bytes + length);
    exchange->arrived++;
    exchange->all_here.notify_all();
    exchange->all_here.wait(lock, [&] { return exchange->arrived == exchange->blobs.size(); });
    for (size_t i = 0; i < exchange->blobs.size(); i++)
        std::memcpy(static_cast<char *>(recv) + i * length, exchange->blobs[i].data(), length);
    return 0;
}

void by_callback(void **) {
    for (bool broken : {false, true}) {
        auto ranks = make_ranks(2, 1, "oob");
        Exchange exchange;
        exchange.blobs.resize(3);
        Seat seats[] = {{&exchange, 0}, {&exchange, 1}, {&exchange, 2}};
        for (size_t i = 0; i < 3; i++) {
            ranks[i]->params.oob = all_gather;
            ranks[i]->params.oob_arg = &seats[i];
        }
        if (broken) ranks[0]->params.listen_address = "192.0.2.1"; // not of this machine
        join_all(ranks);
        for (auto &rank : ranks) assert_int_equal(rank->status == DTRAIN_OK, !broken);
        if (broken) assert_true(has(ranks[1]->text, "rank 0 could not listen"));
    }
    Rank rank;
    rank.params = params_for(1, 2, 0, "oob");
    rank.params.oob = [](void *, const void *, void *, size_t) { return int32_t(7); };
    assert_int_equal(rank.join(), DTRAIN_ERR_IO);
    assert_true(has(rank.text, "callback returned 7"));
}

// One gives up, or dies: the others do not wait for their timeout.
void one_fails(void **) {
    auto ranks = make_ranks(3, 0, rendezvous_file("fails"));
    ranks[1]->params.timeout_ns = 100 * ms; // 200 ms more once it reaches rank 0
    std::vector<std::thread> threads;
    int64_t start = monotonic_clock().now_ns();
    for (size_t i : {0u, 1u}) threads.emplace_back([&, i] { ranks[i]->join(); });
    for (std::thread &t : threads) t.join();
    assert_true(monotonic_clock().now_ns() - start < 5 * second);
    assert_int_equal(ranks[1]->status, DTRAIN_ERR_TIMEOUT);
    assert_int_equal(ranks[0]->status, DTRAIN_ERR_PEER);
    assert_true(has(ranks[0]->text, "rank 1"));
    assert_true(has(ranks[0]->text, "failed while joining"));

    int port = 0;
    int fd = listen_somewhere(port);
    JoinParams params = params_for(1, 3, 0, tcp_rendezvous(port));
    pid_t child = fork_rank(params);
    Rank zero;
    zero.params = params_for(0, 3, 0, tcp_rendezvous(port));
    zero.params.identity.listen_fd = fd;
    Log log; // the first line tells that rank 1 has joined
    Recorder lines;
    log.set_sink(keep_line, &lines);
    zero.params.log = &log;
    std::thread joining([&] { zero.join(); });
    assert_true(
        has(lines.wait_for("waiting"), "2 of 3 joined (ranks 0-1); missing rank 2 (never seen)"));
    kill(child, SIGKILL);
    joining.join();
    waitpid(child, nullptr, 0);
    close(fd);
    assert_int_equal(zero.status, DTRAIN_ERR_PEER);
    assert_true(has(zero.text, "failed while joining: connection closed"));
}

} // namespace

int main() {
    size_t before = open_descriptors();
    const CMUnitTest tests[] = {
        cmocka_unit_test(sixty_four),         cmocka_unit_test(secrets),
        cmocka_unit_test(wrong_size),         cmocka_unit_test(duplicate_rank),
        cmocka_unit_test(nobody_there),       cmocka_unit_test(port_in_use),
        cmocka_unit_test(a_job_that_is_over), cmocka_unit_test(malformed_rendezvous),
        cmocka_unit_test(inherited_listener), cmocka_unit_test(scanners),
        cmocka_unit_test(stale_file),         cmocka_unit_test(file_of_an_elastic_job),
        cmocka_unit_test(by_callback),        cmocka_unit_test(one_fails),
    };
    int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
    if (open_descriptors() != before) return std::fprintf(stderr, "descriptors leaked\n"), 1;
    return failed;
}
