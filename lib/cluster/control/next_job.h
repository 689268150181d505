// A process's place in the next generation of an elastic job.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "cluster/host/identity.h"
#include "wire/control.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::cluster {

struct NextJob {
    Identity identity;
    bool stays = false; // otherwise it is not in the next generation
    // Labels of the newcomers, and why members of this generation are not in the next.
    std::vector<std::string> came, went;
    std::vector<int32_t> workers; // old members by new rank; -1: a newcomer
    std::vector<int32_t> servers;
    std::shared_ptr<Fd> listener; // of the new rank 0: where the others find it
};

// own: of this process, a member or a newcomer.
NextJob next_job(const Identity &own, const wire::Moved &moved);

// The changes of two generations, one after the other: `later` counts from the one that `earlier`
// has made.
void add_changes(const NextJob &earlier, NextJob &later);

} // namespace dtrain::cluster
