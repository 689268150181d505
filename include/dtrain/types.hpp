// Names of the C API's constants, views of memory, and durations.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_TYPES_HPP
#define DTRAIN_TYPES_HPP
#include "error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#if __cplusplus >= 202002L
#include <ranges>
#endif

namespace dtrain {
inline namespace cxx {

enum class DType : uint32_t {
    F32 = DTRAIN_F32,
    F64 = DTRAIN_F64,
    F16 = DTRAIN_F16,
    BF16 = DTRAIN_BF16,
    I8 = DTRAIN_I8,
    U8 = DTRAIN_U8,
    I16 = DTRAIN_I16,
    U16 = DTRAIN_U16,
    I32 = DTRAIN_I32,
    U32 = DTRAIN_U32,
    I64 = DTRAIN_I64,
    U64 = DTRAIN_U64
};
enum class Op : uint32_t {
    SUM = DTRAIN_SUM,
    AVG = DTRAIN_AVG,
    PROD = DTRAIN_PROD,
    MIN = DTRAIN_MIN,
    MAX = DTRAIN_MAX,
    BAND = DTRAIN_BAND,
    BOR = DTRAIN_BOR,
    BXOR = DTRAIN_BXOR,
    ADASUM = DTRAIN_ADASUM
};
enum class Rule : uint32_t {
    // from dtrain.h, by ./dev generate
    ADD = DTRAIN_RULE_ADD,
    ASSIGN = DTRAIN_RULE_ASSIGN,
    SGD = DTRAIN_RULE_SGD,
    MOMENTUM = DTRAIN_RULE_MOMENTUM,
    ADAGRAD = DTRAIN_RULE_ADAGRAD,
    ADAM = DTRAIN_RULE_ADAM,
    MEAN = DTRAIN_RULE_MEAN,
    MIN = DTRAIN_RULE_MIN,
    MAX = DTRAIN_RULE_MAX,
    NESTEROV = DTRAIN_RULE_NESTEROV,
    ADAGRAD_ROWS = DTRAIN_RULE_ADAGRAD_ROWS,
    RMSPROP = DTRAIN_RULE_RMSPROP,
    ADADELTA = DTRAIN_RULE_ADADELTA,
    ADAMW = DTRAIN_RULE_ADAMW,
    AMSGRAD = DTRAIN_RULE_AMSGRAD,
    FTRL = DTRAIN_RULE_FTRL,
    LARS = DTRAIN_RULE_LARS,
    LAMB = DTRAIN_RULE_LAMB,
    DC_SGD = DTRAIN_RULE_DC_SGD,
    FUNCTION = DTRAIN_RULE_FUNCTION,
    // the end of what is generated
};
enum class Consistency : uint32_t {
    ASYNC = DTRAIN_ASYNC,
    BSP = DTRAIN_BSP,
    SSP = DTRAIN_SSP,
    QUORUM = DTRAIN_QUORUM
};
enum class Initial : uint32_t {
    CONSTANT = DTRAIN_INITIAL_CONSTANT,
    UNIFORM = DTRAIN_INITIAL_UNIFORM,
    NORMAL = DTRAIN_INITIAL_NORMAL
};
enum class NotFinite : uint32_t {
    TAKE = DTRAIN_NOT_FINITE_TAKE,
    REFUSE = DTRAIN_NOT_FINITE_REFUSE,
    DROP = DTRAIN_NOT_FINITE_DROP
};
enum class Steps : uint32_t { OWN = DTRAIN_STEPS_OWN, TABLE = DTRAIN_STEPS_TABLE };
enum class MeanOver : uint32_t { WORKERS = DTRAIN_MEAN_WORKERS, PUSHERS = DTRAIN_MEAN_PUSHERS };
// Where servers keep a table.
enum class TableMemory : uint32_t { HOST = DTRAIN_MEM_HOST, CUDA = DTRAIN_MEM_CUDA };
enum class Schedule : uint32_t {
    CONSTANT = DTRAIN_SCHEDULE_CONSTANT,
    LINEAR = DTRAIN_SCHEDULE_LINEAR,
    COSINE = DTRAIN_SCHEDULE_COSINE,
    EXPONENTIAL = DTRAIN_SCHEDULE_EXPONENTIAL,
    STAIRCASE = DTRAIN_SCHEDULE_STAIRCASE,
    INVERSE_SQRT = DTRAIN_SCHEDULE_INVERSE_SQRT
};
enum class Placement : uint32_t {
    RANGE = DTRAIN_PLACE_RANGE,
    HASH = DTRAIN_PLACE_HASH,
    CONSISTENT = DTRAIN_PLACE_CONSISTENT,
    ROUND_ROBIN = DTRAIN_PLACE_ROUND_ROBIN,
    GREEDY = DTRAIN_PLACE_GREEDY,
    USER = DTRAIN_PLACE_USER
};
enum class Compression : uint32_t {
    // from dtrain.h, by ./dev generate
    F16 = DTRAIN_COMPRESS_F16,
    BF16 = DTRAIN_COMPRESS_BF16,
    INT8 = DTRAIN_COMPRESS_INT8,
    TOPK = DTRAIN_COMPRESS_TOPK,
    ONEBIT = DTRAIN_COMPRESS_ONEBIT,
    POWERSGD = DTRAIN_COMPRESS_POWERSGD,
    // the end of what is generated
};
enum class Topology : uint32_t {
    RING = DTRAIN_GRAPH_RING,
    GRID = DTRAIN_GRAPH_GRID,
    EXPONENTIAL = DTRAIN_GRAPH_EXPONENTIAL,
    FULL = DTRAIN_GRAPH_FULL,
    CUSTOM = DTRAIN_GRAPH_CUSTOM
};
constexpr int ANY_RANK = DTRAIN_ANY_RANK;

// The dtype of a C++ type. To add a half-precision type of the program:
// template <> struct dtrain::DTypeOf<my_half> { static constexpr DType value = DType::F16; };
template <class T, class = void> struct DTypeOf {};
template <> struct DTypeOf<float> { static constexpr DType value = DType::F32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::F64; };
template <> struct DTypeOf<std::byte> { static constexpr DType value = DType::U8; };
template <class T>
struct DTypeOf<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  private:
    static constexpr DType sized(DType one, DType two, DType four, DType eight) {
        return sizeof(T) == 1 ? one : sizeof(T) == 2 ? two : sizeof(T) == 4 ? four : eight;
    }

  public:
    static constexpr DType value = std::is_signed_v<T>
                                       ? sized(DType::I8, DType::I16, DType::I32, DType::I64)
                                       : sized(DType::U8, DType::U16, DType::U32, DType::U64);
};

namespace detail {
template <class Array> using PointerOf = decltype(std::declval<Array &>().data());
template <class Array> using ElementOf = std::remove_pointer_t<PointerOf<Array>>;
// Arrays are types with data() and size(): std::vector, std::array, std::span, ...
template <class Array, class T, class = void> struct HoldsImpl : std::false_type {};
template <class Array, class T>
struct HoldsImpl<
    Array, T,
    std::enable_if_t<std::is_pointer_v<PointerOf<Array>> &&
                     std::is_convertible_v<ElementOf<Array> (*)[], T (*)[]> &&
                     std::is_convertible_v<decltype(std::declval<Array &>().size()), size_t>>>
    : std::true_type {};
template <class Array, class T> constexpr bool holds = HoldsImpl<Array, T>::value;
// IsNumbers: an array whose elements have a dtype. IsWritable: one whose elements are not const.
template <class Array, class = void> struct IsNumbers : std::false_type {};
template <class Array>
struct IsNumbers<Array, std::void_t<std::enable_if_t<holds<Array, ElementOf<Array>>>,
                                    decltype(DTypeOf<std::remove_cv_t<ElementOf<Array>>>::value)>>
    : std::true_type {};
template <class Array, class = void> struct IsWritable : std::false_type {};
template <class Array>
struct IsWritable<Array, std::enable_if_t<IsNumbers<Array>::value>>
    : std::bool_constant<!std::is_const_v<ElementOf<Array>>> {};
} // namespace detail

// A view of elements, the same type in C++17 and later; std::span converts to it and back.
template <class T> class Span {
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;
    constexpr Span() noexcept = default;
    constexpr Span(T *data, size_t size) noexcept : data_(data), size_(size) {}
    template <size_t N> constexpr Span(T (&array)[N]) noexcept : Span(array, N) {}
    // Also for a temporary array, which lives until the call is over.
    template <class Array, class = std::enable_if_t<detail::holds<Array, T>>>
    constexpr Span(Array &&array) noexcept : Span(array.data(), size_t(array.size())) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](size_t i) const { return data_[i]; }
    constexpr Span subspan(size_t first, size_t count) const { return Span(data_ + first, count); }

