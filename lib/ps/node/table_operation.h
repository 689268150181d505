// An asynchronous operation of the engine that carries out one call on a table.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/operation.h"
#include "ps/client/client.h"

namespace dtrain::ps {

class Node;

class TableOperation final : public engine::Operation {
  public:
    TableOperation(engine::Request *completed, Node &node, Transfer &&transfer);

    void start(engine::Agent &agent) override;
    int advance(engine::Agent &agent) override;
    void fail(engine::Agent &agent, const engine::Outcome &outcome, const char *text) override;
    void stalled(engine::Agent &agent) override;
    void timed_out(engine::Agent &agent) override;
    void describe(trace::Record &record) const override;

  private:
    uint64_t bytes() const; // of values

    Node &node_;
    Transfer transfer_;
    engine::Agent *agent_ = nullptr;
    bool done_ = false;
    int64_t begun_ns_ = 0, line_ns_ = 0; // of wait_ready: when it began, and when it logs next
};

} // namespace dtrain::ps
