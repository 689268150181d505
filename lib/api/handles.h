// Defines the structs behind the opaque handles.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/domains.h"
#include "api/fork.h"
#include "api/timeline.h"
#include "base/options.h"
#include "collectives/communicator/communicator.h"
#include "dtrain.h"
#include "engine/agent.h"
#include "engine/backgrounds.h"
#include "engine/completion_queue.h"
#include "engine/helper.h"
#include "gradients/queue.h"
#include "memory/registration.h"
#include "memory/registry.h"
#include "ps/node/node.h"
#include "transport/host.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

struct dtrain_options {
    dtrain::api::Birth birth;
    std::mutex mutex;
    dtrain::Options options;
};

struct dtrain_context {
    dtrain::api::Birth birth;
    dtrain::Options options;
    dtrain::Log log;
    std::unique_ptr<dtrain::transport::Host> host; // must outlive the agent's devices
    dtrain::accel::Domains domains{options, log};  // must outlive the agent's operations
    dtrain::memory::Registry registry;
    dtrain::ps::FunctionRegistry functions;
    std::unique_ptr<dtrain::engine::Agent> agent;
    std::unique_ptr<dtrain::api::Timeline> timeline;
    std::unique_ptr<dtrain::engine::Backgrounds> backgrounds; // control planes of its jobs
    std::unique_ptr<dtrain::engine::Helper> helper;           // nullptr: progress=manual
    std::atomic<uint32_t> children{0};                        // handles made from this context
    // Held while a job is given the transports' addresses, and while its first table is made.
    std::mutex session_mutex;
};

namespace dtrain::api {

// Counts a handle among its context's children, so that the context is not destroyed first.
class Child {
  public:
    explicit Child(dtrain_context *owner) : context(owner) { context->children++; }
    ~Child() { context->children--; }
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;
    dtrain_context *const context;
    const Birth birth;
};

// DTRAIN_OK, or an error that says what is wrong with the handle.
template <class Handle> Status check_handle(const Handle *handle, const char *what) {
    if (handle == nullptr) return fail(DTRAIN_ERR_INVALID, "%s is NULL", what);
    if (!handle->birth.here())
        return fail(DTRAIN_ERR_STATE,
                    "%s was made before fork() and belongs to the parent process; create another",
                    what);
    return DTRAIN_OK;
}

// Joins the job that `params` describes, beside those of which the context is a member already.
Status join(dtrain_context *context, cluster::SessionParams params,
            std::shared_ptr<cluster::Session> &out);

} // namespace dtrain::api

struct dtrain_comm : dtrain::api::Child {
    using Child::Child;
    std::unique_ptr<dtrain::collectives::Communicator> communicator;
    // Gradient queues on this communicator; aborting it aborts them, too.
    std::mutex gradients_mutex;
    std::vector<std::weak_ptr<dtrain::gradients::Queue>> gradients;
    // Kept as long as the communicator, because tables are numbered in the order of their creation.
    std::shared_ptr<dtrain::ps::Node> node;
    dtrain::ps::Legacy legacy;           // for the node
    std::atomic<uint32_t> graphs{0};     // graphs made on this communicator
    std::atomic<uint32_t> persistent{0}; // persistent requests for it
    std::string changes = "{}";          // of the reform that has made it, as JSON
};

struct dtrain_cq : dtrain::api::Child {
    using Child::Child;
    std::unique_ptr<dtrain::engine::CompletionQueue> queue;
};

struct dtrain_mem : dtrain::api::Child {
    using Child::Child;
    std::unique_ptr<dtrain::memory::Registration> registration; // of host memory, or
    const dtrain::accel::DeviceMemory *on_device = nullptr;     // known to the context's domains
};
