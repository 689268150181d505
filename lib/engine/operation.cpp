// SPDX-License-Identifier: Apache-2.0
#include "engine/operation.h"

namespace dtrain::engine {

void *Operation::operator new(size_t bytes, Request &completed) {
    return completed.restart != nullptr ? completed.operation_memory(bytes) : ::operator new(bytes);
}

void Operation::operator delete(Operation *operation, std::destroying_delete_t) {
    const bool on_heap = operation->request->restart == nullptr;
    operation->~Operation();
    if (on_heap) ::operator delete(operation);
}

} // namespace dtrain::engine
