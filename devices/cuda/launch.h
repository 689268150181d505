// Launches a kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/arguments.h"
#include "queue.h"

namespace dtrain::cuda {

inline Status refuse(const dtrain_dv_queue &queue, const char *why) {
    return fail(queue.device.host, DTRAIN_ERR_INVALID, "cuda: %s", why);
}

// `items` is how many elements there are, of which a thread does at least one.
template <class Arguments>
Status launch(dtrain_dv_queue &queue, uint32_t module, Kernel kernel, const Arguments &arguments,
              uint64_t items) {
    static_assert(sizeof arguments <= 4096, "the limit of a kernel's arguments");
    const dtrain_dv_dev &device = queue.device;
    const Function function = device.modules->function(module, kernel);
    if (function == nullptr)
        return device.modules->is_loaded(module)
                   ? refuse(queue, "this dtype has no such op")
                   : fail(device.host, DTRAIN_ERR_STATE,
                          "cuda: the kernels of %s were not prepared", module_texts[module].name);
    const uint64_t blocks = (items + block_threads - 1) / block_threads;
    const auto grid = unsigned(std::min<uint64_t>(blocks, device.most_blocks));
    size_t bytes = sizeof arguments;
    void *extra[] = {reinterpret_cast<void *>(launch_buffer), const_cast<Arguments *>(&arguments),
                     reinterpret_cast<void *>(launch_buffer_size), &bytes,
                     reinterpret_cast<void *>(launch_end)};
    return in_context(
        device,
        [&] {
            return device.driver.launch(function, grid, 1, 1, block_threads, 1, 1, 0, queue.stream,
                                        nullptr, extra);
        },
        "launching a kernel for %lu items", items);
}

// Update rules (update.cpp).
bool has_rule(uint32_t rule);
Status update(dtrain_dv_queue &queue, const dtrain_dv_work_t &work);

} // namespace dtrain::cuda
