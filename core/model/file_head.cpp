// SPDX-License-Identifier: Apache-2.0
#include "core/model/file_head.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace headroom {
namespace {

bool startsWithIgnoringCase(std::string_view text, std::string_view lowerPrefix) {
  if (text.size() < lowerPrefix.size()) return false;
  return std::equal(lowerPrefix.begin(), lowerPrefix.end(), text.begin(), [](char expected, char found) {
    return expected == static_cast<char>(std::tolower(static_cast<unsigned char>(found)));
  });
}

std::string_view withoutLeadingSpace(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  return text;
}

// The line "size 4912" of a Git LFS pointer.
std::string lfsSize(std::string_view head) {
  const size_t at = head.find("\nsize ");
  if (at == std::string_view::npos) return {};
  std::string_view digits = head.substr(at + 6);
  size_t end = 0;
  while (end < digits.size() && end < 20 && std::isdigit(static_cast<unsigned char>(digits[end]))) ++end;
  return std::string(digits.substr(0, end));
}

}  // namespace

std::optional<Error> explainBrokenLink(const std::filesystem::path& path, const std::string& expected) {
  std::error_code code, target;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, code)) || std::filesystem::exists(path, target))
    return {};
  std::string found = "a link that leads back to itself";
  if (target != std::errc::too_many_symbolic_link_levels)
    found = "a link to " + std::filesystem::read_symlink(path, code).string() + ", which is not there";
  return Error{path.string(), found, expected, "mend the link, or download the file again"};
}

Result<int64_t> regularFileSize(const std::filesystem::path& file) {
  std::error_code code;
  if (const auto link = explainBrokenLink(file, "a file that can be read")) return tl::unexpected(*link);
  const auto status = std::filesystem::status(file, code);
  if (status.type() == std::filesystem::file_type::not_found)
    return failure(file.string(), "no such file", "a file that can be read");
  if (code) return failure(file.string(), code.message(), "a file that can be read");
  if (!std::filesystem::is_regular_file(status)) return failure(file.string(), "something that is not a regular file", "a file");
  const auto size = std::filesystem::file_size(file, code);
  if (code) return failure(file.string(), code.message(), "a file that can be read");
  return static_cast<int64_t>(size);
}

Result<std::string> readFileHead(const std::filesystem::path& file, int64_t count) {
  // Opening a pipe or a terminal would wait for a writer.
  if (const auto size = regularFileSize(file); !size) return tl::unexpected(size.error());
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return failure(file.string(), std::strerror(errno), "a file that can be read");
  std::string bytes(static_cast<size_t>(count), '\0');
  stream.read(bytes.data(), count);
  if (stream.bad()) return failure(file.string(), "a read error", "a file that can be read", "check the disk");
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

Result<std::string> readTextFile(const std::filesystem::path& file, int64_t limit) {
  const auto size = regularFileSize(file);
  if (!size) return tl::unexpected(size.error());
  if (*size > limit)
    return failure(file.string(), fmt::format("{} bytes", *size), fmt::format("a JSON file of at most {} MiB", limit >> 20));
  return readFileHead(file, *size);
}

std::string describeBytes(std::string_view bytes) {
  if (bytes.empty()) return "nothing (an empty file)";
  bytes = bytes.substr(0, 16);
  const auto end = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c < ' ' || c > '~'; });
  const auto printable = bytes.substr(0, static_cast<size_t>(end - bytes.begin()));
  if (printable.size() >= 4 || (printable.size() == bytes.size() && !bytes.empty())) return fmt::format("\"{}\"", printable);
  std::string text = "bytes";
  for (unsigned char byte : bytes.substr(0, 8)) text += fmt::format(" {:02x}", byte);
  return text;
}

std::optional<Error> explainForeignFile(std::string_view head, int64_t fileSize, const std::string& where,
                                        const std::string& expected) {
  if (fileSize == 0) return Error{where, "an empty file", expected, "download it again"};
  const std::string_view text = withoutLeadingSpace(head);
  if (text.starts_with("version https://git-lfs.github.com/spec")) {
    const std::string size = lfsSize(text);
    return Error{where,
                 fmt::format("a Git LFS pointer of {} bytes{}", fileSize,
                             size.empty() ? "" : fmt::format(" (the real file has {})", size)),
                 expected, "fetch the real file: `git lfs install && git lfs pull` in the clone, or download it from the hub"};
  }
  if (startsWithIgnoringCase(text, "<!doctype html") || startsWithIgnoringCase(text, "<html") ||
      startsWithIgnoringCase(text, "<?xml"))
    return Error{where, fmt::format("an HTML page of {} bytes", fileSize), expected,
                 "download the raw file; a page is what a login, a licence form or a wrong link returns"};
  if (startsWithIgnoringCase(text, "{\"error\"") || startsWithIgnoringCase(text, "access to model") ||
      startsWithIgnoringCase(text, "entry not found") || startsWithIgnoringCase(text, "invalid username or password"))
    return Error{where, fmt::format("a server's message: {}", std::string(text.substr(0, 80))), expected,
                 "download it again with access to the model"};
  if (head.size() >= 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == 0; }))
    return Error{where, "only zero bytes at the beginning", expected,
                 "the download was reserved on disk and never filled; download it again"};
  return std::nullopt;
}

}  // namespace headroom
