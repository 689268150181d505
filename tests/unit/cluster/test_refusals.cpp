// Refusals: which processes, who hears of it, and what strangers may cost.
// SPDX-License-Identifier: Apache-2.0
#include "job_harness.h"

#include "base/options.h"
#include "temporary_folder.h"
#include "wire/auth.h"
#include "wire/limits.h"

#include <sys/stat.h>

using namespace harness;

namespace {

bool has(const std::string &text, const std::string &part) {
    bool found = text.find(part) != std::string::npos;
    if (!found) print_error("\"%s\" is not in \"%s\"\n", part.c_str(), text.c_str());
    return found;
}

void keep_line(void *arg, int32_t, const char *line) {
    static_cast<Recorder *>(arg)->member_lost(-1, DTRAIN_OK, line, false);
}

// Ranks of a job of three that join, each in a thread, rank 0 with a log.
struct Three {
    explicit Three(const char *name, const char *secret)
        : ranks(make_ranks(3, 0, rendezvous_file(name))) {
        for (auto &rank : ranks) rank->params.secret = secret;
        log.set_sink(keep_line, &lines);
        ranks[0]->params.log = &log;
    }
    void start(size_t i) {
        threads.emplace_back([this, i] { ranks[i]->join(); });
    }
    void finish() {
        for (std::thread &thread : threads) thread.join();
    }
    Log log;
    Recorder lines;
    std::vector<std::unique_ptr<Rank>> ranks;
    std::vector<std::thread> threads;
};

// It knows the secret, so it is of this job, which can never be complete: nobody waits any longer.
void wrong_size_with_the_secret_ends_the_job(void **) {
    Three job("size", "the same");
    for (auto &rank : job.ranks) rank->params.timeout_ns = 100 * second;
    const int64_t start = monotonic_clock().now_ns();
    job.start(0);
    job.start(2);
    assert_true(has(job.lines.wait_for("waiting"), "2 of 3 joined (ranks 0,2)"));
    job.ranks[1]->params.identity.workers = 4;
    job.start(1);
    job.finish();
    assert_true(monotonic_clock().now_ns() - start < 50 * second);
    assert_true(has(job.ranks[1]->text, "it expects 4 workers and 0 servers, rank 0 expects 3"));
    for (auto &rank : job.ranks) assert_int_equal(rank->status, DTRAIN_ERR_CONFIG);
    for (size_t i : {0u, 2u})
        assert_true(has(job.ranks[i]->text,
                        "rank 1 (127.0.0.1) was refused: it expects 4 workers and 0 servers"));
}

// Without one it may be of another job. The others are told at once, and the right one may come.
void wrong_size_of_a_stranger_is_told(void **) {
    Three job("stranger", "");
    job.start(0);
    job.start(2);
    Rank stale;
    stale.params = params_for(1, 4, 0, job.ranks[0]->params.identity.rendezvous);
    assert_int_equal(stale.join(), DTRAIN_ERR_CONFIG);
    assert_true(has(job.lines.wait_for("refused"), "missing rank 1 (seen from 127.0.0.1, refused: "
                                                   "it expects 4 workers"));
    job.start(1);
    job.finish();
    for (auto &rank : job.ranks) assert_string_equal(rank->text.c_str(), "");
}

void a_wrong_secret_is_told_and_ends_nothing(void **) {
    Three job("secret", "right");
    job.start(0);
    Rank stranger;
    stranger.params = params_for(1, 3, 0, job.ranks[0]->params.identity.rendezvous);
    stranger.params.secret = "wrong";
    assert_int_equal(stranger.join(), DTRAIN_ERR_AUTH);
    assert_true(has(job.lines.wait_for("refused"), "refused: wrong secret"));
    job.start(1);
    job.start(2);
    job.finish();
    for (auto &rank : job.ranks) assert_string_equal(rank->text.c_str(), "");
}

void a_duplicate_is_told_who_was_first(void **) {
    Three job("twice", "the same");
    job.start(0);
    job.start(1);
    assert_true(has(job.lines.wait_for("waiting"), "2 of 3 joined (ranks 0-1)"));
    Rank twin;
    twin.params = job.ranks[1]->params;
    assert_int_equal(twin.join(), DTRAIN_ERR_CONFIG);
    const std::string pid = std::to_string(getpid());
    assert_true(has(twin.text, "rank 1 (127.0.0.1 pid " + pid + ") has joined already, and pid " +
                                   pid + " has the same number"));
    assert_true(has(job.lines.wait_for("has joined already"), "refused"));
    job.start(2);
    job.finish();
    for (auto &rank : job.ranks) assert_string_equal(rank->text.c_str(), "");
}

// A connection that has passed the handshake, and then says nothing.
int idle_stranger(int port) {
    const int fd = connect_to(port);
    assert_true(fd >= 0);
    const wire::Credentials secret;
    wire::Handshake handshake(wire::Handshake::Side::dialler, secret, 1, 0, {});
    std::vector<uint8_t> in, out;
    Status s = handshake.advance(in, out);
    while (s == DTRAIN_IN_PROGRESS) {
        assert_int_equal(send(fd, out.data(), out.size(), MSG_NOSIGNAL), out.size());
        out.clear();
        uint8_t bytes[256];
        const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        assert_true(n > 0);
        in.insert(in.end(), bytes, bytes + n);
        s = handshake.advance(in, out);
    }
    assert_int_equal(s, DTRAIN_OK);
    assert_int_equal(send(fd, out.data(), out.size(), MSG_NOSIGNAL), out.size());
    return fd;
}

bool hung_up(int fd, int64_t patience) {
    const int64_t end = monotonic_clock().now_ns() + patience;
    for (;;) {
        pollfd one{fd, POLLIN, 0};
        const int64_t left = std::max<int64_t>(end - monotonic_clock().now_ns(), 0);
        if (poll(&one, 1, int(left / ms)) <= 0) return false;
        char bytes[1024];
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return true;
    }
}

// The first of them listens there.
auto two_patient_ranks(int listener, int port) {
    auto ranks = make_ranks(2, 0, tcp_rendezvous(port));
    ranks[0]->params.identity.listen_fd = listener;
    for (auto &rank : ranks) rank->params.timeout_ns = 100 * second;
    return ranks;
}

void idle_strangers_are_shown_out(void **) {
    int port = 0;
    const int listener = listen_somewhere(port);
    auto ranks = two_patient_ranks(listener, port);
    std::thread zero([&] { ranks[0]->join(); });
    std::vector<int> strangers;
    for (size_t i = 0; i < wire::max_unseated + 20; i++) strangers.push_back(idle_stranger(port));
    for (size_t i = 0; i < 20; i++) // the oldest make room at once
        assert_true(hung_up(strangers[i], 60 * second));
    assert_int_equal(ranks[1]->join(), DTRAIN_OK);
    zero.join();
    assert_int_equal(ranks[0]->status, DTRAIN_OK);
    for (int stranger : strangers) // the others when their time is over
        assert_true(hung_up(stranger, 60 * second));
    for (int stranger : strangers) close(stranger);
    close(listener);
}

Status read_with_mode(mode_t mode, Secret &secret) {
    TemporaryFolder folder;
    const std::string path = folder.file("secret");
    FILE *file = std::fopen(path.c_str(), "w");
    std::fputs("word\n", file);
    std::fclose(file);
    assert_int_equal(chmod(path.c_str(), mode), 0);
    Options options;
    assert_int_equal(options.set("secret.file", path), DTRAIN_OK);
    JoinParams params;
    Status s = read_join_options(options, params);
    secret = params.secret;
    return s;
}

void a_secret_that_others_can_read_is_none(void **) {
    Secret secret;
    for (mode_t mode : {0644, 0640, 0604, 0660, 0666}) {
        assert_int_equal(read_with_mode(mode, secret), DTRAIN_ERR_CONFIG);
        assert_true(has(error_text(), "secret.file"));
        assert_true(has(error_text(), "chmod 600"));
    }
    for (mode_t mode : {0600, 0400}) {
        assert_int_equal(read_with_mode(mode, secret), DTRAIN_OK);
        assert_true(secret.text() == "word");
    }
}

} // namespace

int main() {
    size_t before = open_descriptors();
    const CMUnitTest tests[] = {
        cmocka_unit_test(wrong_size_with_the_secret_ends_the_job),
        cmocka_unit_test(wrong_size_of_a_stranger_is_told),
        cmocka_unit_test(a_wrong_secret_is_told_and_ends_nothing),
        cmocka_unit_test(a_duplicate_is_told_who_was_first),
        cmocka_unit_test(idle_strangers_are_shown_out),
        cmocka_unit_test(a_secret_that_others_can_read_is_none),
    };
    int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
    if (open_descriptors() != before) return std::fprintf(stderr, "descriptors leaked\n"), 1;
    return failed;
}
