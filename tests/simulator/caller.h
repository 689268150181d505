// Makes a process's calls, and checks how each has ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"
#include "job.h"
#include "scheduler.h"

#include <string>
#include <vector>

namespace dtrain::simulator {

class Caller {
  public:
    Caller(const Plan &its_plan, int own_number) : plan(its_plan), process(own_number) {}
    Caller(const Caller &) = delete;

    dtrain_context_t *make_context();
    // The time of the call that check() is told of begins.
    void begin() { begun_ = world->clock; }
    // Whether it ended well. Where it did not, that must be somebody's fault, within the limit, and
    // the one who is blamed must be one that something befell.
    bool check(dtrain_status_t status, const char *call, int64_t limit);
    // The ranks that have failed are such to which something happened.
    void check_failed(dtrain_comm_t *comm) const;

    const Plan &plan;
    const int process;
    std::vector<int> members; // processes, by rank; empty: not known

  private:
    void check_blame(dtrain_status_t status, const char *call);
    bool may_be_lost(int other) const; // for a reason that others can see
    bool loses_cards() const;          // connections to ranks to which nothing happened
    void check_told(dtrain_status_t status, const char *call) const;
    int64_t begun_ = 0;
};

std::string last_error();
bool names_rank(const std::string &text, int rank); // "rank 4", "ranks 2-5"

} // namespace dtrain::simulator
