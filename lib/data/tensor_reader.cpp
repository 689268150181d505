// SPDX-License-Identifier: Apache-2.0
#include "data/tensor_reader.h"

#include "data/frame.h"

namespace dtrain::data {

Status TensorReader::within(Status status) const {
    return fail_within(status, "%s", path_.c_str());
}

Status TensorReader::open(const std::string &path) {
    path_ = path;
    Status s = file_.open(path);
    if (s == DTRAIN_OK) s = read_index();
    return s == DTRAIN_OK ? s : within(s);
}

Status TensorReader::read_index() {
    constexpr size_t length_bytes = 8;
    if (file_.remaining() < length_bytes)
        return fail(DTRAIN_ERR_CORRUPT, "truncated: %llu bytes, not even the length of an index",
                    static_cast<unsigned long long>(file_.remaining()));
    const uint8_t *data = nullptr;
    if (Status s = file_.take(length_bytes, data); s != DTRAIN_OK) return s;
    const uint64_t length = load_le(data, length_bytes);
    if (length < 2 || length > file_.remaining())
        return fail(DTRAIN_ERR_CORRUPT, "an index of %llu bytes in a file that goes on for %llu",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(file_.remaining()));
    if (length > max_index_bytes)
        return fail(DTRAIN_ERR_LIMIT, "an index of %llu bytes, at most %llu are read",
                    static_cast<unsigned long long>(length),
                    static_cast<unsigned long long>(max_index_bytes));
    if (Status s = file_.take(size_t(length), data); s != DTRAIN_OK) return s;
    return parse_index({reinterpret_cast<const char *>(data), size_t(length)}, file_.remaining(),
                       index_);
}

Status TensorReader::take(size_t size, const uint8_t *&data) {
    Status s = file_.take(size, data);
    return s == DTRAIN_OK ? s : within(s);
}

} // namespace dtrain::data
