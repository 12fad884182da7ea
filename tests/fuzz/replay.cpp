// The main of a fuzz target without a fuzzer: each argument is a folder, and each file in it is an input.
#include "fuzz.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

int main(int argc, char** argv) {
  std::set<std::filesystem::path> files;  // in their order, so that two runs are alike
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.insert(entry.path());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::fprintf(stderr, "%s\n", file.c_str());  // the last line names the input that failed
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
