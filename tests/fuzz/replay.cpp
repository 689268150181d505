// Runs a target's seeds and the files of its corpus, where it is not linked with libFuzzer.
// SPDX-License-Identifier: Apache-2.0
//
//   fuzz_<target> FOLDER...          fails if the files seed-* are not the target's seeds
//   fuzz_<target> FILE...            replays a finding
//   fuzz_<target> --write FOLDER     writes seed-*, after a format has changed
//
// Write them with a build by gcc: encoders may depend on the order of evaluating arguments.
#include "fuzz.h"

#include <filesystem>
#include <fstream>
#include <iterator>

using dtrain::fuzz::Bytes;
namespace fs = std::filesystem;

// A custom mutator is not called here, but it refers to libFuzzer's.
size_t LLVMFuzzerMutate(uint8_t *, size_t size, size_t) { return size; }

namespace {

Bytes read(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void run(const Bytes &input) {
    const Bytes copy(input); // of exactly its size, so that a sanitizer sees its end
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

std::string seed_name(size_t i) { return "seed-" + std::to_string(i); }

int write_seeds(const fs::path &folder) {
    fs::create_directories(folder);
    for (const auto &entry : fs::directory_iterator(folder))
        if (entry.path().filename().string().starts_with("seed-")) fs::remove(entry.path());
    const std::vector<Bytes> seeds = dtrain::fuzz::seeds();
    for (size_t i = 0; i < seeds.size(); i++) {
        std::ofstream file(folder / seed_name(i), std::ios::binary);
        file.write(reinterpret_cast<const char *>(seeds[i].data()), long(seeds[i].size()));
        if (!file.flush()) return 1;
    }
    return 0;
}

bool has_seeds(const fs::path &folder) {
    const std::vector<Bytes> seeds = dtrain::fuzz::seeds();
    for (size_t i = 0; i < seeds.size(); i++)
        if (!fs::exists(folder / seed_name(i)) || read(folder / seed_name(i)) != seeds[i])
            return false;
    return !fs::exists(folder / seed_name(seeds.size()));
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 3 && std::string(argv[1]) == "--write") return write_seeds(argv[2]);
    size_t count = 0;
    for (const Bytes &seed : dtrain::fuzz::seeds()) run(seed);
    if (argc == 2 && std::string(argv[1]) == "--planted") return 0; // it has no corpus
    for (int i = 1; i < argc; i++) {
        if (!fs::is_directory(argv[i])) {
            run(read(argv[i]));
            continue;
        }
        for (const auto &entry : fs::directory_iterator(argv[i])) {
            std::printf("%s\n", entry.path().c_str());
            std::fflush(stdout); // it may be the last line
            run(read(entry.path()));
            count++;
        }
        if (count > 0 && fs::exists(fs::path(argv[i]) / seed_name(0)) && !has_seeds(argv[i])) {
            std::fprintf(stderr, "%s does not have the target's seeds; run: %s --write %s\n",
                         argv[i], argv[0], argv[i]);
            return 1;
        }
    }
    std::printf("%zu files\n", count);
    return 0;
}
