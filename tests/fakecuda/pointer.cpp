// What the driver says of an address.
// SPDX-License-Identifier: Apache-2.0
#include "fake.h"

#include <cstring>

using namespace fakecuda;

namespace {

struct Known {
    unsigned type = 0;
    bool managed = false, exportable = false;
    int ordinal = -2; // as the real driver says of what it does not know
    uint64_t id = 0;
    uintptr_t base = 0;
    size_t bytes = 0;
};

Known know(uintptr_t p) {
    Known known;
    if (const Allocation *it = find_allocation(p, 1, &known.base)) {
        known.type = memory_device;
        known.managed = it->kind == Kind::managed;
        known.exportable = it->kind == Kind::allocated;
        known.ordinal = it->device;
        known.id = it->id;
        known.bytes = it->bytes;
    } else if (const Pinned *host = find_pinned(p, 1, &known.base)) {
        known.type = memory_host;
        known.ordinal = 0;
        known.id = host->id;
        known.bytes = host->bytes;
    }
    return known;
}

template <class T> void write(void *into, T value) { std::memcpy(into, &value, sizeof value); }

} // namespace

FAKE_API Result cuPointerGetAttributes(unsigned count, PointerAttribute *wanted, void **into,
                                       Address p) {
    ENTER("cuPointerGetAttributes");
    const std::lock_guard lock(fake().mutex);
    const Known known = know(p);
    for (unsigned i = 0; i < count; i++) switch (wanted[i]) {
        case memory_type: write(into[i], known.type); break;
        case is_managed: write(into[i], int(known.managed)); break;
        case device_ordinal: write(into[i], known.ordinal); break;
        case buffer_id: write(into[i], static_cast<unsigned long long>(known.id)); break;
        case range_start: write(into[i], Address{known.base}); break;
        case range_size: write(into[i], known.bytes); break;
        case device_pointer: write(into[i], known.type != 0 ? p : Address{0}); break;
        case is_ipc_capable: write(into[i], int(known.exportable)); break;
        default: return invalid_value;
        }
    return success;
}
