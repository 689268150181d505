// Reads and writes tuning files, and compares machines.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/cost/tuning.h"

#include "base/crc32c.h"
#include "base/decimal.h"
#include "base/fd.h"
#include "base/output_file.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace dtrain::collectives {
namespace {

constexpr std::string_view magic = "dtrain-tuning ", version = "2", check = "crc32c = ";
constexpr double most_ns = 1e10; // limit of any time
constexpr uint64_t most_number = uint64_t{1} << 50;
constexpr size_t most_name = 256;

// All lines of the file except the first and the last: a key, and where its value is stored.
struct Field {
    const char *key;
    std::string Machine::*name;
    uint64_t Machine::*machine;
    double NetworkModel::*model;
    uint64_t Tuning::*bytes;
    uint64_t least = 0;
};
constexpr Field fields[] = {
    {"cpu", &Machine::cpu, nullptr, nullptr, nullptr},
    {"transports", &Machine::transports, nullptr, nullptr, nullptr},
    {"cores", nullptr, &Machine::cores, nullptr, nullptr, 1},
    {"bandwidth", nullptr, &Machine::bandwidth, nullptr, nullptr},
    {"ranks", nullptr, &Machine::ranks, nullptr, nullptr, 2},
    {"hosts", nullptr, &Machine::hosts, nullptr, nullptr, 1},
    {"latency_ns", nullptr, nullptr, &NetworkModel::latency_ns, nullptr},
    {"overhead_ns", nullptr, nullptr, &NetworkModel::overhead_ns, nullptr},
    {"ns_per_byte", nullptr, nullptr, &NetworkModel::ns_per_byte, nullptr},
    {"reduce_ns_per_byte", nullptr, nullptr, &NetworkModel::reduce_ns_per_byte, nullptr},
    {"copy_ns_per_byte", nullptr, nullptr, &NetworkModel::copy_ns_per_byte, nullptr},
    {"exchange_bytes", nullptr, nullptr, nullptr, &Tuning::exchange_bytes},
    {"chunk_bytes", nullptr, nullptr, nullptr, &Tuning::chunk_bytes, 4096},
    {"eager_bytes", nullptr, nullptr, nullptr, &Tuning::eager_bytes, 1024},
};

std::string value_of(const Field &field, const Tuning &tuning) {
    if (field.name != nullptr) return tuning.machine.*field.name;
    if (field.machine != nullptr) return std::to_string(tuning.machine.*field.machine);
    if (field.bytes != nullptr) return std::to_string(tuning.*field.bytes);
    return decimal_text(tuning.model.*field.model);
}

template <class T> bool parse_whole(std::string_view text, T &out) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

bool set_value(const Field &field, std::string_view text, Tuning &tuning) {
    if (field.name != nullptr) {
        tuning.machine.*field.name = text;
        return !text.empty() && text.size() <= most_name;
    }
    if (field.model != nullptr) {
        double &value = tuning.model.*field.model;
        return parse_whole(text, value) && std::isfinite(value) && value >= 0 && value <= most_ns;
    }
    uint64_t &value =
        field.machine != nullptr ? tuning.machine.*field.machine : tuning.*field.bytes;
    return parse_whole(text, value) && value >= field.least && value <= most_number;
}

std::string check_line(std::string_view text) {
    char line[32];
    std::snprintf(line, sizeof line, "crc32c = %08x\n", crc32c(text.data(), text.size()));
    return line;
}

// Removes the first line from `text`; `line` gets it without its end. False: there is no line.
bool take_line(std::string_view &text, std::string_view &line) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return true;
}

// Makes a name fit for a value in the file: one line of bounded length.
std::string clean(std::string_view name) {
    std::string out(name.substr(0, most_name));
    for (char &c : out)
        if (c < ' ' || c > '~') c = ' ';
    return out.empty() ? "unknown" : out;
}

} // namespace

std::string cpu_name() {
    const Stream file = read_stream("/proc/cpuinfo");
    char line[512];
    while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
        std::string_view text(line);
        size_t colon = text.find(": ");
        if (!text.starts_with("model name") || colon == std::string_view::npos) continue;
        text.remove_prefix(colon + 2);
        return clean(text.substr(0, text.find('\n')));
    }
    return "unknown";
}

std::string difference(const Machine &there, const Machine &here) {
    std::string text;
    for (const Field &field : fields) {
        if (field.name == nullptr && field.machine == nullptr) continue;
        Tuning a, b;
        a.machine = there;
        b.machine = here;
        std::string was = value_of(field, a), is = value_of(field, b);
        if (was == is) continue;
        text += (text.empty() ? "" : "; ") + std::string(field.key) + " \"" + was + "\" there, \"" +
                is + "\" here";
    }
    return text;
}

std::string to_text(const Tuning &tuning) {
    std::string text = std::string(magic) + std::string(version) + "\n";
    for (const Field &field : fields)
        text += std::string(field.key) + " = " + value_of(field, tuning) + "\n";
    return text + check_line(text);
}

Status parse_tuning(std::string_view text, Tuning &out) {
    std::string_view rest = text, line;
    if (text.size() > max_tuning_bytes || !take_line(rest, line) || !line.starts_with(magic))
        return fail(DTRAIN_ERR_CORRUPT, "it is not a tuning file");
    if (line.substr(magic.size()) != version)
        return fail(DTRAIN_ERR_VERSION,
                    "its format is not version %s, the only one that this library reads",
                    std::string(version).c_str());
    Tuning tuning;
    for (const Field &field : fields) {
        std::string start = std::string(field.key) + " = ";
        if (!take_line(rest, line) || !line.starts_with(start))
            return fail(DTRAIN_ERR_CORRUPT, "\"%s\" is missing", field.key);
        if (!set_value(field, line.substr(start.size()), tuning))
            return fail(DTRAIN_ERR_CORRUPT, "the value of \"%s\" is not valid", field.key);
    }
    std::string_view checked = text.substr(0, text.size() - rest.size());
    if (!rest.starts_with(check)) return fail(DTRAIN_ERR_CORRUPT, "its end is missing");
    if (rest != check_line(checked))
        return fail(DTRAIN_ERR_CORRUPT, "its checksum is wrong: it was changed after it was made");
    out = tuning;
    return DTRAIN_OK;
}

Status read_tuning(const char *path, Tuning &out) {
    const Stream file = read_stream(path);
    if (file == nullptr) return fail_errno(errno, "it cannot be read");
    char text[max_tuning_bytes + 1];
    errno = 0;
    size_t size = std::fread(text, 1, sizeof text, file.get());
    if (std::ferror(file.get()) != 0) return fail_errno(errno, "it cannot be read");
    return parse_tuning({text, size}, out);
}

Status write_tuning(const char *path, const Tuning &tuning) {
    Tuning written = tuning;
    written.machine.cpu = clean(tuning.machine.cpu);
    Status s = write_whole_file(path, to_text(written));
    return s == DTRAIN_OK ? s : fail_within(s, "tuning file %s", path);
}

} // namespace dtrain::collectives
