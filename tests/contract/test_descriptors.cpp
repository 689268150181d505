// What the library opens: nothing among the standard three, which daemons close and open again as
// they like, and nothing that a program which is executed, or a forked child, would hold on to.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "contract/small_job.h"
#include "temporary_folder.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using small_job::Exchange;
using small_job::Rank;
using small_job::Setting;

int report = 2; // where children write what is wrong, when 2 is closed

[[noreturn]] void wrong(const char *what, const char *where, int fd = -1) {
    char name[64], target[256] = "";
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (fd >= 0 && readlink(name, target, sizeof target - 1) < 0) target[0] = 0;
    dprintf(report, "%s: %s (descriptor %d: %s)\n", where, what, fd, target);
    _exit(1);
}

std::vector<int> open_descriptors() {
    std::vector<int> found;
    DIR *folder = opendir("/proc/self/fd");
    while (const dirent *entry = readdir(folder))
        if (const int fd = std::atoi(entry->d_name); entry->d_name[0] != '.' && fd != dirfd(folder))
            found.push_back(fd);
    closedir(folder);
    return found;
}

std::vector<int> before; // open when the job began

bool is_new(int fd) { return std::find(before.begin(), before.end(), fd) == before.end(); }

// The other rank's thread may be about to make one its own: that lasts a moment.
template <class F> bool soon(F &&good) {
    for (int i = 0; i < 100; i++) {
        if (good()) return true;
        usleep(1000);
    }
    return false;
}

void standard_three_are_free(const char *step) {
    for (int fd = 0; fd < 3; fd++)
        // Nothing, or what is there to keep network libraries from it.
        if (!soon([&] { return fcntl(fd, F_GETFD) < 0 || (fcntl(fd, F_GETFL) & O_PATH) != 0; }))
            wrong("one of the standard three is taken", step, fd);
}

// To a child that was just forked. It may have those of libraries that transports use.
void expect_nothing_left(const char *step, bool all_ours) {
    int left = -1;
    const bool good = soon([&] {
        const pid_t child = fork();
        if (child < 0) wrong("fork", step);
        if (child == 0) {
            for (int fd : open_descriptors())
                if (is_new(fd) && all_ours) _exit(fd);
            _exit(0);
        }
        int status = -1;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return false;
        left = WEXITSTATUS(status);
        return left == 0;
    });
    if (!good) wrong("a child holds it", step, left);
}

void expect_closing_on_exec(const char *step) {
    for (int fd : open_descriptors()) {
        const int flags = fcntl(fd, F_GETFD);
        if (is_new(fd) && flags >= 0 && (flags & FD_CLOEXEC) == 0)
            wrong("an executed program would hold it", step, fd);
    }
}

void run_job(const Setting *settings, void (*between)(const char *)) {
    static std::unique_ptr<Rank> ranks[small_job::size];
    auto exchange = std::make_unique<Exchange>();
    std::thread threads[small_job::size];
    for (int r = 0; r < small_job::size; r++) {
        ranks[r] = std::make_unique<Rank>(*exchange, r, settings);
        if (r == 0) ranks[r]->between = between;
    }
    for (int r = 0; r < small_job::size; r++) threads[r] = std::thread([r] { ranks[r]->run(); });
    for (std::thread &thread : threads) thread.join();
    for (auto &rank : ranks)
        if (rank->first() != DTRAIN_OK) {
            dprintf(report, "%s: %s: ", rank->what(), dtrain_status_name(rank->first()));
            wrong(rank->text(), "the job");
        }
}

// body() in a child.
template <class F> void apart(F &&body) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, SIG_DFL);
        alarm(120);
        body();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

struct Network {
    const char *transports, *key, *value;
    bool all_ours; // no library beneath opens anything
};
constexpr Network networks[] = {{"shm,tcp", "tcp.interface", "lo", true},
                                {"tcp", "tcp.interface", "lo", true},
                                {"ofi", "ofi.provider", "net", false},
                                {"ucx", "ucx.tls", "tcp", false}};

bool is_there(const Network &network) {
    const std::string file =
        std::string(PLUGIN_FOLDER "/libdtrain_transport_") + network.transports + ".so";
    return network.all_ours || access(file.c_str(), R_OK) == 0;
}

template <class F> void over_every_network(F &&body) {
    for (const Network &network : networks) {
        if (!is_there(network)) continue;
        print_message("over %s\n", network.transports);
        TemporaryFolder folder;
        const std::string timeline = folder.file("timeline");
        const Setting settings[] = {{"transports", network.transports},
                                    {network.key, network.value},
                                    {"plugin.path", PLUGIN_FOLDER},
                                    {"heartbeat.timeout", "60s"},
                                    {"checkpoint.directory", folder.name.c_str()},
                                    {"timeline", timeline.c_str()},
                                    {"log.level", "error"},
                                    {nullptr, nullptr}};
        apart([&] { body(network, settings); });
    }
}

void the_standard_three_stay_free(void **) {
    over_every_network([](const Network &, const Setting *settings) {
        report = fcntl(2, F_DUPFD_CLOEXEC, 100);
        for (int fd = 0; fd < 3; fd++) close(fd);
        run_job(settings, standard_three_are_free);
        for (int fd = 0; fd < 3; fd++)
            if (fcntl(fd, F_GETFD) >= 0) wrong("something is left there", "the end", fd);
    });
}

// As daemons do: their log goes to 1 and 2, however late.
void a_late_log_cuts_nothing_off(void **) {
    over_every_network([](const Network &, const Setting *settings) {
        report = fcntl(2, F_DUPFD_CLOEXEC, 100);
        for (int fd = 0; fd < 3; fd++) close(fd);
        run_job(settings, [](const char *step) {
            static int log = -1;
            if (log >= 0 || std::strstr(step, "comm_create") == nullptr) return;
            log = fcntl(open("/dev/null", O_WRONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 200);
            for (int fd = 0; fd < 3; fd++) dup2(log, fd);
        });
    });
}

void nothing_is_left_to_a_child(void **) {
    over_every_network([](const Network &network, const Setting *settings) {
        static bool all_ours;
        all_ours = network.all_ours;
        before = open_descriptors();
        run_job(settings, [](const char *step) { expect_nothing_left(step, all_ours); });
    });
}

void nothing_is_left_to_a_program(void **) {
    over_every_network([](const Network &network, const Setting *settings) {
        if (!network.all_ours) return;
        before = open_descriptors();
        run_job(settings, expect_closing_on_exec);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_three_stay_free),
        cmocka_unit_test(a_late_log_cuts_nothing_off),
        cmocka_unit_test(nothing_is_left_to_a_child),
        cmocka_unit_test(nothing_is_left_to_a_program),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
