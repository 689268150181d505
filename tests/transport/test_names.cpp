// Names are looked up within the time that there is, whatever the resolver does.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "common/names.h"

#include <arpa/inet.h>
#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <semaphore>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace dtrain::tp;

namespace {

constexpr int64_t ms = 1'000'000, patient = 60'000 * ms;
constexpr char number[] = "192.0.2.7";

int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int find(const char *name, int64_t limit_ns, std::string &out, Resolver *resolver) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int error = find_addresses(name, "9", hints, now_ns() + limit_ns, &found, resolver);
    if (error != 0) return error;
    char text[INET_ADDRSTRLEN];
    const auto *four = reinterpret_cast<const sockaddr_in *>(found->ai_addr);
    out = inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    assert_int_equal(ntohs(four->sin_port), 9);
    freeaddrinfo(found);
    return 0;
}

size_t threads() {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return size_t(std::distance(begin(all), end(all)));
}
void wait_for_threads(size_t n) {
    const int64_t deadline_ns = now_ns() + patient;
    while (threads() > n && now_ns() < deadline_ns) std::this_thread::yield();
    assert_int_equal(threads(), n);
}

// A resolver that answers when it is told to.
std::binary_semaphore may_answer{0};
int slow(const char *, const char *service, const addrinfo *hints, addrinfo **found) {
    may_answer.acquire();
    return getaddrinfo(number, service, hints, found);
}
int never_asked(const char *, const char *, const addrinfo *, addrinfo **) { std::abort(); }

void numbers_need_no_resolver(void **) {
    const size_t before = threads();
    std::string out;
    assert_int_equal(find(number, 0, out, never_asked), 0);
    assert_string_equal(out.c_str(), number);
    assert_int_equal(threads(), before);
}

void what_the_resolver_says_is_the_answer(void **) {
    std::string out;
    assert_int_equal(
        find("name", patient, out,
             [](const char *name, const char *service, const addrinfo *hints, addrinfo **found) {
                 return std::string(name) == "name" ? getaddrinfo(number, service, hints, found)
                                                    : EAI_FAIL;
             }),
        0);
    assert_string_equal(out.c_str(), number);
    const auto unknown = [](const char *, const char *, const addrinfo *, addrinfo **) {
        return EAI_NONAME;
    };
    assert_int_equal(find("name", patient, out, unknown), EAI_NONAME);
    const auto broken = [](const char *, const char *, const addrinfo *, addrinfo **) {
        errno = EMFILE;
        return EAI_SYSTEM;
    };
    errno = 0;
    assert_int_equal(find("name", patient, out, broken), EAI_SYSTEM);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(find(std::string(5000, 'x').c_str(), patient, out, never_asked), EAI_NONAME);
}

void who_waits_gives_up_in_time(void **) {
    const size_t before = threads();
    const int64_t begin_ns = now_ns();
    std::string out;
    assert_int_equal(find("name", 50 * ms, out, slow), EAI_INPROGRESS);
    assert_true(now_ns() - begin_ns >= 50 * ms);
    assert_true(now_ns() - begin_ns < patient);
    assert_int_equal(threads(), before + 1); // and it may be long until it can end
    may_answer.release();
    wait_for_threads(before);
}

// Whoever comes second frees what there is.
void answers_and_deadlines_race(void **) {
    const size_t before = threads();
    const auto resolver = [](const char *, const char *service, const addrinfo *hints,
                             addrinfo **found) {
        usleep(200);
        return getaddrinfo(number, service, hints, found);
    };
    for (int64_t limit_ns = 0; limit_ns < ms; limit_ns += ms / 200) {
        std::string out;
        if (const int error = find("name", limit_ns, out, resolver); error != EAI_INPROGRESS) {
            assert_int_equal(error, 0);
            assert_string_equal(out.c_str(), number);
        }
    }
    wait_for_threads(before);
}

void its_thread_leaves_the_programs_signals_and_descriptors_alone(void **) {
    const int kept = fcntl(0, F_DUPFD_CLOEXEC, 3);
    assert_true(kept > 2);
    close(0);
    std::string out;
    const int error =
        find("name", patient, out,
             [](const char *, const char *service, const addrinfo *hints, addrinfo **found) {
                 sigset_t blocked;
                 pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                 const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
                 close(fd);
                 return fd > 2 && sigismember(&blocked, SIGTERM) == 1
                            ? getaddrinfo(number, service, hints, found)
                            : EAI_FAIL;
             });
    const bool occupied = fcntl(0, F_GETFD) != -1;
    dup2(kept, 0);
    close(kept);
    assert_int_equal(error, 0);
    assert_false(occupied);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    assert_int_equal(sigismember(&blocked, SIGTERM), 0);
}

void a_child_looks_up_for_itself(void **) {
#ifdef __SANITIZE_THREAD__
    skip(); // it lets no child of a process with threads start any
#endif
    const size_t before = threads();
    std::string out;
    assert_int_equal(find("name", ms, out, slow), EAI_INPROGRESS);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        may_answer.release(); // the child's own
        _exit(find("name", patient, out, slow) == 0 && out == number ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    may_answer.release();
    wait_for_threads(before);
}

// Its thread runs the code of a shared object that the program may unload at once.
void it_may_be_unloaded(void **) {
    const size_t before = threads();
    void *module = dlopen(NAMES_MODULE, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(module);
    const auto find_name =
        reinterpret_cast<int (*)(int64_t, Resolver *)>(dlsym(module, "find_name"));
    assert_non_null(find_name);
    assert_int_equal(find_name(now_ns() + ms, slow), EAI_INPROGRESS);
    dlclose(module);
    may_answer.release();
    wait_for_threads(before);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(numbers_need_no_resolver),
        cmocka_unit_test(what_the_resolver_says_is_the_answer),
        cmocka_unit_test(who_waits_gives_up_in_time),
        cmocka_unit_test(answers_and_deadlines_race),
        cmocka_unit_test(its_thread_leaves_the_programs_signals_and_descriptors_alone),
        cmocka_unit_test(a_child_looks_up_for_itself),
        cmocka_unit_test(it_may_be_unloaded),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
