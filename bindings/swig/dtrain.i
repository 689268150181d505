/* The C API for other languages, from include/dtrain.h alone. Each binding puts its typemaps into
 * <language>/typemaps.i on SWIG's include path, and a layer written by hand above the result.
 * SPDX-License-Identifier: Apache-2.0 */
%module dtrain
%{
#include <dtrain.h>
%}
%include <stdint.i>

#define DTRAIN_API
%ignore INT32_MIN;
%ignore UINT64_MAX;
#define INT32_MIN (-2147483647 - 1)
#define UINT32_C(number) number
#define UINT64_C(number) number ## ULL
#define UINT64_MAX 18446744073709551615ULL
%ignore DTRAIN_STATUS_MIN_;
%ignore dtrain_function_register; /* rules of servers are shared objects of C: option ps.functions */
%ignore dtrain_function;
%warnfilter(451) dtrain_table_params; /* texts that setters keep: see the binding's typemaps */

%include "typemaps.i"
%include "dtrain.h"
