// Runs a function in a child process and stops it at each system call that changes files, or makes
// changes durable, below a folder: in whichever of its threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "crash/disk_log.h"
#include "require.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace crash {

class Traced {
  public:
    // Called when a call begins, and when it has ended well. False: the process is killed, at once
    // and with all of its threads.
    using Watcher = std::function<bool(const DiskCall &call, bool ended)>;

    // root: a path without links. body() runs in the child, and returns its exit status.
    Traced(std::string root, Watcher watcher)
        : root_(std::move(root)), watcher_(std::move(watcher)) {}

    // As waitpid() gives it. The process must not have other children.
    int run(const std::function<int()> &body) {
        child_ = fork();
        REQUIRE(child_ >= 0);
        if (child_ == 0) {
            for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) signal(number, SIG_DFL);
            if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(127);
            raise(SIGSTOP);
            _exit(body());
        }
        int status = 0;
        REQUIRE(waitpid(child_, &status, 0) == child_ && WIFSTOPPED(status));
        REQUIRE(ptrace(PTRACE_SETOPTIONS, child_, nullptr,
                       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) == 0);
        go_on(child_, 0);
        for (;;) {
            const pid_t thread = waitpid(-1, &status, __WALL);
            if (thread < 0 && errno == EINTR) continue;
            REQUIRE(thread > 0);
            if (!WIFSTOPPED(status)) {
                if (thread == child_) return status;
                continue; // another thread has ended
            }
            if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
                if (!look(thread)) REQUIRE(kill(child_, SIGKILL) == 0);
                go_on(thread, 0);
            } else if (WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP) {
                go_on(thread, 0); // it has a new thread, or is one
            } else {
                go_on(thread, WSTOPSIG(status));
            }
        }
    }

    // Whether this process may trace another; if not, what a test says before it ends with 77.
    static constexpr char skipped[] = "skipped: this process may not trace another one (ptrace)";
    static bool works() {
        const pid_t child = fork();
        if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
        int status = -1;
        return waitpid(child, &status, 0) == child && status == 0;
    }

  private:
    static void go_on(pid_t thread, int number) {
        // ESRCH: it was killed meanwhile.
        REQUIRE(ptrace(PTRACE_SYSCALL, thread, nullptr, number) == 0 || errno == ESRCH);
    }

    // False: the watcher does not want more.
    bool look(pid_t thread) {
        __ptrace_syscall_info info;
        if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0)
            return true; // it was killed meanwhile
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            DiskCall call;
            if (!decode(info.entry.nr, info.entry.args, call)) return true;
            begun_[thread] = {call, int(info.entry.args[0])};
            return watcher_(call, false);
        }
        auto begun = begun_.extract(thread);
        if (begun.empty() || info.op != PTRACE_SYSCALL_INFO_EXIT || info.exit.is_error != 0)
            return true;
        auto &[call, fd] = begun.mapped();
        // What it has done, its result tells: a descriptor, or a number of bytes.
        if (call.kind == DiskCall::Kind::create) open_[int(info.exit.rval)] = call.file = files_++;
        if (call.kind == DiskCall::Kind::close) open_.erase(fd);
        if (call.kind == DiskCall::Kind::write) call.data.resize(size_t(info.exit.rval));
        return watcher_(call, true);
    }

    // False: it changes no file below the folder.
    bool decode(uint64_t number, const uint64_t *args, DiskCall &call) {
        using Kind = DiskCall::Kind;
        const int fd = int(args[0]);
        switch (number) {
#ifdef SYS_open
        case SYS_open: return opens(text_at(args[0]), int(args[1]), call);
        case SYS_creat: return opens(text_at(args[0]), O_WRONLY | O_CREAT | O_TRUNC, call);
        case SYS_rename: return moves(Kind::rename, args[0], args[1], call);
        case SYS_link: return moves(Kind::link, args[0], args[1], call);
        case SYS_unlink: return names(Kind::remove, args[0], call);
        case SYS_rmdir: return names(Kind::remove_folder, args[0], call);
        case SYS_mkdir: return names(Kind::make_folder, args[0], call);
#endif
        case SYS_openat: return opens(text_at(args[1]), int(args[2]), call);
        case SYS_renameat:
        case SYS_renameat2: return moves(Kind::rename, args[1], args[3], call);
        case SYS_linkat: return moves(Kind::link, args[1], args[3], call);
        case SYS_mkdirat: return names(Kind::make_folder, args[1], call);
        case SYS_unlinkat:
            return names((args[2] & AT_REMOVEDIR) != 0 ? Kind::remove_folder : Kind::remove,
                         args[1], call);
        case SYS_write:
            if (!uses(Kind::write, fd, call)) return false;
            call.data = bytes_at(args[1], args[2]);
            return true;
        case SYS_close: return uses(Kind::close, fd, call);
        case SYS_fsync:
        case SYS_fdatasync: return uses(Kind::sync, fd, call);
        case SYS_pwrite64:
        case SYS_writev:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_ftruncate:
        case SYS_fallocate: return uses(Kind::other, fd, call);
        case SYS_truncate:
        case SYS_symlinkat: return names(Kind::other, args[0], call);
        default: return false;
        }
    }
    bool below(const std::string &path) const {
        return path == root_ || path.starts_with(root_ + "/");
    }
    bool opens(const std::string &path, int flags, DiskCall &call) {
        if ((flags & O_ACCMODE) == O_RDONLY || !below(path)) return false;
        const bool anew = (flags & O_CREAT) != 0 && (flags & (O_EXCL | O_TRUNC)) != 0;
        call = {anew ? DiskCall::Kind::create : DiskCall::Kind::other, -1, path, {}, {}};
        return true;
    }
    bool names(DiskCall::Kind kind, uint64_t path, DiskCall &call) {
        call = {kind, -1, text_at(path), {}, {}};
        return below(call.path);
    }
    bool moves(DiskCall::Kind kind, uint64_t path, uint64_t to, DiskCall &call) {
        call = {kind, -1, text_at(path), text_at(to), {}};
        return below(call.path) || below(call.to);
    }
    // Of a descriptor: of a file that was created, or of a folder.
    bool uses(DiskCall::Kind kind, int fd, DiskCall &call) {
        char path[PATH_MAX];
        const std::string link = "/proc/" + std::to_string(child_) + "/fd/" + std::to_string(fd);
        const ssize_t length = readlink(link.c_str(), path, sizeof path);
        call = {kind, -1, std::string(path, size_t(std::max<ssize_t>(length, 0))), {}, {}};
        if (!below(call.path)) return false;
        if (const auto open = open_.find(fd); open != open_.end()) {
            call.file = open->second;
            return true;
        }
        call.kind = DiskCall::Kind::sync_folder;
        return kind == DiskCall::Kind::sync && std::filesystem::is_directory(call.path);
    }

    std::string bytes_at(uint64_t address, uint64_t size) const {
        std::string bytes(size, 0);
        const iovec here = {bytes.data(), size}, there = {reinterpret_cast<void *>(address), size};
        REQUIRE(process_vm_readv(child_, &here, 1, &there, 1, 0) == ssize_t(size));
        return bytes;
    }
    std::string text_at(uint64_t address) const {
        std::string text;
        for (char c; text.size() < PATH_MAX; text += c) {
            const iovec here = {&c, 1},
                        there = {reinterpret_cast<void *>(address + text.size()), 1};
            if (process_vm_readv(child_, &here, 1, &there, 1, 0) != 1 || c == 0) break;
        }
        return text;
    }

    const std::string root_;
    const Watcher watcher_;
    pid_t child_ = 0;
    struct Begun {
        DiskCall call;
        int fd; // its first argument, for a call of a descriptor
    };
    std::map<pid_t, Begun> begun_; // by thread
    std::map<int, int> open_;      // numbers of files, by descriptor
    int files_ = 0;
};

// The calls by which a function changes what is below a folder. It must be known to the model.
inline DiskLog log_of(const std::string &root, const std::function<int()> &body) {
    DiskLog log;
    Traced traced(root, [&](const DiskCall &call, bool ended) {
        REQUIRE(call.kind != DiskCall::Kind::other);
        if (ended) log.push_back(call);
        return true;
    });
    REQUIRE(traced.run(body) == 0);
    return log;
}

} // namespace crash
