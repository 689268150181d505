// What any thread may put into the agent's inbox.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::engine {

class Agent;

// An operation that begins, or an event from outside (a member was lost). The thread that has the
// agent's lock, or gets it next, takes all that was put there, in that order.
class Posted {
  protected:
    Posted() = default;
    Posted(const Posted &) = delete;
    Posted &operator=(const Posted &) = delete;
    ~Posted() = default;

  private:
    friend class Agent;
    // Under the lock; throws nothing. It is not used by the agent afterwards.
    virtual void take(Agent &agent) = 0;
    Posted *next_posted_ = nullptr; // link in the inbox
};

} // namespace dtrain::engine
