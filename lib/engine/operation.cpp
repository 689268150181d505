// The memory in which operations live.
// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

namespace dtrain::engine {

void *Operation::operator new(size_t bytes, Request &completed) {
    return completed.on_heap() ? completed.operation_memory(bytes) : ::operator new(bytes);
}

void Operation::operator delete(Operation *operation, std::destroying_delete_t) {
    const bool of_request = operation->request->on_heap();
    operation->~Operation();
    if (!of_request) ::operator delete(operation);
}

void Operation::dispose() {
    if (!on_stack_) delete this;
}

} // namespace dtrain::engine
