// Forks the processes of a life, and waits for their ends.
// SPDX-License-Identifier: Apache-2.0
#include "life.h"
#include "scheduler.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr unsigned real_limit_s = 20; // for a program that runs without calling anything

// Pages that are not used take no memory.
World *make_world() {
    void *memory = mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("the simulator's memory");
        _exit(2);
    }
    return new (memory) World;
}

// One thread runs at a time, and the next begins sooner where the last one ran.
void stay_on(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

void begin_process(int number, int thread, const std::function<void(int)> &program) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // cards access each other's memory
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        signal(fault, SIG_DFL); // not cmocka's
    me = thread;
    take_baton();
    program(number);
    for (int fd = 0; fd < most_descriptors; fd++)
        if (own_process().objects[fd] != 0)
            fail_life("process %d has left descriptor %d open", number, fd);
    for (const Thread &other : all_threads())
        if (&other != &own() && other.process == number && other.state != Thread::State::unused &&
            other.state != Thread::State::ended)
            fail_life("process %d has left thread \"%s\" behind", number, other.name);
    end_process();
}

void end_all() {
    for (const Process &process : world->processes)
        if (process.pid > 0) kill(process.pid, SIGKILL);
}

void note_end(pid_t pid, int status) {
    for (int i = 0; i < most_processes; i++) {
        Process &process = world->processes[i];
        if (process.pid != pid) continue;
        process.pid = 0;
        const bool good = (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                          process.state == Process::State::killed;
        if (good || world->failed) return;
        world->failed = true;
        snprintf(world->verdict, sizeof world->verdict,
                 "process %d ended by %s %d; its last call was %s", i,
                 WIFSIGNALED(status) ? "signal" : "code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), process.last_call);
    }
}

void await_end() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    alarm(real_limit_s);
    for (uint64_t steps = 0;;) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR && std::exchange(steps, world->steps) != world->steps) {
            alarm(real_limit_s);
        } else if (pid < 0 && errno == EINTR) {
            if (!world->failed)
                snprintf(world->verdict, sizeof world->verdict,
                         "thread %d has run for too long; its process last called %s",
                         world->running,
                         world->processes[world->threads[std::max(world->running, 0)].process]
                             .last_call);
            world->failed = true;
        } else if (pid < 0) {
            break;
        } else {
            note_end(pid, status);
        }
        if (world->failed) end_all();
    }
    alarm(0);
}

} // namespace

Outcome live(uint64_t seed, int processes, const std::function<void(World &)> &prepare,
             const std::function<void(int)> &program) {
    world = make_world();
    world->seed = world->random = seed;
    const int64_t begin = world->clock;
    for (auto &row : world->links)
        for (Link &link : row) link.latency = 20 * us;
    prepare(*world);
    fflush(nullptr);
    const int core = std::max(sched_getcpu(), 0);
    for (int i = 0; i < processes; i++) {
        Process &process = world->processes[i];
        process.host = i;
        process.state = Process::State::waiting;
        const int thread = add_thread(i, "main");
        if (process.starts_at > begin) {
            world->threads[thread].state = Thread::State::blocked;
            world->threads[thread].deadline = process.starts_at;
        }
        const pid_t pid = fork();
        if (pid == 0) {
            stay_on(core);
            begin_process(i, thread, program);
        }
        process.pid = std::max(pid, 0); // by the parent only
        if (pid < 0 && !world->failed) {
            snprintf(world->verdict, sizeof world->verdict, "process %d cannot be made: %s", i,
                     strerror(errno));
            world->failed = true;
        }
    }
    if (world->failed) end_all();
    begin_with(0);
    await_end();
    Outcome out{!world->failed, world->verdict,       world->trace,
                world->steps,   world->clock - begin, {}};
    std::ranges::copy(world->ended, out.ended.begin());
    munmap(world, sizeof(World));
    world = nullptr;
    return out;
}

} // namespace dtrain::simulator
