// Registered memory for message headers, which are sent as separate pieces beside payloads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "engine/agent.h"
#include "ps/table/buffer.h"

#include <cstddef>
#include <new>
#include <vector>

namespace dtrain::ps {

class HeaderMemory { // all calls need the agent's lock, also the destructor
  public:
    explicit HeaderMemory(const engine::Agent &agent) : agent_(agent) {}

    // The caller keeps it until the destruction of this object. Throws std::bad_alloc.
    template <class T> T *take() {
        static_assert(sizeof(T) % alignof(std::max_align_t) == 0 && sizeof(T) <= slab_bytes);
        if (slabs_.empty() || used_ + sizeof(T) > slab_bytes) add_slab();
        void *place = slabs_.back().at(used_);
        used_ += sizeof(T);
        return new (place) T;
    }

  private:
    static constexpr size_t slab_bytes = 4096;

    void add_slab() {
        Buffer slab;
        if (!slab.allocate(slab_bytes)) throw std::bad_alloc();
        slab.register_once(agent_.devices());
        slabs_.push_back(std::move(slab));
        used_ = 0;
    }

    const engine::Agent &agent_;
    std::vector<Buffer> slabs_;
    size_t used_ = 0; // bytes used of the last slab
};

} // namespace dtrain::ps
