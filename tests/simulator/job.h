// The job that is simulated: what its ranks do, what may befall them, and what must hold then.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program_memory.h"
#include "world.h"

#include <string>
#include <vector>

namespace dtrain::simulator {

// Follows from the seed alone.
struct Plan {
    explicit Plan(uint64_t seed);

    enum class Kind { fixed, elastic } kind = Kind::fixed;
    int ranks, steps;
    bool restarts = false;  // whoever is left starts a second job, from the checkpoints
    bool is_dense = false;  // a wait takes many calls, or each call may be interrupted
    bool manual = false;    // option progress=manual
    bool has_cards = false; // instead of TCP
    bool has_racks = false; // odd processes are in another one than even ones
    bool has_timelines = false;
    bool has_server = false;     // which no fault befalls, as nobody else has the tables
    int newcomers = 0;           // processes that start while the job runs
    std::vector<int64_t> starts; // theirs
    int leaver = nobody;         // a worker that leaves the job once it has done so many steps
    uint64_t leaves_after = 0;
    std::string rendezvous = "tcp://10.0.0.1:7000";
    int64_t join_timeout;
    int64_t op_timeout, silence; // options op.timeout and heartbeat.timeout
    std::vector<std::pair<std::string, std::string>> options;
    std::vector<Fault> faults;
    uint32_t switch_each;
    int64_t call_cost, empty_cost, latency;
    int cores;

    int workers() const { return ranks + newcomers; }
    int processes() const { return workers() + has_server; }
    std::string text() const;
    // Whether a call may fail at all, and whether this process may be blamed.
    bool may_fail() const;
    bool is_suspect(int process) const;
    bool may_be_waited_for(int process) const; // while it lives and does not answer
    int suspects() const;
    bool fills_disks() const;
    int64_t stopped(int process) const; // for how long in all

  private:
    void add_fault(uint64_t random);
    void add_options(uint64_t random);
    bool harms(const Fault &fault) const;
};

void set_up(World &fresh, const Plan &plan, uint32_t masked_faults);
void run_fixed_rank(const Plan &plan, int process);
void run_server(const Plan &plan, int process);
void run_elastic_rank(const Plan &plan, int process);

} // namespace dtrain::simulator
