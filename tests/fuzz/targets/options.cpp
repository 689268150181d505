// Options: an options file, and values from programs and the environment.
// SPDX-License-Identifier: Apache-2.0
//
// Input: numbers of options with values, up to the number 255; then a file.
#include "tests/fuzz/memory_file.h"

#include "base/options.h"

using namespace dtrain;
using fuzz::Bytes;

namespace {

constexpr uint8_t file_follows = 255;

bool in_range(const OptionSpec &spec, int64_t number) {
    switch (spec.kind) {
    case OptionKind::text: return number == 0;
    case OptionKind::boolean: return number == 0 || number == 1;
    case OptionKind::choice: return number >= 0;
    case OptionKind::auto_size:
    case OptionKind::auto_duration:
        return number == -1 || (number >= spec.min && number <= spec.max);
    default: return number >= spec.min && number <= spec.max;
    }
}

// Of a few options, since there are many.
void check(const Options &options, size_t first) {
    for (size_t i = 0; i < 8; i++) {
        const OptionSpec &spec = option_table()[(first + i) % option_table().size()];
        std::string text;
        FUZZ_REQUIRE(options.get(spec.key, text) == DTRAIN_OK && options.text(spec.key) == text);
        int64_t number = 0;
        FUZZ_REQUIRE(parse_option(spec, text, number) == DTRAIN_OK && in_range(spec, number));
        FUZZ_REQUIRE(options.number(spec.key) == number);
    }
}

// The last value in the environment, and the file named there.
void check_environment(const OptionSpec *spec, const std::string &value, const std::string &path) {
    const std::string name = spec != nullptr ? environment_name(spec->key) : "";
    if (spec != nullptr) setenv(name.c_str(), value.c_str(), 1);
    setenv("DTRAIN_OPTIONS", path.c_str(), 1);
    Options options;
    if (Options::from_environment(options) == DTRAIN_OK && spec != nullptr)
        FUZZ_REQUIRE(options.text(spec->key) == std::string_view(value.c_str()));
    unsetenv("DTRAIN_OPTIONS");
    if (spec != nullptr) unsetenv(name.c_str());
}

uint8_t number_of(std::string_view key) {
    const auto table = option_table();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const OptionSpec &spec) { return key == spec.key; });
    FUZZ_REQUIRE(found != table.end());
    return uint8_t(found - table.begin());
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile file;
    fuzz::Input in(data, size);
    Options options;
    const auto table = option_table();
    const OptionSpec *last = nullptr;
    std::string value;
    while (!in.empty()) {
        const uint8_t number = in.byte();
        if (number == file_follows) break;
        const OptionSpec &spec = table[number % table.size()];
        last = &spec;
        value = in.line();
        int64_t parsed = 0;
        const bool good = parse_option(spec, value, parsed) == DTRAIN_OK;
        FUZZ_REQUIRE(!good || in_range(spec, parsed));
        FUZZ_REQUIRE(options.set(spec.key, value) == DTRAIN_OK ? good
                                                               : !good || value.size() > 1000);
    }
    const Bytes text = in.rest();
    file.assign(text.data(), text.size());
    (void)options.load(file.path().c_str());
    check_environment(last, value, file.path());
    (void)options.get(std::string(text.begin(), text.end()), value);
    check(options, size);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const std::string_view text = "# a comment\nop.timeout = 30s\n\ntransports=shm,tcp # both\n"
                                  "plugin.mine.key = any thing\nheartbeat.timeout=0\n";
    Made values;
    for (const auto &[key, value] : {std::pair{"op.timeout", "500ms"},
                                     {"op.timeout", "9223372036854775807s"},
                                     {"ps.memory", "1.5G"},
                                     {"ps.memory", "18446744073709551616K"},
                                     {"elastic", "on"},
                                     {"protection", "encrypted"},
                                     {"protection", "no"},
                                     {"heartbeat.interval", "0"},
                                     {"heartbeat.interval", "-1ms"},
                                     {"elastic", "off"},
                                     {"elastic", "perhaps"},
                                     {"ps.memory", "many"},
                                     {"ps.memory", "1X"},
                                     {"checkpoint.keep", "3"},
                                     {"op.timeout", "auto"},
                                     {"ps.memory", "256K"}})
        values.byte(number_of(key)).all(std::string_view(value)).byte('\n');
    std::vector<Bytes> out{values};
    out.push_back(Made().byte(file_follows).all(text));
    out.push_back(Made().byte(file_follows).all(std::string_view("op.timeot = 3s")));
    out.push_back(Made().byte(file_follows).all(std::string_view("no equals sign")));
    out.push_back(Made().byte(file_follows).all(std::string_view("op.timeout")));
    for (const OptionSpec &spec : option_table()) // each kind with "auto"
        if (spec.kind == OptionKind::auto_size || spec.kind == OptionKind::auto_duration)
            out.push_back(Made().byte(number_of(spec.key)).all(std::string_view("auto\n")));
    out.push_back(Made().byte(number_of("op.timeout")).all(std::string(5000, '1')).byte('\n'));
    return out;
}
