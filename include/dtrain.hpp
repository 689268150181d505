// dtrain.hpp - the C API of dtrain.h for C++17 and later; nothing but headers.
// SPDX-License-Identifier: Apache-2.0
//
//     dtrain::Context context;
//     dtrain::Communicator comm = context.join();
//     comm.allreduce(gradient, dtrain::Op::AVG);
//
// What dtrain.h says of a function holds here, too; names are those of the other languages.
// HANDLES are objects that can be moved, not copied. Each keeps what it was made from, so that they
// may go in any order.
// ERRORS are exceptions, one class for each status (error.hpp): catch TimeoutError, PeerError, ...,
// or Error. What a callback threw comes out of the call that needed it, nested in its error. ARRAYS
// are anything with data() and size() of a type that has a dtype, an address and a count, or a view
// that names its dtype at run time: Input, Output. They are never copied. Of a blocking call they
// are used until it returns, else until the request has finished. COST: blocking collectives
// allocate nothing and add some instructions to the C call.
#ifndef DTRAIN_HPP
#define DTRAIN_HPP
#include "dtrain/context.hpp"
#include "dtrain/norms.hpp"
#include "dtrain/records.hpp"
#endif
