/* Forks a child, sets its environment and descriptors, and reports its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_environment(const recipe_t *recipe) {
    for (size_t i = 0; i < recipe->variables.count; i++) {
        char *line = recipe->variables.list[i];
        if (strchr(line, '=') != NULL)
            putenv(line);
        else
            unsetenv(line);
    }
}

static void run_program(const recipe_t *recipe) {
    char own[4096], beside[4200];
    char **arguments = recipe->arguments.list;
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (recipe->beside && length > 0) {
        own[length] = 0;
        *strrchr(own, '/') = 0;
        snprintf(beside, sizeof beside, "%s/%.99s", own, arguments[0]);
        execv(beside, arguments);
    }
    execvp(arguments[0], arguments);
}

/* Runs in the child and never returns. Writes a failure to `report`. */
static void become(const recipe_t *recipe, pid_t parent, const int fds[3], int inherited,
                   int report) {
    sigset_t none;
    failure_t failure = {FAILED_START, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed launcher leaves no process behind */
    if (getppid() != parent) _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((fds[0] < 0 || dup2(fds[0], 0) == 0) && (fds[1] < 0 || dup2(fds[1], 1) == 1) &&
        (fds[2] < 0 || dup2(fds[2], 2) == 2) &&
        (inherited < 0 || fcntl(inherited, F_SETFD, 0) == 0)) {
        failure.step = FAILED_DIRECTORY;
        if (recipe->directory == NULL || chdir(recipe->directory) == 0) {
            failure.step = FAILED_PROGRAM;
            set_environment(recipe);
            run_program(recipe);
        }
    }
    failure.error = errno;
    if (write(report, &failure, sizeof failure) < 0) _exit(126);
    _exit(127);
}

failure_t child_start(child_t *child, const recipe_t *recipe, const int fds[3], int inherited) {
    int report[2];
    *child = (child_t){.report = -1};
    if (pipe2(report, O_CLOEXEC) != 0) return (failure_t){FAILED_START, errno};
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(recipe, parent, fds, inherited, report[1]);
    const int error = errno;
    close(report[1]);
    if (pid > 0) {
        child->pid = pid;
        child->report = report[0];
        return (failure_t){0};
    }
    close(report[0]);
    return (failure_t){FAILED_START, error};
}

failure_t child_confirm(child_t *child) {
    failure_t failure = {0};
    ssize_t n;
    while ((n = read(child->report, &failure, sizeof failure)) < 0 && errno == EINTR) continue;
    close(child->report);
    child->report = -1;
    return n == (ssize_t)sizeof failure ? failure : (failure_t){0};
}

bool child_poll(child_t *child) {
    siginfo_t info = {0};
    if (child->pid == 0 || child->ended) return false;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return false;
    child->ended = true;
    child->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    child->status = child->signal == 0 ? info.si_status : 128 + child->signal;
    return true;
}

void child_signal(const child_t *child, int number) {
    if (child->pid != 0) kill(-child->pid, number);
}

void child_release(child_t *child) {
    if (child->pid == 0) return;
    child_signal(child, SIGKILL);
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
}

int failure_report(failure_t failure, const recipe_t *recipe, const char *where) {
    const char *program = recipe->arguments.list[0], *why = strerror(failure.error);
    if (failure.step == FAILED_DIRECTORY)
        output_say("cannot run %s%s: the folder %s cannot be entered: %s", program, where,
                   recipe->directory, why);
    else
        output_say("cannot run %s%s: %s", program, where, why);
    return failure.step == FAILED_PROGRAM && failure.error == ENOENT ? 127 : 126;
}
