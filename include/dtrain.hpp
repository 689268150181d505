// dtrain.hpp - the C API of dtrain.h for C++17 and later; headers only.
// SPDX-License-Identifier: Apache-2.0
//
//     dtrain::Context context;
//     dtrain::Communicator comm = context.join();
//     comm.allreduce(gradient, dtrain::Op::AVG);
//
// What dtrain.h says about a function also holds here; names are those of the other languages.
// HANDLES are objects that can be moved, not copied. Each keeps the objects that it was made from
// alive, so they may be destroyed in any order.
// ERRORS are exceptions, one class for each status (error.hpp): catch TimeoutError, PeerError, ...,
// or Error. If a callback throws, the call that needed it throws its error with the callback's
// exception nested in it.
// ARRAYS are anything with data() and size() whose element type has a dtype, an address with a
// count, or a view that names its dtype at run time: Input, Output. They are never copied. A
// blocking call uses them until it returns, other calls until the request has finished.
// COST: blocking collectives allocate nothing and add some instructions to the C call.
#ifndef DTRAIN_HPP
#define DTRAIN_HPP
#include "dtrain/context.hpp"
#include "dtrain/norms.hpp"
#include "dtrain/records.hpp"
#endif