  private:
    T *data_ = nullptr;
    size_t size_ = 0;
};

// Numbers that an operation reads: an array, `count` of them at an address, or none ({}).
class Input {
  public:
    Input() noexcept = default;
    Input(const void *address, uint64_t elements, DType type) noexcept
        : data(address), count(elements), dtype(type) {}
    template <class T, DType d = DTypeOf<T>::value>
    Input(const T *address, uint64_t elements) noexcept : Input(address, elements, d) {}
    template <class T, size_t N, DType d = DTypeOf<std::remove_cv_t<T>>::value>
    Input(T (&array)[N]) noexcept : Input(array, N, d) {}
    template <class Array, class = std::enable_if_t<detail::IsNumbers<const Array>::value>>
    Input(const Array &array) noexcept
        : Input(array.data(), array.size(),
                DTypeOf<std::remove_cv_t<detail::ElementOf<const Array>>>::value) {}

    const void *data = nullptr;
    uint64_t count = 0;
    DType dtype = DType::F32;
};

// Numbers that an operation writes to, or changes in place.
class Output {
  public:
    Output() noexcept = default;
    Output(void *address, uint64_t elements, DType type) noexcept
        : data(address), count(elements), dtype(type) {}
    template <class T, DType d = DTypeOf<T>::value>
    Output(T *address, uint64_t elements) noexcept : Output(address, elements, d) {}
    template <class T, size_t N, DType d = DTypeOf<T>::value>
    Output(T (&array)[N]) noexcept : Output(array, N, d) {}
    template <class Array, class = std::enable_if_t<detail::IsWritable<Array>::value>>
    Output(Array &array) noexcept
        : Output(array.data(), array.size(), DTypeOf<detail::ElementOf<Array>>::value) {}
    // For views, which may be temporaries: unlike a const vector, a const view can be written to.
    template <class View, class = std::enable_if_t<detail::IsWritable<const View>::value>, int = 0>
    Output(const View &view) noexcept
        : Output(view.data(), view.size(), DTypeOf<detail::ElementOf<const View>>::value) {}
    operator Input() const noexcept { return Input(data, count, dtype); }

