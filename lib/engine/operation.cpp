// How operations begin, and the memory in which they live.
// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

#include "engine/agent.h"

namespace dtrain::engine {

void *Operation::operator new(size_t bytes, Request &completed) {
    return completed.on_heap() ? completed.operation_memory(bytes) : ::operator new(bytes);
}

void Operation::operator delete(Operation *operation, std::destroying_delete_t) {
    const bool of_request = operation->request->on_heap();
    operation->~Operation();
    if (!of_request) ::operator delete(operation);
}

void Operation::take(Agent &agent) { agent.begin(this); }

void Operation::dispose() {
    if (!on_stack_) delete this;
}

} // namespace dtrain::engine
