// Computes the extents from the layouts of the buffers.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/call/extents.h"

#include "collectives/call/layout.h"

namespace dtrain::collectives {
namespace {

using Extents = std::vector<accel::Extent>;

Extents whole(uint64_t bytes) { return bytes > 0 ? Extents{{0, bytes}} : Extents{}; }

Extents blocks(const CollectiveSpec &spec, const Layout &layout) {
    Extents runs;
    layout.each_run(0, spec.size, [&](uint64_t offset, uint64_t bytes) {
        runs.push_back({offset, bytes});
    });
    return runs;
}

} // namespace

Extents read_extents(const CollectiveSpec &spec) {
    const bool root = spec.rank == spec.root;
    switch (spec.kind) {
    case Kind::broadcast: return whole(root ? output_bytes(spec) : 0);
    case Kind::scatter: return root ? blocks(spec, Layout(spec)) : Extents{};
    case Kind::reduce_scatter:
    case Kind::alltoall: return blocks(spec, Layout(spec));
    default: return whole(input_bytes(spec));
    }
}

Extents written_extents(const CollectiveSpec &spec) {
    const bool root = spec.rank == spec.root;
    switch (spec.kind) {
    case Kind::broadcast: return whole(root ? 0 : output_bytes(spec));
    case Kind::gather: return root ? blocks(spec, Layout(spec)) : Extents{};
    case Kind::allgather: return blocks(spec, Layout(spec));
    case Kind::alltoall: return blocks(spec, Layout::of_output(spec));
    default: return whole(output_bytes(spec));
    }
}

} // namespace dtrain::collectives
