// The kernels of one dtype, which DT_NAME names; DT_FORMAT is its class of formats.h.
// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each dtype, by nvcc to ptx/<dtype>.ptx (build_ptx) and by g++ for tests.
#include "loops.h"

#define DT_INTEGER  1
#define DT_FLOATING 2
#define DT_HALF     3 // floating, with conversions to and from f32

#define DT_JOIN(name, what)          DT_JOIN_THESE(name, what)
#define DT_JOIN_THESE(name, what)    dtrain_##name##_##what
#define DT_OF_DTYPE(what, Arguments) DT_NAMED(DT_JOIN(DT_NAME, what), Arguments)
#define DT_NAMED(name, Arguments)    DT_KERNEL(name, Arguments)

namespace dtrain::cuda {

using Format = DT_FORMAT;

DT_OF_DTYPE(sum, ReduceArguments) { reduce<Sum<Format>>(a); }
DT_OF_DTYPE(avg, ReduceArguments) { reduce<Mean<Format>>(a); }
DT_OF_DTYPE(prod, ReduceArguments) { reduce<Prod<Format>>(a); }
DT_OF_DTYPE(min, ReduceArguments) { reduce<Min<Format>>(a); }
DT_OF_DTYPE(max, ReduceArguments) { reduce<Max<Format>>(a); }
DT_OF_DTYPE(scale, ScaleArguments) {
    using Divided = DividedBy<Format>;
    map<Format::Stored>(a.dst, a.src, a.count, Divided{decltype(Divided::divisor)(a.divisor)});
}
#if DT_KIND == DT_INTEGER
DT_OF_DTYPE(band, ReduceArguments) { reduce<BitAnd<Format>>(a); }
DT_OF_DTYPE(bor, ReduceArguments) { reduce<BitOr<Format>>(a); }
DT_OF_DTYPE(bxor, ReduceArguments) { reduce<BitXor<Format>>(a); }
#else
DT_OF_DTYPE(multiply, MultiplyArguments) {
    map<Format::Stored>(a.dst, a.src, a.count, Times<Format>{Format::Lane(a.factor)});
}
DT_OF_DTYPE(weigh, WeighArguments) { weigh<Format>(a); }
#endif
#if DT_KIND == DT_HALF
DT_OF_DTYPE(widen, ConvertArguments) { convert<Format, F32>(a); }
DT_OF_DTYPE(narrow, ConvertArguments) { convert<F32, Format>(a); }
DT_OF_DTYPE(round, RoundArguments) { round_at_random<Format>(a); }
#endif

} // namespace dtrain::cuda
