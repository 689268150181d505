// The PMI-1 client against a launcher that answers, is silent, or talks nonsense.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/clock.h"
#include "cluster/exchange/pmi.h"

#include <cstring>
#include <map>
#include <mutex>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

int64_t soon(int64_t ns = 5 * second) { return monotonic_clock().now_ns() + ns; }

// A launcher with a socket to each of its processes.
class Launcher {
  public:
    // answer: what it says to a command instead of the right answer, by the command.
    explicit Launcher(size_t processes, std::map<std::string, std::string> answer = {})
        : answer_(std::move(answer)) {
        for (size_t i = 0; i < processes; i++) {
            int pair[2];
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            theirs_.push_back(pair[0]);
            ours_.push_back(pair[1]);
        }
        for (int fd : ours_) threads_.emplace_back([this, fd] { serve(fd); });
    }
    ~Launcher() {
        for (int fd : theirs_) close(fd);
        for (std::thread &thread : threads_) thread.join();
        for (int fd : ours_) close(fd);
    }
    int fd(size_t process) const { return theirs_[process]; }
    int goodbyes() {
        const std::lock_guard lock(mutex_);
        return goodbyes_;
    }

  private:
    void serve(int fd) {
        std::string line;
        char c = 0;
        while (recv(fd, &c, 1, 0) == 1) {
            line += c;
            if (c != '\n') continue;
            say(fd, line);
            line.clear();
        }
    }
    void say(int fd, const std::string &line) {
        const std::lock_guard lock(mutex_);
        const std::string command = line.substr(0, line.find_first_of(" \n"));
        if (const auto own = answer_.find(command); own != answer_.end())
            return send_all(fd, own->second);
        if (command == "cmd=init") send_all(fd, "cmd=response_to_init pmi_version=1 rc=0\n");
        if (command == "cmd=get_my_kvsname") send_all(fd, "cmd=my_kvsname kvsname=kvs_1\n");
        if (command == "cmd=put") {
            values_[word(line, "key")] = word(line, "value");
            send_all(fd, "cmd=put_result rc=0 msg=success\n");
        }
        if (command == "cmd=get") {
            const auto at = values_.find(word(line, "key"));
            send_all(fd, at == values_.end()
                             ? "cmd=get_result rc=-1 msg=key_not_found\n"
                             : "cmd=get_result rc=0 msg=success value=" + at->second + "\n");
        }
        if (command == "cmd=barrier_in" && ++waiting_ == int(ours_.size())) {
            waiting_ = 0;
            for (int one : ours_) send_all(one, "cmd=barrier_out\n");
        }
        if (command == "cmd=finalize") {
            ++goodbyes_;
            send_all(fd, "cmd=finalize_ack\n");
        }
    }
    static std::string word(const std::string &line, const std::string &name) {
        const size_t at = line.find(" " + name + "=") + name.size() + 2;
        return line.substr(at, line.find_first_of(" \n", at) - at);
    }
    // In two halves: lines need not arrive whole.
    static void send_all(int fd, const std::string &text) {
        const size_t half = text.size() / 2;
        (void)send(fd, text.data(), half, MSG_NOSIGNAL);
        (void)send(fd, text.data() + half, text.size() - half, MSG_NOSIGNAL);
    }

    std::mutex mutex_;
    std::map<std::string, std::string> answer_, values_;
    std::vector<int> theirs_, ours_;
    std::vector<std::thread> threads_;
    int waiting_ = 0, goodbyes_ = 0;
};

void all_learn_what_the_first_has_said(void **) {
    Launcher launcher(3);
    {
        Pmi one(launcher.fd(0)), two(launcher.fd(1)), three(launcher.fd(2));
        Pmi *const all[] = {&one, &two, &three};
        const std::string said[] = {"a1 10.0.0.4:4711,[fd00::4]:4711",
                                    std::string("! = \n\0any byte", 14), "the third job"};
        for (const std::string &text : said) {
            std::vector<std::thread> threads;
            std::string got[3] = {text, "", ""};
            Status status[3] = {};
            for (size_t i = 0; i < 3; i++)
                threads.emplace_back([&, i] { status[i] = all[i]->pass(i == 0, got[i], soon()); });
            for (std::thread &thread : threads) thread.join();
            for (size_t i = 0; i < 3; i++) {
                assert_int_equal(status[i], DTRAIN_OK);
                assert_true(got[i] == text);
            }
        }
        assert_int_equal(launcher.goodbyes(), 0);
    }
    assert_int_equal(launcher.goodbyes(), 3);
}

void silence_has_an_end(void **) {
    Launcher launcher(2); // the other process never comes
    Pmi pmi(launcher.fd(0));
    std::string text = "here";
    const int64_t begin = monotonic_clock().now_ns();
    assert_int_equal(pmi.pass(true, text, soon(50 * ms)), DTRAIN_ERR_TIMEOUT);
    assert_true(monotonic_clock().now_ns() - begin < 3 * second);
    assert_non_null(std::strstr(error_text(), "not all processes of the job have come to join"));
    // The answer may still come, so the next call must not take it for its own.
    assert_int_equal(pmi.pass(true, text, soon()), DTRAIN_ERR_IO);
    assert_non_null(std::strstr(error_text(), "DTRAIN_RENDEZVOUS"));
}

void nonsense_is_refused(void **) {
    const std::map<std::string, std::string> nonsense[] = {
        {{"cmd=init", "cmd=response_to_init rc=1\n"}},
        {{"cmd=init", "cmd=barrier_out\n"}},
        {{"cmd=init", std::string(9000, 'x')}},
        {{"cmd=get_my_kvsname", "cmd=my_kvsname\n"}},
        {{"cmd=put", "cmd=put_result rc=-1 msg=full\n"}},
        {{"cmd=get", "cmd=get_result rc=0\n"}},
        {{"cmd=get", "cmd=get_result rc=0 value=xzz\n"}},
        {{"cmd=get", "cmd=get_result rc=0 value=4711\n"}},
    };
    for (const auto &answer : nonsense) {
        Launcher launcher(1, answer);
        Pmi pmi(launcher.fd(0));
        std::string text = "here";
        const Status s = pmi.pass(true, text, soon());
        assert_true(s == DTRAIN_ERR_IO || s == DTRAIN_ERR_CONFIG);
        assert_non_null(std::strstr(error_text(), "(PMI)"));
    }
}

void a_closed_connection_is_an_error(void **) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(pair[1]);
    Pmi pmi(pair[0]);
    std::string text = "here";
    assert_int_equal(pmi.pass(true, text, soon()), DTRAIN_ERR_IO);
    close(pair[0]);
    Pmi closed(pair[0]);
    assert_int_equal(closed.pass(true, text, soon()), DTRAIN_ERR_IO);
    assert_non_null(std::strstr(error_text(), "PMI_FD="));
}

// A child has its parent's socket, but is not the launcher's process.
void a_forked_child_does_not_speak(void **) {
    Launcher launcher(1);
    Pmi pmi(launcher.fd(0));
    std::string text = "here";
    assert_int_equal(pmi.pass(true, text, soon()), DTRAIN_OK);
    const pid_t child = fork();
    if (child == 0) {
        const Status s = pmi.pass(true, text, soon());
        _exit(s == DTRAIN_ERR_STATE && std::strstr(error_text(), "forked") != nullptr ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pmi.pass(true, text, soon()), DTRAIN_OK);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_what_the_first_has_said),
        cmocka_unit_test(silence_has_an_end),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_closed_connection_is_an_error),
        cmocka_unit_test(a_forked_child_does_not_speak),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
