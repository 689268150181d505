// Reads and checks the index of a safetensors file, then its data.
// SPDX-License-Identifier: Apache-2.0
#include "data/tensor_reader.h"

#include "base/crc32c.h"
#include "data/frame.h"

namespace dtrain::data {

Status TensorReader::within(Status status) const {
    return fail_within(status, "%s", path_.c_str());
}

Status TensorReader::open(const std::string &path, const Seal &known) {
    path_ = path;
    Status s = file_.open(path);
    if (s == DTRAIN_OK) s = read_index(known);
    return s == DTRAIN_OK ? s : within(s);
}

Status TensorReader::read_index(const Seal &known) {
    constexpr size_t length_bytes = 8;
    seal_.bytes = file_.remaining();
    if (known.bytes > 0 && known.bytes != seal_.bytes)
        return fail(DTRAIN_ERR_CORRUPT, "the file has %llu bytes, but %llu were written",
                    static_cast<unsigned long long>(seal_.bytes),
                    static_cast<unsigned long long>(known.bytes));
    if (file_.remaining() < length_bytes)
        return fail(DTRAIN_ERR_CORRUPT, "truncated: %llu bytes are not even the length of an index",
                    static_cast<unsigned long long>(file_.remaining()));
    const uint8_t *data = nullptr;
    if (Status s = file_.take(length_bytes, data); s != DTRAIN_OK) return s;
    const uint64_t length = load_le(data, length_bytes);
    seal_.crc = crc32c(data, length_bytes);
    if (length < 2 || length > file_.remaining())
        return fail(DTRAIN_ERR_CORRUPT,
                    "an index of %llu bytes, but only %llu bytes follow in the "
                    "file",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(file_.remaining()));
    if (length > max_index_bytes)
        return fail(known.bytes > 0 ? DTRAIN_ERR_CORRUPT : DTRAIN_ERR_LIMIT,
                    "an index of %llu bytes; at most %llu are allowed",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(max_index_bytes));
    if (Status s = file_.take(size_t(length), data); s != DTRAIN_OK) return s;
    seal_.crc = crc32c(data, size_t(length), seal_.crc);
    if (known.bytes > 0 && known.crc != seal_.crc)
        return fail(
            DTRAIN_ERR_CORRUPT,
            "the file is damaged, or it is a file of another checkpoint: its heading's checksum "
            "is %08x, not %08x",
            seal_.crc, known.crc);
    return parse_index({reinterpret_cast<const char *>(data), size_t(length)}, file_.remaining(),
                       index_);
}

Status TensorReader::take(size_t size, const uint8_t *&data) {
    Status s = file_.take(size, data);
    return s == DTRAIN_OK ? s : within(s);
}

} // namespace dtrain::data
