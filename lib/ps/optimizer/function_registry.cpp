// Checks user functions, adds them, and loads them from shared objects.
// SPDX-License-Identifier: Apache-2.0
#include "ps/optimizer/function_registry.h"

#include "base/shared_object.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dtrain::ps {
namespace {

constexpr size_t max_state_name = 31;
constexpr size_t least_size = offsetof(dtrain_function_t, update) + sizeof(dtrain_function_fn);

Status check_state(const char *function, const dtrain_function_state_t &state) {
    const std::string_view name = state.name != nullptr ? state.name : "";
    const bool taken = name == "values" || name == "keys" || name == "steps";
    auto upper = [](char c) { return (c >= 'A' && c <= 'Z') || c == '.' || c == '-'; };
    if (taken || !is_plain_name(name, max_state_name) ||
        std::any_of(name.begin(), name.end(), upper))
        return fail(DTRAIN_ERR_INVALID,
                    "function \"%s\": a state cannot be named \"%.40s\": use 1 to 31 of "
                    "[a-z0-9_], but not values, keys or steps",
                    function, name.data());
    if (state.dtype != DTRAIN_F32 && state.dtype != DTRAIN_F64 && state.dtype != DTRAIN_U64)
        return fail(DTRAIN_ERR_INVALID, "function \"%s\": its state \"%s\" is not F32, F64 or U64",
                    function, state.name);
    if (state.per_row > 1)
        return fail(DTRAIN_ERR_INVALID,
                    "function \"%s\": per_row of its state \"%s\" is %u, not 0 or 1", function,
                    state.name, state.per_row);
    return DTRAIN_OK;
}

// The struct of an older caller may be shorter; in that of a newer caller, members that are unknown
// here must be 0.
Status check_size(const dtrain_function_t &f) {
    // The beginning is the same in every ABI.
    if (f.struct_size < offsetof(dtrain_function_t, name))
        return fail(DTRAIN_ERR_INVALID, "a function's struct_size is %u", f.struct_size);
    if (f.abi != DTRAIN_FUNCTION_ABI)
        return fail(DTRAIN_ERR_VERSION,
                    "the function has ABI %u, this library serves %u; build the function with this "
                    "library's dtrain_function.h",
                    f.abi, DTRAIN_FUNCTION_ABI);
    if (f.struct_size < least_size)
        return fail(DTRAIN_ERR_INVALID, "a function's struct_size is %u, less than %zu",
                    f.struct_size, least_size);
    const auto *bytes = reinterpret_cast<const unsigned char *>(&f);
    for (size_t i = sizeof f; i < f.struct_size; ++i)
        if (bytes[i] != 0)
            return fail(DTRAIN_ERR_UNSUPPORTED,
                        "the function sets a member that this library (%zu of %u bytes) does not "
                        "know; use a newer libdtrain",
                        sizeof f, f.struct_size);
    return DTRAIN_OK;
}

Status check(const dtrain_function_t &f) {
    if (f.name == nullptr || !is_plain_name(f.name, max_function_name))
        return fail(DTRAIN_ERR_INVALID,
                    "a function cannot be named \"%.70s\": use 1 to %zu of [A-Za-z0-9_.-]",
                    f.name != nullptr ? f.name : "", max_function_name);
    if (f.update == nullptr)
        return fail(DTRAIN_ERR_INVALID, "function \"%s\" has no update()", f.name);
    if (f.state_count > DTRAIN_FUNCTION_STATES || f.reserved != 0 ||
        (f.state_count > 0 && f.states == nullptr))
        return fail(DTRAIN_ERR_INVALID,
                    "function \"%s\": %u states at %s (at most %d; reserved: %u, must be 0)",
                    f.name, f.state_count, f.states != nullptr ? "an address" : "NULL",
                    DTRAIN_FUNCTION_STATES, f.reserved);
    for (uint32_t i = 0; i < f.state_count; ++i) {
        if (Status s = check_state(f.name, f.states[i]); s != DTRAIN_OK) return s;
        for (uint32_t j = 0; j < i; ++j)
            if (std::string_view(f.states[i].name) == f.states[j].name)
                return fail(DTRAIN_ERR_INVALID, "function \"%s\" has two states named \"%s\"",
                            f.name, f.states[i].name);
    }
    return DTRAIN_OK;
}

} // namespace

