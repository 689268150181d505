// The world in which a job is simulated: its clock, its network, and who runs. It lies in memory
// that all simulated processes share. They are real processes with real threads, of which one
// runs at a time: whoever holds the baton. So nothing in here needs a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <ctime>
#include <span>
#include <sys/types.h>

namespace dtrain::simulator {

inline constexpr int most_processes = 12, most_threads = 128, most_objects = 768, most_pipes = 512,
                     most_descriptors = 384, most_waits = 24, most_faults = 8;
inline constexpr uint32_t ring_bytes = 64 << 10; // what a connection holds in one direction
inline constexpr int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;
inline constexpr int64_t never = INT64_MAX / 4;
inline constexpr int nobody = -1;

// What a thread waits for: its turn, something at an address of its process, or descriptors.
struct Wait {
    enum class Kind : uint8_t { nothing, address, descriptors } kind = Kind::nothing;
    const void *address = nullptr;
    int count = 0;
    struct {
        int object;
        short events;
    } of[most_waits] = {};
};

struct Thread {
    enum class State : uint8_t { unused, ready, blocked, ended } state = State::unused;
    int process = nobody;
    uint32_t baton = 0; // a futex; 1: it may run
    bool woken = false;
    int64_t deadline = never;
    int64_t since = 0; // it waits
    Wait wait = {};
    char name[16] = {};
};

struct Process {
    enum class State : uint8_t { unused, waiting, running, stopped, killed, left } state = {};
    pid_t pid = 0;
    int host = 0;
    int64_t starts_at = 0, stopped_until = 0, killed_at = never;
    int64_t starves_until = 0;
    uint32_t starves_each = 1;              // one in so many allocations fails until then
    int64_t full_until = 0, disk_delay = 0; // its disk; each write and sync takes so long
    uint32_t full_each = 1;                 // one in so many writes fails while it is full
    bool files[most_descriptors] = {};      // on its disk, and being written
    int64_t ahead = 0;                      // its time of day, of that when the world began
    int16_t objects[most_descriptors] = {}; // the number of a descriptor's object; 0: none
    const char *last_call = "";             // a literal, which all processes have at the same place

    bool alive() const { return state == State::running || state == State::stopped; }
};

// One direction of a connection. Bytes arrive in order, each piece at its time.
struct Pipe {
    bool used = false;
    int from = 0, to = 0; // hosts
    uint64_t written = 0, arrived = 0, read = 0;
    int64_t end_at = never, reset_at = never;
    struct Piece {
        uint64_t end;
        int64_t at;
    } pieces[32];
    uint32_t first = 0, count = 0;
};

struct Epoll {
    static constexpr int most = 64;
    int count;
    struct Item {
        int fd, object;
        uint32_t events;
        uint64_t data;
    } items[most];
};

struct Socket {
    enum class State : uint8_t { fresh, listening, connecting, refused, up } state;
    bool datagram;
    int host, peer_host;
    uint16_t port, peer_port;
    int receives, sends; // pipes
    bool sent_end;
    int64_t at; // connecting: when the call arrives; refused and up: from when on
    int error;
    int backlog[64], waiting; // of a listener: objects
};

struct Object {
    enum class Kind : uint8_t { none, event, timer, epoll, socket } kind = Kind::none;
    bool nonblocking = false;
    int references = 0;
    union {
        uint64_t count; // of an event
        struct {
            int64_t at, every;
        } timer;
        Epoll epoll;
        Socket socket;
    };
};

struct Fault {
    enum class Kind : uint8_t {
        kill,
        stop,
        cut,
        power_off,
        slow,
        jump,
        starve,
        full_disk,
        slow_disk,
        count
    } kind = {};
    int64_t at = 0, lasts = 0;
    int who = 0, whom = 0; // a process, two hosts
    int share = 1;         // of allocations or writes that fail: one in so many
    bool done = false, masked = false;
};

struct Link {
    int64_t latency = 0, cut_until = 0;
};

struct World {
    // What this life is like.
    uint64_t seed = 0;
    uint32_t switch_each = 8; // calls, on average
    int64_t call_cost = 0;    // ns
    int64_t empty_cost = 0;   // ns, of a look at descriptors that finds nothing
    int cores = 1;            // as processes are told
    int64_t time_limit = 600 * second;
    uint64_t step_limit = 10'000'000;

    uint64_t random = 0;
    int64_t clock = 1'000 * second;
    uint64_t steps = 0, trace = 0; // the trace: a sum of all that happened
    int running = nobody;          // a thread
    Thread threads[most_threads];
    Process processes[most_processes];
    Object objects[most_objects];
    int objects_used = 1, pipes_used = 0, threads_used = 0; // none beyond has ever been in use
    int64_t next_answer = never;                            // to a socket that connects
    Pipe pipes[most_pipes];
    Link links[most_processes][most_processes];
    Fault faults[most_faults];
    int fault_count = 0;
    uint16_t next_port = 40'000;

    uint64_t ended[64] = {};       // calls, by their status
    uint64_t board[8] = {};        // what the job's processes tell each other
    uint64_t members_of[256] = {}; // of an elastic job's generations: a bit for each process
    double kept[64] = {};          // values of a table, by checkpoint
    uint64_t acknowledged = 0;     // the last checkpoint that was saved
    uint32_t joined = 0;           // processes that know of all others of their job
    uint32_t joining = 0;          // processes that wait for the others of a job
    uint32_t leavers = 0;          // processes that leave their job, perhaps for another one
    uint32_t ended_first_job = 0;  // processes whose first job is over
    uint32_t second_job = 0;       // its processes, once it may begin
    bool failed = false;
    char verdict[4096] = {};
    alignas(4096) unsigned char rings[most_pipes][ring_bytes];
};

extern World *world; // nullptr outside of a life
// What the user asked for, by the environment, which the lives do not see: each call is told on
// stderr; a process that fails a life stops, for a debugger.
inline bool tells_calls = false, stops_for_debugger = false;
extern thread_local int me; // the number of this thread; nobody: it is not simulated
inline bool simulated() { return world != nullptr && me != nobody; }
inline Thread &own() { return world->threads[me]; }
inline Process &own_process() { return world->processes[own().process]; }

inline std::span<Thread> all_threads() {
    return std::span(world->threads, size_t(world->threads_used));
}
inline std::span<Object> all_objects() {
    return std::span(world->objects, size_t(world->objects_used));
}
inline std::span<Pipe> all_pipes() { return std::span(world->pipes, size_t(world->pipes_used)); }
inline Object &object_at(int number) { return world->objects[number]; }

inline int64_t in_ns(const timespec &time) { return int64_t(time.tv_sec) * second + time.tv_nsec; }

uint64_t random_number();
inline uint64_t random_below(uint64_t limit) { return random_number() % limit; }

} // namespace dtrain::simulator