    void *data = nullptr;
    uint64_t count = 0;
    DType dtype = DType::F32;
};

// As a timeout: no timeout. As a wait: no limit.
constexpr std::chrono::nanoseconds FOREVER{-1};

namespace detail {
template <class Rep, class Period>
int64_t nanoseconds(std::chrono::duration<Rep, Period> duration) {
    using namespace std::chrono;
    const long double ns =
        std::chrono::duration<long double, std::nano>(
            std::chrono::duration<long double, Period>(static_cast<long double>(duration.count())))
            .count();
    if (ns >= 9.2e18L) return std::numeric_limits<int64_t>::max();
    if (ns <= 0) return duration == FOREVER ? -1 : 0;
    return ns < 1 ? 1 : static_cast<int64_t>(ns);
}

// Nanoseconds for a parameter: more than 0, or -1 for FOREVER.
template <class Rep, class Period>
int64_t positive(std::chrono::duration<Rep, Period> duration, const char *name) {
    const int64_t ns = nanoseconds(duration);
    if (ns == 0)
        throw InvalidError(std::string(name) + ": a duration must be more than 0, or FOREVER");
    return ns;
}

// Destroys a handle, and only then releases the object that it was made from.
template <class T, class Returned = Status> struct End {
    Returned (*end)(T *);
    std::shared_ptr<void> maker;
    void operator()(T *handle) const { static_cast<void>(end(handle)); }
};
template <class T, class Returned>
std::shared_ptr<T> own(T *handle, Returned (*end)(T *), std::shared_ptr<void> maker = {}) {
    return std::shared_ptr<T>(handle, End<T, Returned>{end, std::move(maker)});
}
// The object that a handle was made from.
template <class T> std::shared_ptr<void> maker_of(const std::shared_ptr<T> &handle) {
    return std::get_deleter<End<T>>(handle)->maker;
}
} // namespace detail
} // namespace cxx
} // namespace dtrain

#if __cplusplus >= 202002L
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<dtrain::Span<T>> = true;
template <class T> inline constexpr bool std::ranges::enable_view<dtrain::Span<T>> = true;
#endif
#endif
