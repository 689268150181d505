// Windows: memory of the process, found by number.
// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <algorithm>
#include <cstdlib>

namespace dtrain::tp::sim {
namespace {

constexpr size_t page = 4096;

struct Mapping {
    Device *device;
    Window *window;
};

Mapping &mapping_of(dtrain_tp_win_t *win) { return *reinterpret_cast<Mapping *>(win); }

void map(Device &device, Window &window, dtrain_tp_win_t **win_p) {
    auto mapping = std::make_unique<Mapping>(Mapping{&device, &window});
    window.mapped.push_back(&device);
    *win_p = reinterpret_cast<dtrain_tp_win_t *>(mapping.release());
}

} // namespace

dtrain_status_t window_create(dtrain_tp_dev_t *dev, uint64_t bytes, uint32_t members,
                              uint32_t member, void *handle, dtrain_tp_win_t **win_p) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    if (!bytes || bytes > max_message || member >= members)
        return device.host.fail(DTRAIN_ERR_INVALID,
                                "sim: a window of %llu bytes for member %u of "
                                "%u is not valid",
                                static_cast<unsigned long long>(bytes), member, members);
    return guard([&]() -> dtrain_status_t {
        const size_t size = (bytes + page - 1) / page * page;
        std::unique_ptr<void, void (*)(void *)> memory(std::aligned_alloc(page, size), &std::free);
        if (!memory) throw std::bad_alloc();
        memset(memory.get(), 0, size);
        auto window = std::make_unique<Window>(
            Window{network.next_id, bytes, members, &device, std::move(memory)});
        auto entry = network.windows.emplace(window->id, window.get()).first;
        try {
            map(device, *window, win_p);
        } catch (const std::bad_alloc &) {
            network.windows.erase(entry);
            throw;
        }
        network.next_id++;
        memcpy(handle, &window->id, sizeof window->id);
        (void)window.release(); // freed when its last mapping is freed
        return DTRAIN_OK;
    });
}

dtrain_status_t window_attach(dtrain_tp_dev_t *dev, dtrain_tp_ep_t *creator, const void *handle,
                              uint64_t bytes, uint32_t members, uint32_t member,
                              dtrain_tp_win_t **win_p) {
    Device &device = from(dev);
    Network &network = device.network;
    std::lock_guard lock(network.mutex());
    uint64_t id;
    memcpy(&id, handle, sizeof id);
    auto found = network.windows.find(id);
    if (found == network.windows.end() || found->second->creator != from(creator).target)
        return device.host.fail(DTRAIN_ERR_NOT_FOUND, "sim: the peer has no window %llu",
                                static_cast<unsigned long long>(id));
    const Window &window = *found->second;
    if (window.bytes != bytes || window.members != members || member >= members)
        return device.host.fail(DTRAIN_ERR_INVALID,
                                "sim: the window has %llu bytes for %u members, not %llu for %u",
                                static_cast<unsigned long long>(window.bytes), window.members,
                                static_cast<unsigned long long>(bytes), members);
    return guard([&]() -> dtrain_status_t {
        map(device, *found->second, win_p);
        return DTRAIN_OK;
    });
}

void *window_address(dtrain_tp_win_t *win) { return mapping_of(win).window->memory.get(); }

void window_ring(dtrain_tp_win_t *win) {
    const Mapping &mapping = mapping_of(win);
    Network &network = mapping.device->network;
    // Both sides modify the counter, so that one comes first: either this side sees the sleeper, or
    // the sleeper sees what was stored before the ring.
    if (network.armed.fetch_add(0, std::memory_order_acq_rel) == 0) return;
    std::lock_guard lock(network.mutex());
    for (Device *device : mapping.window->mapped) network.wake(*device);
}

void window_free(dtrain_tp_win_t *win) {
    std::unique_ptr<Mapping> mapping(&mapping_of(win));
    std::lock_guard lock(mapping->device->network.mutex());
    Window &window = *mapping->window;
    auto &mapped = window.mapped;
    mapped.erase(std::find(mapped.begin(), mapped.end(), mapping->device));
    if (window.creator == mapping->device) mapping->device->network.windows.erase(window.id);
    if (mapped.empty()) delete mapping->window;
}

} // namespace dtrain::tp::sim
