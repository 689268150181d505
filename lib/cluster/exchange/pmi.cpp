// Lines to and from the launcher, each with a deadline.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/exchange/pmi.h"

#include "base/clock.h"
#include "cluster/exchange/hex.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dtrain::cluster {
namespace {

constexpr size_t max_line = 4096; // bytes that a launcher may answer
constexpr int64_t goodbye_ns = 100 * ms;

// MPI speaks on the same socket, and says goodbye itself.
bool mpi_is_running() {
    using Flag = int(int *);
    const auto ask = [](const char *name) {
        int answer = 0;
        auto *function = reinterpret_cast<Flag *>(dlsym(RTLD_DEFAULT, name));
        return function != nullptr && function(&answer) == 0 && answer != 0;
    };
    return ask("MPI_Initialized");
}

// The value of a word "name=value" of the line, or "".
std::string word_of(std::string_view line, std::string_view name) {
    for (size_t at = 0; at < line.size();) {
        const std::string_view word = line.substr(at, line.find(' ', at) - at);
        if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
            return std::string(word.substr(name.size() + 1));
        at += word.size() + 1;
    }
    return "";
}

} // namespace

Pmi::~Pmi() {
    if (store_.empty() || broken_ || begun_by_ != getpid() || mpi_is_running()) return;
    std::string answer;
    (void)ask("cmd=finalize", "finalize_ack", monotonic_clock().now_ns() + goodbye_ns, answer);
}

Status Pmi::pass(bool first, std::string &text, int64_t deadline_ns) {
    const std::lock_guard lock(mutex_);
    if (broken_)
        return fail(DTRAIN_ERR_IO, "an earlier exchange with the launcher (PMI) has failed; start "
                                   "the processes again, or set DTRAIN_RENDEZVOUS");
    if (begun_by_ != 0 && begun_by_ != getpid())
        return fail(DTRAIN_ERR_STATE,
                    "this process was forked from one that the launcher (PMI) has started, so it "
                    "has no rank of its own; set DTRAIN_RENDEZVOUS, DTRAIN_RANK and DTRAIN_SIZE");
    Status s = begin(deadline_ns);
    if (s == DTRAIN_OK) s = pass_round(first, text, deadline_ns);
    broken_ = s != DTRAIN_OK;
    return s == DTRAIN_OK ? s : fail_within(s, "meeting through the launcher (PMI)");
}

Status Pmi::begin(int64_t deadline_ns) {
    if (!store_.empty()) return DTRAIN_OK;
    begun_by_ = getpid();
    std::string answer;
    if (Status s =
            ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline_ns, answer);
        s != DTRAIN_OK)
        return s;
    if (Status s = ask("cmd=get_my_kvsname", "my_kvsname", deadline_ns, answer); s != DTRAIN_OK)
        return s;
    store_ = word_of(answer, "kvsname");
    return store_.empty() ? fail(DTRAIN_ERR_IO, "the launcher names no key-value space")
                          : DTRAIN_OK;
}

Status Pmi::pass_round(bool first, std::string &text, int64_t deadline_ns) {
    const std::string entry =
        "kvsname=" + store_ + " key=dtrain-rendezvous-" + std::to_string(rounds_++);
    std::string answer;
    Status s = DTRAIN_OK;
    if (first)
        s = ask("cmd=put " + entry + " value=x" + to_hex(text), "put_result", deadline_ns, answer);
    if (s == DTRAIN_OK) s = ask("cmd=barrier_in", "barrier_out", deadline_ns, answer);
    if (s == DTRAIN_ERR_TIMEOUT)
        return fail_within(s, "not all processes of the job have come to join");
    if (s == DTRAIN_OK) s = ask("cmd=get " + entry, "get_result", deadline_ns, answer);
    if (s != DTRAIN_OK) return s;
    const std::string value = word_of(answer, "value");
    if (value.empty() || value[0] != 'x' || !from_hex(value.substr(1), text))
        return fail(DTRAIN_ERR_CONFIG, "process 0 has not passed on where it listens");
    return DTRAIN_OK;
}

Status Pmi::ask(const std::string &line, const char *expected, int64_t deadline_ns,
                std::string &answer) {
    Status s = send_line(line);
    if (s == DTRAIN_OK) s = read_line(deadline_ns, answer);
    if (s != DTRAIN_OK) return s;
    const std::string code = word_of(answer, "rc");
    if (word_of(answer, "cmd") == expected && (code.empty() || code == "0")) return DTRAIN_OK;
    return fail(DTRAIN_ERR_IO, "the launcher answers \"%.100s\" to \"%.60s\"", answer.c_str(),
                line.c_str());
}

Status Pmi::send_line(const std::string &line) {
    const std::string whole = line + "\n";
    const ssize_t sent = send(fd_, whole.data(), whole.size(), MSG_NOSIGNAL);
    if (sent == ssize_t(whole.size())) return DTRAIN_OK;
    return fail_errno(sent < 0 ? errno : EIO, "PMI_FD=%d", fd_);
}

Status Pmi::read_line(int64_t deadline_ns, std::string &line) {
    for (;;) {
        if (const size_t end = rest_.find('\n'); end != std::string::npos) {
            line = rest_.substr(0, end);
            rest_.erase(0, end + 1);
            return DTRAIN_OK;
        }
        if (rest_.size() > max_line)
            return fail(DTRAIN_ERR_IO, "the launcher's answer has more than %zu bytes", max_line);
        const int64_t left_ns = std::max<int64_t>(0, deadline_ns - monotonic_clock().now_ns());
        pollfd one{fd_, POLLIN, 0};
        const int ready = poll(&one, 1, int(std::min<int64_t>(left_ns / ms + 1, INT_MAX)));
        if (ready == 0 && left_ns == 0) return fail(DTRAIN_ERR_TIMEOUT, "the launcher is silent");
        if (ready < 0 && errno != EINTR) return fail_errno(errno, "PMI_FD=%d", fd_);
        if (ready <= 0) continue;
        char bytes[1024];
        const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
        if (n == 0) return fail(DTRAIN_ERR_IO, "the launcher has closed the connection");
        if (n < 0 && errno != EINTR) return fail_errno(errno, "PMI_FD=%d", fd_);
        if (n > 0) rest_.append(bytes, size_t(n));
    }
}

namespace {

bool offered(const Variables &env, int32_t rank, int32_t size) {
    int32_t fd = 0, own = 0, of = 0;
    return env.number("PMI_FD", 0, 1 << 20, fd) == DTRAIN_OK &&
           env.number("PMI_RANK", 0, INT32_MAX, own) == DTRAIN_OK && own == rank &&
           env.number("PMI_SIZE", 1, INT32_MAX, of) == DTRAIN_OK && of == size;
}

Status open(const Variables &env, Exchange *&out) {
    int32_t fd = 0;
    if (Status s = env.number("PMI_FD", 0, 1 << 20, fd); s != DTRAIN_OK) return s;
    static Pmi only(fd);
    out = &only;
    return DTRAIN_OK;
}

} // namespace

const ExchangeKind pmi_exchange = {"pmi", "the launcher's PMI (PMI_FD)", offered, open};

} // namespace dtrain::cluster
