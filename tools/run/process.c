/* Forks a process, sets its environment and descriptors, and reports its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void set_environment(const process_t *p, const options_t *o, const rendezvous_t *r) {
    static const char *const own[] = {"DTRAIN_RANK", "DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE",
                                      "DTRAIN_SERVER_INDEX", "DTRAIN_LISTEN_FD"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) unsetenv(own[i]);
    setenv("DTRAIN_RENDEZVOUS", r->url, 1);
    setenv("DTRAIN_ROLE", p->server ? "server" : "worker", 1);
    set_number("DTRAIN_SIZE", o->workers);
    set_number("DTRAIN_SERVERS", o->servers);
    if (o->mixed) setenv("DTRAIN_PS_SERVE", "yes", 1);
    if (r->secret[0] != 0) setenv("DTRAIN_SECRET_FILE", r->secret, 1);
    if (p->server) {
        set_number("DTRAIN_SERVER_INDEX", p->index);
        return;
    }
    set_number("DTRAIN_RANK", p->index);
    set_number("DTRAIN_LOCAL_RANK", p->index);
    set_number("DTRAIN_LOCAL_SIZE", o->workers);
    if (p->index == 0) {
        set_number("DTRAIN_LISTEN_FD", r->listen_fd);
        fcntl(r->listen_fd, F_SETFD, 0); /* survives exec */
    }
}

static void run_program(const process_t *p, const options_t *o) {
    char own[4096], beside[4200];
    if (!p->server) {
        execvp(o->program[0], o->program);
        return;
    }
    char *arguments[] = {(char *)(o->server_program != NULL ? o->server_program : "dtrain-server"),
                         NULL};
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (o->server_program == NULL && length > 0) {
        own[length] = 0;
        *strrchr(own, '/') = 0;
        snprintf(beside, sizeof beside, "%s/dtrain-server", own);
        execv(beside, arguments);
    }
    execvp(arguments[0], arguments);
}

/* Runs in the child and never returns. Writes the errno of a failure to `report`. */
static void become(const process_t *p, const options_t *o, const rendezvous_t *r, pid_t parent,
                   const int fds[3], int report) {
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed launcher leaves no process behind */
    if (getppid() != parent) _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((fds[0] < 0 || dup2(fds[0], 0) == 0) && dup2(fds[1], 1) == 1 && dup2(fds[2], 2) == 2) {
        set_environment(p, o, r);
        run_program(p, o);
    }
    int error = errno;
    if (write(report, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

int process_failed(const process_t *p, const options_t *o, int error) {
    const char *server = o->server_program != NULL ? o->server_program : "dtrain-server";
    output_say("cannot run %s: %s", p->server ? server : o->program[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

int process_start(process_t *p, const options_t *o, const rendezvous_t *r, int input) {
    char name[16];
    int fds[3] = {input, -1, -1}, report[2] = {-1, -1}, error = 0;
    const bool first = !p->server && p->index == 0;
    snprintf(name, sizeof name, p->server ? "s%d" : "%d", p->index);
    if (stream_open(&p->out, STDOUT_FILENO, first && isatty(STDOUT_FILENO), name, &fds[1]) != 0 ||
        stream_open(&p->err, STDERR_FILENO, first && isatty(STDERR_FILENO), name, &fds[2]) != 0 ||
        pipe2(report, O_CLOEXEC) != 0)
        return process_failed(p, o, errno);
    const pid_t parent = getpid();
    p->pid = fork();
    if (p->pid == 0) become(p, o, r, parent, fds, report[1]);
    if (p->pid < 0) {
        error = errno;
        p->pid = 0;
    }
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    close(report[1]);
    p->report = report[0];
    if (error == 0) return 0;
    close(p->report);
    return process_failed(p, o, error);
}

int process_confirm(process_t *p) {
    int error = 0;
    ssize_t n;
    while ((n = read(p->report, &error, sizeof error)) < 0 && errno == EINTR) continue;
    close(p->report);
    return n == (ssize_t)sizeof error ? error : 0;
}

bool process_poll(process_t *p) {
    siginfo_t info = {0};
    if (p->pid == 0 || p->ended) return false;
    if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return false;
    p->ended = true;
    p->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    p->status = p->signal == 0 ? info.si_status : 128 + p->signal;
    return true;
}

void process_signal(const process_t *p, int number) {
    if (p->pid != 0) kill(-p->pid, number);
}

void process_name(const process_t *p, char *name, size_t size) {
    snprintf(name, size, "%s %d", p->server ? "server" : "rank", p->index);
}
