// The exceptions that calls throw: one class per status of the C API, named as in all languages.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_ERROR_HPP
#define DTRAIN_ERROR_HPP
#include "../dtrain.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace dtrain {
// The inline namespace keeps these names apart from those of the library, which is C++, too, when
// it is linked statically.
inline namespace cxx {

using Status = dtrain_status_t;

// The base class. what() says what failed, where, on which rank, after how long and what to do.
class Error : public std::runtime_error {
  public:
    Error(Status status, const std::string &text, int rank = -1)
        : std::runtime_error(text), status_(status), rank_(rank) {}
    // The status number of the C API: DTRAIN_ERR_PEER, ...
    Status status() const noexcept { return status_; }
    // "DTRAIN_ERR_PEER"
    const char *name() const noexcept { return dtrain_status_name(status_); }
    // The rank that failed; -1: unknown. For a blocking call: the first rank that is known to have
    // failed.
    int rank() const noexcept { return rank_; }

  private:
    Status status_;
    int rank_;
};

// A newer library may have further statuses: they are thrown as Error.
#define DTRAIN_ERROR_CLASSES(X)                                                                    \
    X(Invalid, INVALID)                                                                            \
    X(NoMemory, NO_MEMORY)                                                                         \
    X(Unsupported, UNSUPPORTED)                                                                    \
    X(Version, VERSION)                                                                            \
    X(State, STATE)                                                                                \
    X(Busy, BUSY)                                                                                  \
    X(Timeout, TIMEOUT)                                                                            \
    X(Canceled, CANCELED)                                                                          \
    X(Truncated, TRUNCATED)                                                                        \
    X(NotFound, NOT_FOUND)                                                                         \
    X(Limit, LIMIT)                                                                                \
    X(Corrupt, CORRUPT)                                                                            \
    X(Config, CONFIG)                                                                              \
    X(Io, IO)                                                                                      \
    X(Transport, TRANSPORT)                                                                        \
    X(Auth, AUTH)                                                                                  \
    X(Peer, PEER)                                                                                  \
    X(Aborted, ABORTED)                                                                            \
    X(Mismatch, MISMATCH)                                                                          \
    X(Fenced, FENCED)                                                                              \
    X(Device, DEVICE)                                                                              \
    X(Internal, INTERNAL)
#define DTRAIN_X(kind, code)                                                                       \
    class kind##Error : public Error {                                                             \
      public:                                                                                      \
        explicit kind##Error(const std::string &text, int rank = -1)                               \
            : Error(DTRAIN_ERR_##code, text, rank) {}                                              \
    };
DTRAIN_ERROR_CLASSES(DTRAIN_X)
#undef DTRAIN_X

namespace detail {

// Calls act(error) with an object of the class of the status.
template <class Act> void with_error(Status status, const std::string &text, int rank, Act &&act) {
    switch (status) {
#define DTRAIN_X(kind, code)                                                                       \
    case DTRAIN_ERR_##code: return act(kind##Error(text, rank));
        DTRAIN_ERROR_CLASSES(DTRAIN_X)
#undef DTRAIN_X
    default: return act(Error(status, text, rank));
    }
}

// Gets a text from the C API: get(buffer, size) returns the whole length.
template <class Get> std::string text_of(Get &&get) {
    std::string text(255, '\0');
    for (;;) {
        const size_t length = get(&text[0], text.size() + 1);
        const bool fits = length <= text.size();
        text.resize(length);
        if (fits) return text;
    }
}

inline std::string last_error() {
    return text_of([](char *buffer, size_t size) { return dtrain_last_error(buffer, size); });
}

[[noreturn]] inline void throw_error(Status status, const std::string &text, int rank = -1) {
    with_error(status, text, rank, [](auto &&error) { throw error; });
    std::terminate();
}

// Out of line, so that the inlined calls stay small.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_last(Status status, int rank = -1) {
    throw_error(status, last_error(), rank);
}

inline void check(Status status) {
    if (status < 0) throw_last(status);
}

// Holds an exception of a callback of the program while it passes through the C API.
class Caught {
  public:
    // Returns f(), or `otherwise` if it throws.
    template <class Value, class F> Value run(Value otherwise, F &&f) noexcept {
        try {
            return f();
        } catch (...) {
            if (!first_) first_ = std::current_exception();
            return otherwise;
        }
    }
    // Throws the call's error, with the callback's exception nested in it.
    void check(Status status) const {
        if (status >= 0) return;
        const std::string text = last_error();
        if (!first_) throw_error(status, text);
        try {
            std::rethrow_exception(first_);
        } catch (...) {
            with_error(status, text, -1, [](auto &&error) { std::throw_with_nested(error); });
        }
    }

  private:
    std::exception_ptr first_;
};

} // namespace detail
} // namespace cxx
} // namespace dtrain
#endif