Status FunctionRegistry::append(const dtrain_function_t &function, Entries &to) {
    if (Status s = check_size(function); s != DTRAIN_OK) return s;
    auto entry = std::make_unique<Entry>();
    entry->function = {};
    std::memcpy(&entry->function, &function,
                std::min<size_t>(function.struct_size, sizeof function));
    if (Status s = check(entry->function); s != DTRAIN_OK) return s;
    entry->name = entry->function.name;
    entry->states = states_of(entry->function);
    for (const FunctionState &state : entry->states)
        entry->given.push_back({state.name.c_str(), state.dtype, state.per_row});
    entry->function.name = entry->name.c_str();
    entry->function.states = entry->given.data();
    to.push_back(std::move(entry));
    return DTRAIN_OK;
}

Status FunctionRegistry::insert(Entries entries) {
    std::lock_guard lock(mutex_);
    for (const auto &entry : entries)
        if (entries_.count(entry->name) != 0)
            return fail(DTRAIN_ERR_STATE, "the context already has a function \"%s\"",
                        entry->name.c_str());
    for (auto &entry : entries) entries_[entry->name] = std::move(entry);
    return DTRAIN_OK;
}

Status FunctionRegistry::add(const dtrain_function_t &function) {
    Entries entries;
    Status s = append(function, entries);
    return s == DTRAIN_OK ? insert(std::move(entries)) : s;
}

Status FunctionRegistry::ask(Query query, Entries &to) {
    const dtrain_function_t *function = query(DTRAIN_FUNCTION_ABI, 0);
    if (function == nullptr)
        return fail(DTRAIN_ERR_VERSION,
                    "it does not serve function ABI %u, the one of this library; build it with "
                    "this library's dtrain_function.h",
                    DTRAIN_FUNCTION_ABI);
    for (uint32_t i = 1; function != nullptr; function = query(DTRAIN_FUNCTION_ABI, i++)) {
        if (Status s = append(*function, to); s != DTRAIN_OK) return s;
        auto same = [&](const auto &entry) { return entry->name == to.back()->name; };
        if (std::count_if(to.begin(), to.end(), same) > 1)
            return fail(DTRAIN_ERR_INVALID,
                        "it has two functions \"%s\" (dtrain_function_query() returns NULL after "
                        "the last)",
                        function->name);
    }
    return DTRAIN_OK;
}

Status FunctionRegistry::load(const std::string &path) {
    void *symbol = nullptr;
    Entries entries;
    Status s = load_symbol(path.c_str(), "dtrain_function_query", symbol);
    if (s == DTRAIN_OK) s = ask(reinterpret_cast<Query>(symbol), entries);
    if (s == DTRAIN_OK) s = insert(std::move(entries));
    return s == DTRAIN_OK ? s : fail_within(s, "option ps.functions: %s", path.c_str());
}

Status FunctionRegistry::load_all(std::string_view paths) {
    while (!paths.empty()) {
        const std::string path(paths.substr(0, paths.find(':')));
        paths.remove_prefix(std::min(paths.size(), path.size() + 1));
        if (path.empty() || std::find(loaded_.begin(), loaded_.end(), path) != loaded_.end())
            continue;
        if (path[0] != '/')
            return fail(DTRAIN_ERR_CONFIG, "option ps.functions: \"%s\" is not an absolute path",
                        path.c_str());
        if (Status s = load(path); s != DTRAIN_OK) return s;
        loaded_.push_back(path);
    }
    return DTRAIN_OK;
}

const dtrain_function_t *FunctionRegistry::find(const std::string &name, std::string &names) const {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(name);
    if (found != entries_.end()) return &found->second->function;
    for (const auto &[other, entry] : entries_) names += (names.empty() ? "" : ", ") + other;
    return nullptr;
}

std::vector<FunctionState> states_of(const dtrain_function_t &function) {
    std::vector<FunctionState> states;
    for (uint32_t i = 0; i < function.state_count; ++i) {
        const dtrain_function_state_t &state = function.states[i];
        states.push_back({state.name, state.dtype, state.per_row != 0});
    }
    return states;
}

} // namespace dtrain::ps
