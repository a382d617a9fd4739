// SPDX-License-Identifier: Apache-2.0
// For readers of model files: the beginning of a file as bytes, and what a file that is not a model file really is.
#pragma once

#include "core/result.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The size of a regular file; an error for a missing file, a folder or a file that may not be read.
Result<int64_t> regularFileSize(const std::filesystem::path& file);

// A link that leads to no file or folder, as in a download cache whose contents were cleared. Empty when `path` is none.
std::optional<Error> explainBrokenLink(const std::filesystem::path& path, const std::string& expected);

// Up to `count` bytes from the file's beginning. Never waits: a pipe or a device is an error.
Result<std::string> readFileHead(const std::filesystem::path& file, int64_t count);

// The whole of a text file of at most `limit` bytes.
Result<std::string> readTextFile(const std::filesystem::path& file, int64_t limit);

// The first bytes, readable: "<!DOCTYPE html" or hex where they are not text.
std::string describeBytes(std::string_view bytes);

// A download that went wrong: a Git LFS pointer, an HTML page, a JSON error message, an empty file. Empty when `head` is none of
// them.
std::optional<Error> explainForeignFile(std::string_view head, int64_t fileSize, const std::string& where,
                                        const std::string& expected);

}  // namespace headroom
