// The thread that runs next, and the clock, which moves on when none can.
// SPDX-License-Identifier: Apache-2.0
#include "scheduler.h"
#include "network.h"
#include "real.h"

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dtrain::simulator {

World *world = nullptr;
thread_local int me = nobody;

namespace {

void futex(uint32_t *word, int operation, uint32_t value) {
    const auto call = REAL(syscall);
    call(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

bool is_there(const Thread &thread) {
    const Process &process = world->processes[thread.process];
    return process.state == Process::State::running ||
           process.state == Process::State::waiting; // its first thread begins it
}

bool is_ready(const Thread &thread) {
    if (thread.state == Thread::State::ready) return is_there(thread);
    if (thread.state != Thread::State::blocked || !is_there(thread)) return false;
    if (thread.woken || thread.deadline <= world->clock) return true;
    if (thread.wait.kind != Wait::Kind::descriptors) return false;
    for (int i = 0; i < thread.wait.count; i++) {
        const auto &one = thread.wait.of[i];
        if (ready_events(one.object) & (one.events | POLLERR | POLLHUP)) return true;
    }
    return false;
}

// When time can be passed to at once, as nobody can run before.
int64_t next_time() {
    int64_t next = next_arrival();
    for (const Thread &thread : all_threads())
        if (thread.state == Thread::State::blocked && is_there(thread))
            next = std::min(next, thread.deadline);
    for (const Process &process : world->processes)
        if (process.state == Process::State::stopped) next = std::min(next, process.stopped_until);
    for (int i = 0; i < world->fault_count; i++)
        if (!world->faults[i].done) next = std::min(next, world->faults[i].at);
    return next;
}

const char *text_of(const Wait &wait) {
    switch (wait.kind) {
    case Wait::Kind::nothing: return "for time";
    case Wait::Kind::address: return "for another thread";
    case Wait::Kind::descriptors: return "for descriptors";
    }
    return "";
}

void describe_threads(char *text, size_t room) {
    size_t used = strlen(text);
    for (const Thread &thread : all_threads()) {
        if (thread.state == Thread::State::unused || thread.state == Thread::State::ended) continue;
        const Process &process = world->processes[thread.process];
        if (!process.alive() || used >= room) continue;
        used += size_t(snprintf(
            text + used, room - used,
            "\n  process %d, thread \"%s\" %s %s since %.6f s%s, last call %s", thread.process,
            thread.name, thread.state == Thread::State::ready ? "runs, waited" : "waits",
            text_of(thread.wait), double(thread.since) / second,
            process.state == Process::State::stopped ? " (stopped)" : "", process.last_call));
    }
}

// Their places are not used again: the process takes a moment to end, in which it would take a
// baton that is for another thread.
void forget_threads(int process) {
    for (Thread &thread : all_threads())
        if (thread.process == process) thread.state = Thread::State::ended;
}

void happen(Fault &fault) {
    fault.done = true;
    if (fault.masked) return;
    Process &process = world->processes[fault.who];
    switch (fault.kind) {
    case Fault::Kind::power_off:
        for (int host = 0; host < most_processes; host++)
            if (host != process.host) cut(process.host, host, never);
        [[fallthrough]];
    case Fault::Kind::kill:
        if (!process.alive()) return;
        process.state = Process::State::killed;
        process.killed_at = world->clock;
        close_all_of(process);
        forget_threads(fault.who);
        if (simulated() && own().process == fault.who) return; // the caller ends it
        if (process.pid > 0) kill(process.pid, SIGKILL);       // 0: it has failed, and is gone
        return;
    case Fault::Kind::stop:
        if (process.state != Process::State::running) return;
        process.state = Process::State::stopped;
        process.stopped_until = world->clock + fault.lasts;
        return;
    case Fault::Kind::cut: return cut(fault.who, fault.whom, world->clock + fault.lasts);
    case Fault::Kind::slow:
        world->links[fault.who][fault.whom].latency = fault.lasts;
        world->links[fault.whom][fault.who].latency = fault.lasts;
        return;
    case Fault::Kind::jump: process.ahead += fault.lasts; return;
    case Fault::Kind::starve:
        process.starves_until = world->clock + fault.lasts;
        process.starves_each = uint32_t(fault.share);
        return;
    case Fault::Kind::full_disk:
        process.full_until = world->clock + fault.lasts;
        process.full_each = uint32_t(fault.share);
        return;
    case Fault::Kind::slow_disk: process.disk_delay = fault.lasts; return;
    case Fault::Kind::count: return;
    }
}

void let_happen() {
    for (int i = 0; i < world->fault_count; i++)
        if (!world->faults[i].done && world->faults[i].at <= world->clock) happen(world->faults[i]);
    for (Process &process : world->processes)
        if (process.state == Process::State::stopped && process.stopped_until <= world->clock)
            process.state = Process::State::running;
    settle_network();
}

bool all_have_left() {
    for (const Process &process : world->processes)
        if (process.alive() || process.state == Process::State::waiting) return false;
    return true;
}

// The next to run; nobody: the life is over.
int choose() {
    for (;;) {
        int ready[most_threads], count = 0;
        for (int i = 0; i < world->threads_used; i++)
            if (is_ready(world->threads[i])) ready[count++] = i;
        if (count > 0) return ready[random_below(uint64_t(count))];
        if (all_have_left()) return nobody;
        const int64_t next = next_time();
        if (next >= never) fail_life("nobody can ever run again");
        if (next > 1'000 * second + world->time_limit) fail_life("the job has not ended");
        world->clock = std::max(world->clock, next);
        let_happen();
    }
}

// To whoever comes next. False: that is the caller again, which keeps it.
bool hand_over() {
    const Process &own = own_process();
    const int next = choose();
    if (next == me) return false;
    world->running = next;
    if (next != nobody) {
        Thread &thread = world->threads[next];
        __atomic_store_n(&thread.baton, 1, __ATOMIC_SEQ_CST);
        futex(&thread.baton, FUTEX_WAKE, INT_MAX); // one that was killed may wait there, too
    }
    if (own.state != Process::State::killed) return true;
    kill(own.pid, SIGKILL);
    for (;;) pause();
}

void begin_turn() {
    Thread &thread = own();
    thread.state = Thread::State::ready;
    thread.wait.kind = Wait::Kind::nothing;
    Process &process = own_process();
    if (process.state == Process::State::waiting) process.state = Process::State::running;
    world->trace = (world->trace ^ uint64_t(me)) * 0x100000001B3u + uint64_t(world->clock);
}

void switch_away() {
    own().since = world->clock;
    if (hand_over()) return take_baton();
    begin_turn();
}

void block(const Wait &wait, int64_t deadline) {
    Thread &thread = own();
    thread.wait = wait;
    thread.deadline = deadline;
    thread.woken = false;
    thread.state = Thread::State::blocked;
    switch_away();
    thread.deadline = never;
}

} // namespace

uint64_t random_number() { // splitmix64
    uint64_t x = world->random += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

void step(const char *call) {
    own_process().last_call = call;
    world->clock += int64_t(random_below(uint64_t(2 * world->call_cost))) + 1;
    world->trace = (world->trace ^ uint64_t(call[0] + 256 * me)) * 0x100000001B3u;
    if (tells_calls)
        fprintf(stderr, "%.9f %d.%d %s\n", double(world->clock) / second, own().process, me, call);
    if (++world->steps > world->step_limit) fail_life("the job has not ended after so many calls");
    let_happen();
    if (own_process().state != Process::State::running || random_below(world->switch_each) == 0)
        switch_away();
}

void find_nothing() {
    if (world->empty_cost > 0) world->clock += int64_t(random_below(uint64_t(world->empty_cost)));
}

bool wait_at(const void *address, int64_t deadline) {
    Wait wait;
    wait.kind = Wait::Kind::address;
    wait.address = address;
    block(wait, deadline);
    return own().woken;
}

void wake(const void *address, bool all) {
    int waiting[most_threads], count = 0;
    for (int i = 0; i < world->threads_used; i++) {
        const Thread &thread = world->threads[i];
        if (thread.state == Thread::State::blocked && thread.process == own().process &&
            thread.wait.kind == Wait::Kind::address && thread.wait.address == address &&
            !thread.woken)
            waiting[count++] = i;
    }
    if (count == 0) return;
    if (!all) return void(world->threads[waiting[random_below(uint64_t(count))]].woken = true);
    for (int i = 0; i < count; i++) world->threads[waiting[i]].woken = true;
}

void wait_for(const Wait &wait, int64_t deadline) { block(wait, deadline); }
void sleep_until(int64_t deadline) { block({}, deadline); }
void yield() { switch_away(); }

int add_thread(int process, const char *name) {
    for (int i = 0; i < most_threads; i++) {
        Thread &thread = world->threads[i];
        if (thread.state != Thread::State::unused) continue; // one that has ended may yet be joined
        thread = {};
        world->threads_used = std::max(world->threads_used, i + 1);
        thread.process = process;
        thread.state = Thread::State::ready;
        snprintf(thread.name, sizeof thread.name, "%s", name);
        return i;
    }
    return nobody;
}

void take_baton() {
    Thread &thread = own();
    while (__atomic_exchange_n(&thread.baton, 0, __ATOMIC_SEQ_CST) == 0)
        futex(&thread.baton, FUTEX_WAIT, 0);
    begin_turn();
}

void begin_with(int thread) {
    world->running = thread;
    __atomic_store_n(&world->threads[thread].baton, 1, __ATOMIC_SEQ_CST);
    futex(&world->threads[thread].baton, FUTEX_WAKE, INT_MAX);
}

void end_thread() {
    own().state = Thread::State::ended;
    const Thread *ended = &own();
    wake(ended, true);
    hand_over();
    me = nobody;
}

void end_process() {
    Process &process = own_process();
    process.state = Process::State::left;
    close_all_of(process);
    forget_threads(own().process);
    hand_over();
    _exit(0);
}

void fail_life(const char *format, ...) {
    if (!world->failed) {
        world->failed = true;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(world->verdict, 1024, format, arguments);
        va_end(arguments);
        describe_threads(world->verdict, sizeof world->verdict);
    }
    if (stops_for_debugger) kill(own_process().pid, SIGSTOP);
    _exit(3);
}

} // namespace dtrain::simulator
