// A table of the last generation of which a server has left, or has another number now: it is
// created anew on all servers, and the workers that hold its parts set them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tables/shared_table.h"

#include <memory>
#include <string>
#include <vector>

namespace dtrain::tables {

class Resettlement {
  public:
    Resettlement(collectives::Communicator &comm, ps::Node &node, const std::string &name)
        : comm_(comm), node_(node), name_(name) {}
    ~Resettlement(); // gives parts that were not settled back to the node
    Resettlement(const Resettlement &) = delete;
    Resettlement &operator=(const Resettlement &) = delete;

    // Collective. params: as wanted now; servers: on how many the table lay.
    Status agree(const ps::TableParams &params, uint32_t servers, int64_t deadline_ns);
    bool needed() const { return needed_; }
    // If it is needed: takes this worker's parts from its node, before the table is created.
    void take();
    // Collective: fills the new table.
    Status settle(const SharedTable &table, int64_t deadline_ns);

  private:
    Status set(const SharedTable &table, int64_t deadline_ns) const;

    collectives::Communicator &comm_;
    ps::Node &node_;
    const std::string name_;
    bool needed_ = false;
    std::vector<std::shared_ptr<const ps::HandedPart>> parts_;
    uint64_t updates_ = 0; // the most of any server
    double rate_ = 0;
};

} // namespace dtrain::tables
