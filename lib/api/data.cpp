// Reads and writes TFRecord files: dtrain_reader_* and dtrain_writer_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/fork.h"
#include "api/guard.h"
#include "data/reader.h"
#include "data/writer.h"

#include <memory>
#include <mutex>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::guard;
using dtrain::api::guard_new;

struct dtrain_reader {
    std::mutex mutex;
    dtrain::api::Birth birth;
    dtrain::data::Reader reader;
};

struct dtrain_writer {
    std::mutex mutex;
    dtrain::api::Birth birth;
    dtrain::data::Writer writer;
};

namespace {

Status null(const char *what) { return fail(DTRAIN_ERR_INVALID, "%s is NULL", what); }

// Runs `body` on a handle's object under its mutex.
template <class Handle, class F> Status with(Handle *handle, const char *what, F &&body) {
    if (handle == nullptr) return null(what);
    if (!handle->birth.here())
        return fail(
            DTRAIN_ERR_STATE,
            "the %s was opened before fork() and belongs to the parent process; open another",
            what);
    return guard([&]() -> Status {
        std::lock_guard lock(handle->mutex);
        return body();
    });
}

} // namespace

dtrain_status_t dtrain_reader_open(const char *const *paths, uint32_t count,
                                   const dtrain_reader_params_t *params,
                                   dtrain_reader_t **reader_p) {
    if (reader_p == nullptr) return null("reader_p");
    if (paths == nullptr) return null("paths");
    return guard_new([&]() -> Status {
        dtrain_reader_params_t given;
        if (Status s = dtrain::api::take(given, params); s != DTRAIN_OK) return s;
        dtrain::api::watch_forks();
        auto fresh = std::make_unique<dtrain_reader>();
        if (Status s = fresh->reader.open({paths, count}, given); s != DTRAIN_OK) return s;
        *reader_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_reader_next(dtrain_reader_t *reader, const void **data_p,
                                   uint64_t *length_p) {
    if (data_p == nullptr) return null("data_p");
    if (length_p == nullptr) return null("length_p");
    return with(reader, "reader", [&]() -> Status {
        std::span<const uint8_t> record;
        if (Status s = reader->reader.next(record); s != DTRAIN_OK) return s;
        *data_p = record.data();
        *length_p = record.size();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_reader_rewind(dtrain_reader_t *reader) {
    return with(reader, "reader", [&] { return reader->reader.rewind(); });
}

void dtrain_reader_close(dtrain_reader_t *reader) { delete reader; }

dtrain_status_t dtrain_writer_open(const char *path, dtrain_writer_t **writer_p) {
    if (writer_p == nullptr) return null("writer_p");
    if (path == nullptr || *path == 0)
        return fail(DTRAIN_ERR_INVALID, "writer_open: path is NULL or empty");
    return guard_new([&]() -> Status {
        dtrain::api::watch_forks();
        auto fresh = std::make_unique<dtrain_writer>();
        if (Status s = fresh->writer.open(path); s != DTRAIN_OK) return s;
        *writer_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_writer_append(dtrain_writer_t *writer, const void *data, uint64_t length) {
    if (data == nullptr && length > 0) return null("data");
    return with(writer, "writer", [&] {
        return writer->writer.append({static_cast<const uint8_t *>(data), size_t(length)});
    });
}

dtrain_status_t dtrain_writer_close(dtrain_writer_t *writer) {
    Status s = with(writer, "writer", [&] { return writer->writer.close(); });
    if (s == DTRAIN_ERR_STATE) writer->writer.disown(); // keeps the file, which is the parent's
    delete writer;
    return s;
}
