// SPDX-License-Identifier: Apache-2.0
// A folder of its own for programs whose reader takes files.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace headroom::test {

inline const std::filesystem::path& fuzzFolder() {
  static const std::filesystem::path folder = [] {
    std::string pattern = (std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + std::string("/headroom-fuzz-XXXXXX");
    if (!mkdtemp(pattern.data())) std::abort();
    return std::filesystem::path(pattern);
  }();
  return folder;
}

inline void writeFile(const char* name, const uint8_t* data, size_t size) {
  std::ofstream(fuzzFolder() / name, std::ios::binary | std::ios::trunc).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

}  // namespace headroom::test
