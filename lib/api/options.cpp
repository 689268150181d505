// Implements dtrain_options_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"

#include <cstring>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

dtrain_status_t dtrain_options_create(dtrain_options_t **options_p) {
    if (options_p == nullptr) return fail(DTRAIN_ERR_INVALID, "options_create: options_p is NULL");
    return guard_new([&]() -> Status {
        auto fresh = std::make_unique<dtrain_options>();
        if (Status s = dtrain::Options::from_environment(fresh->options); s != DTRAIN_OK) return s;
        *options_p = fresh.release();
        return DTRAIN_OK;
    });
}

void dtrain_options_destroy(dtrain_options_t *options) { delete options; }

dtrain_status_t dtrain_options_set(dtrain_options_t *options, const char *key, const char *value) {
    if (Status s = check_handle(options, "options"); s != DTRAIN_OK) return s;
    if (key == nullptr || value == nullptr)
        return fail(DTRAIN_ERR_INVALID, "options_set: %s is NULL",
                    key == nullptr ? "key" : "value");
    return guard([&] {
        std::lock_guard lock(options->mutex);
        return options->options.set(key, value);
    });
}

dtrain_status_t dtrain_options_load(dtrain_options_t *options, const char *path) {
    if (Status s = check_handle(options, "options"); s != DTRAIN_OK) return s;
    if (path == nullptr) return fail(DTRAIN_ERR_INVALID, "options_load: path is NULL");
    return guard([&] {
        std::lock_guard lock(options->mutex);
        return options->options.load(path);
    });
}

dtrain_status_t dtrain_options_get(const dtrain_options_t *options, const char *key, char *buf,
                                   size_t len) {
    if (Status s = check_handle(options, "options"); s != DTRAIN_OK) return s;
    if (key == nullptr || buf == nullptr)
        return fail(DTRAIN_ERR_INVALID, "options_get: %s is NULL", key == nullptr ? "key" : "buf");
    return guard([&]() -> Status {
        std::lock_guard lock(const_cast<dtrain_options_t *>(options)->mutex);
        std::string value;
        if (Status s = options->options.get(key, value); s != DTRAIN_OK) return s;
        if (value.size() >= len)
            return fail(
                DTRAIN_ERR_TRUNCATED,
                "option %s: the value needs %zu bytes with its terminating NUL, buf has %zu", key,
                value.size() + 1, len);
        std::memcpy(buf, value.c_str(), value.size() + 1);
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_options_describe(uint32_t index, const char **key_p, const char **default_p,
                                        const char **text_p) {
    if (key_p == nullptr || default_p == nullptr || text_p == nullptr)
        return fail(DTRAIN_ERR_INVALID, "options_describe: key_p, default_p or text_p is NULL");
    auto table = dtrain::option_table();
    if (index >= table.size())
        return fail(DTRAIN_ERR_NOT_FOUND,
                    "options_describe: index is out of range: there are %zu options", table.size());
    *key_p = table[index].key;
    *default_p = table[index].fallback;
    *text_p = table[index].text;
    return DTRAIN_OK;
}
