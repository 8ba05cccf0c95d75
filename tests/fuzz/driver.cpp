// Runs a fuzz target (libFuzzer's entry point) on mutated seeds, without needing clang:
//   NAME_fuzz SECONDS SEED FOLDER...
// The same SEED tries the same inputs in the same order. An input that makes the target crash, or
// run for more than ten seconds, is written to crash-NAME in the current folder.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

constexpr std::size_t kLargest = 64 * 1024;
constexpr unsigned kPatience = 10;  // seconds for one input

std::string current;     // the input that is being tried
std::string crash_file;  // where it goes when it is the last one

void saveCurrent() {
    std::FILE* file = std::fopen(crash_file.c_str(), "wb");
    if (file == nullptr) return;
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s (%zu bytes)\n", crash_file.c_str(), current.size());
}

void tooLong(int) {
    std::fprintf(stderr, "one input took more than %u s\n", kPatience);
    saveCurrent();
    _exit(1);
}

void run(const std::string& input) {
    current = input;
    alarm(kPatience);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

class Mutator {
  public:
    Mutator(std::uint64_t seed, const std::vector<std::string>& seeds)
        : random_(seed), seeds_(seeds) {}

    std::string next() {
        std::string text = seeds_[below(seeds_.size())];
        for (std::size_t times = 1 + below(6); times > 0; --times) mutate(text);
        if (text.size() > kLargest) text.resize(kLargest);
        return text;
    }

  private:
    // What numbers, separators and nesting usually trip over.
    static constexpr std::string_view kWords[] = {"0",
                                                  "-1",
                                                  "4294967296",
                                                  "18446744073709551616",
                                                  "1e999",
                                                  "nan",
                                                  "0x",
                                                  "ffffffff",
                                                  "\n",
                                                  "\r\n",
                                                  "\t",
                                                  "=",
                                                  ",",
                                                  ";",
                                                  ":",
                                                  "\"",
                                                  "<",
                                                  ">",
                                                  "/>",
                                                  "</",
                                                  "{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  "&#0;",
                                                  "<!--",
                                                  "\xff",
                                                  "\xc3\x28",
                                                  "%s",
                                                  "mlx5_0",
                                                  "0000:ff:1f.7",
                                                  "GPU0",
                                                  "PIX",
                                                  "<object type=\"PCIDev\">"};

    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

    void mutate(std::string& text) {
        const std::size_t at = below(text.size() + 1);
        const std::size_t length = below(std::min<std::size_t>(text.size() - at, 64) + 1);
        switch (below(9)) {
            case 0:
                if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 1:
                if (at < text.size()) text[at] = static_cast<char>(random_());
                break;
            case 2:
                text.erase(at, length);
                break;
            case 3:
                text.insert(at, text.substr(at, length));
                break;
            case 4:
                text.insert(at, kWords[below(std::size(kWords))]);
                break;
            case 5:
                text.replace(at, length, kWords[below(std::size(kWords))]);
                break;
            case 6: {  // a piece of another seed
                const std::string& other = seeds_[below(seeds_.size())];
                text.insert(at, other.substr(below(other.size() + 1), below(200)));
                break;
            }
            case 7:
                text.resize(at);
                break;
            default:
                replaceNumber(text, at);
        }
    }

    void replaceNumber(std::string& text, std::size_t from) {
        const std::size_t begin = text.find_first_of("0123456789", from);
        if (begin == std::string::npos) return;
        std::size_t end = text.find_first_not_of("0123456789", begin);
        if (end == std::string::npos) end = text.size();
        text.replace(begin, end - begin, std::to_string(random_() >> below(64)));
    }

    std::mt19937_64 random_;
    const std::vector<std::string>& seeds_;
};

std::vector<std::string> readSeeds(char** begin, char** end) {
    std::vector<std::string> seeds;
    for (char** folder = begin; folder != end; ++folder)
        for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder)) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file(entry.path(), std::ios::binary);
            seeds.emplace_back(std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>());
        }
    return seeds;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s SECONDS SEED FOLDER...\n", argv[0]);
        return 2;
    }
    crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
    const std::vector<std::string> seeds = readSeeds(argv + 3, argv + argc);
    if (seeds.empty()) {
        std::fprintf(stderr, "%s: no seeds\n", argv[0]);
        return 2;
    }
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(saveCurrent);
    signal(SIGALRM, tooLong);

    for (const std::string& seed : seeds) run(seed);
    Mutator mutator(std::strtoull(argv[2], nullptr, 10), seeds);
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[1]));
    unsigned long tried = 0;
    for (; std::chrono::steady_clock::now() < until; ++tried) run(mutator.next());
    std::printf("%zu seeds and %lu mutated inputs\n", seeds.size(), tried);
    return 0;
}
