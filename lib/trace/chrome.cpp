// Formats records as JSON.
// SPDX-License-Identifier: Apache-2.0
#include "trace/chrome.h"

#include "base/status.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace dtrain::trace {
namespace {

// Collects the numbers of an event before they are appended to a string, since many small appends
// cost more than the digits.
class Text {
  public:
    void put(std::string_view text) {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }
    void put(int64_t value) { at_ = std::to_chars(at_, end(), value).ptr; }
    // The format counts in microseconds.
    void put_us(int64_t ns) {
        if (ns < 0) ns = 0;
        put(ns / 1000);
        auto rest = uint32_t(ns % 1000);
        const char digits[] = {'.', char('0' + rest / 100), char('0' + rest / 10 % 10),
                               char('0' + rest % 10)};
        put({digits, sizeof digits});
    }
    void move_to(std::string &out) {
        out.append(text_, size_t(at_ - text_));
        at_ = text_;
    }

  private:
    char *end() { return text_ + sizeof text_; }
    char text_[320]; // enough for all keys and the longest numbers between two texts
    char *at_ = text_;
};

// Bytes of the UTF-8 sequence at the start of `text`; 0: it is not one (nor are overlong forms and
// surrogates).
size_t utf8_length(std::string_view text) {
    auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
    auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
    uint8_t first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first < 0xf0) {
        bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0);
        return !bad && follows(1) && follows(2) ? 3 : 0;
    }
    bool bad = first < 0xf0 || first > 0xf4 || (first == 0xf0 && second < 0x90) ||
               (first == 0xf4 && second >= 0x90);
    return !bad && follows(1) && follows(2) && follows(3) ? 4 : 0;
}

void append_head(std::string &out, std::string_view begin, std::string_view name, int32_t pid,
                 uint32_t tid, Text &text) {
    out += begin;
    append_quoted(out, name);
    text.put(",\"pid\":");
    text.put(pid);
    text.put(",\"tid\":");
    text.put(tid);
}

} // namespace

uint32_t Lanes::place(int64_t begin_ns, int64_t end_ns) {
    for (uint32_t i = 0; i < ends_.size(); i++)
        if (ends_[i] <= begin_ns) {
            ends_[i] = end_ns;
            return i;
        }
    if (ends_.size() == most) return most - 1;
    ends_.push_back(end_ns);
    return uint32_t(ends_.size() - 1);
}

void append_quoted(std::string &out, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    out += '"';
    auto plain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
    size_t clean = size_t(std::find_if_not(text.begin(), text.end(), plain) - text.begin());
    out += text.substr(0, clean);
    text.remove_prefix(clean);
    while (!text.empty()) {
        auto c = uint8_t(text[0]);
        size_t length = utf8_length(text);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += char(c);
        } else if (c < 0x20) {
            out += "\\u00";
            out += hex[c >> 4];
            out += hex[c & 15];
        } else if (length == 0) {
            out += '?';
        } else {
            out.append(text, 0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    out += '"';
}

void append_record(std::string &out, const Record &record, int32_t pid, uint32_t tid) {
    bool mark = record.track == Track::marks;
    Text text;
    append_head(out, mark ? "{\"ph\":\"i\",\"s\":\"p\",\"name\":" : "{\"ph\":\"X\",\"name\":",
                record.name, pid, tid, text);
    text.put(",\"ts\":");
    text.put_us(record.begin_ns);
    if (mark) {
        text.put("},\n");
        return text.move_to(out);
    }
    text.put(",\"dur\":");
    text.put_us(record.end_ns - record.begin_ns);
    text.put(",\"args\":{\"bytes\":");
    text.put(int64_t(record.bytes));
    text.put(",\"comm\":");
    text.put(record.group);
    if (record.call != 0) {
        text.put(",\"call\":");
        text.put(int64_t(record.call));
    }
    if (record.peer >= 0) {
        text.put(",\"peer\":");
        text.put(record.peer);
    }
    if (record.track == Track::operations) {
        text.put(",\"status\":\"");
        text.put(status_name(record.status));
        text.put("\"");
    }
    if (record.way != nullptr) {
        text.put(",\"way\":");
        text.move_to(out);
        append_quoted(out, record.way);
    }
    text.put("}},\n");
    text.move_to(out);
}

void append_meta(std::string &out, std::string_view name, int32_t pid, uint32_t tid,
                 std::string_view argument, std::string_view value) {
    Text text;
    append_head(out, "{\"ph\":\"M\",\"name\":", name, pid, tid, text);
    text.put(",\"args\":{");
    text.move_to(out);
    append_quoted(out, argument);
    out += ':';
    out += value;
    out += "}},\n";
}

} // namespace dtrain::trace
