// Readers and writers of TFRecord files.
// SPDX-License-Identifier: Apache-2.0
#ifndef DTRAIN_RECORDS_HPP
#define DTRAIN_RECORDS_HPP
#include "types.hpp"

#include <optional>
#include <vector>

namespace dtrain {
inline namespace cxx {

// Reads files one after the other: while (auto record = reader.next()) ...
class RecordReader {
  public:
    // shard of shards: this reader's share of the files. max_record: longest accepted record in
    // bytes.
    explicit RecordReader(const std::vector<std::string> &paths, int shard = 0, int shards = 1,
                          uint64_t max_record = 0) {
        std::vector<const char *> names;
        for (const std::string &path : paths) names.push_back(path.c_str());
        dtrain_reader_params_t params;
        DTRAIN_INIT(&params);
        params.shard = shard;
        params.shards = shards;
        params.max_record = max_record;
        dtrain_reader_t *reader = nullptr;
        detail::check(dtrain_reader_open(names.data(), static_cast<uint32_t>(names.size()), &params,
                                         &reader));
        handle_ = detail::own(reader, dtrain_reader_close);
    }
    RecordReader(RecordReader &&) = default;
    RecordReader &operator=(RecordReader &&) = default;
    // The next record, valid until the next call; none at the end.
    std::optional<Span<const std::byte>> next() {
        const void *data = nullptr;
        uint64_t length = 0;
        const Status status = dtrain_reader_next(handle_.get(), &data, &length);
        if (status == DTRAIN_ERR_NOT_FOUND) return std::nullopt;
        detail::check(status);
        return Span<const std::byte>(static_cast<const std::byte *>(data),
                                     static_cast<size_t>(length));
    }
    // Back to the start.
    void rewind() { detail::check(dtrain_reader_rewind(handle_.get())); }

  private:
    std::shared_ptr<dtrain_reader_t> handle_;
};

// Creates or replaces a file, which appears under its name when it is closed.
class RecordWriter {
  public:
    explicit RecordWriter(const std::string &path) {
        detail::check(dtrain_writer_open(path.c_str(), &handle_));
    }
    RecordWriter(RecordWriter &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    RecordWriter &operator=(RecordWriter &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~RecordWriter() {
        if (handle_ != nullptr) dtrain_writer_close(handle_);
    }
    void append(Span<const std::byte> record) {
        detail::check(dtrain_writer_append(handle_, record.data(), record.size()));
    }
    void append(const std::string &record) {
        detail::check(dtrain_writer_append(handle_, record.data(), record.size()));
    }
    // Throws if the file was not written; the destructor ignores such errors.
    void close() { detail::check(dtrain_writer_close(std::exchange(handle_, nullptr))); }

  private:
    dtrain_writer_t *handle_ = nullptr;
};

} // namespace cxx
} // namespace dtrain
#endif
