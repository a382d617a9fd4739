// SPDX-License-Identifier: Apache-2.0
// Reads safetensors headers: 8 bytes of length, JSON, then the data that the JSON's offsets count from.
#include "core/model/safetensors_header.h"

#include "core/json_text.h"
#include "core/model/file_head.h"
#include "core/model/safetensors_parser.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace headroom {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDimensions = 16;

std::string clipped(const std::string& name) { return name.size() <= 120 ? name : name.substr(0, 117) + "..."; }

std::string jsonText(const nlohmann::json& value) {
  return clipped(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Elements of a shape, or empty where they do not fit 63 bits.
std::optional<int64_t> elementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  return count;
}

Result<std::vector<int64_t>> naturalNumbers(const nlohmann::json& list, const std::string& where, size_t limit) {
  if (!list.is_array() || list.size() > limit)
    return failure(where, jsonText(list), fmt::format("a list of at most {} natural numbers", limit));
  std::vector<int64_t> numbers;
  for (const auto& value : list) {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) ||
        value.get<int64_t>() < 0)
      return failure(where, jsonText(value), "a natural number");
    numbers.push_back(value.get<int64_t>());
  }
  return numbers;
}

// One entry of the header. An unknown dtype leaves `tensor` empty and names it in a warning.
Result<std::optional<SafetensorsTensor>> readTensor(const std::string& name, const nlohmann::json& entry, int64_t dataBegin,
                                                    int64_t dataBytes, const std::string& file,
                                                    std::vector<std::string>& warnings) {
  const std::string where = fmt::format("{}: tensor {}", file, clipped(name));
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    return failure(where, jsonText(entry), "an object with dtype, shape and data_offsets");
  if (!entry["dtype"].is_string()) return failure(where + " dtype", jsonText(entry["dtype"]), "a string such as \"BF16\"");
  auto shape = naturalNumbers(entry["shape"], where + " shape", kMaxDimensions);
  if (!shape) return tl::unexpected(shape.error());
  auto offsets = naturalNumbers(entry["data_offsets"], where + " data_offsets", 2);
  if (!offsets) return tl::unexpected(offsets.error());
  if (offsets->size() != 2) return failure(where + " data_offsets", jsonText(entry["data_offsets"]), "[begin, end]");
  const int64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end) return failure(where + " data_offsets", fmt::format("[{}, {}]", begin, end), "a begin before the end");
  if (end > dataBytes)
    return failure(where, fmt::format("data up to byte {} of {} that the file holds", end, std::max<int64_t>(dataBytes, 0)),
                   "a complete file", "the download is truncated; fetch it again");

  const std::string dtypeText = entry["dtype"].get<std::string>();
  const auto dtype = parseDType(dtypeText);
  if (!dtype || isBlockQuantized(*dtype)) {
    warnings.push_back(
        fmt::format("tensor {} has dtype {}, which this reader does not know; its {} bytes are left out of the weights",
                    clipped(name), clipped(dtypeText), end - begin));
    return std::nullopt;
  }
  const auto elements = elementCount(*shape);
  const DTypeInfo& info = dtypeInfo(*dtype);
  if (!elements || *elements > INT64_MAX / info.blockBytes)
    return failure(where + " shape", jsonText(entry["shape"]), "a shape whose bytes fit the file");
  if (*elements % info.blockElements != 0)
    return failure(where + " shape", fmt::format("{} elements of {}", *elements, info.name),
                   "an even count: two are stored in a byte");
  const Bytes bytes = storageBytes(*dtype, *elements);
  if (bytes.count() != end - begin)
    return failure(where, fmt::format("{} bytes of data", end - begin),
                   fmt::format("{} bytes ({} of shape {})", bytes.count(), info.name, jsonText(entry["shape"])),
                   "the file is damaged; fetch it again");
  return SafetensorsTensor{name, *dtype, std::move(*shape), dataBegin + begin, bytes};
}

// Tensors must not share bytes; unused bytes are only worth a warning.
Status checkLayout(const std::vector<SafetensorsTensor>& tensors, int64_t dataBegin, int64_t fileSize, const std::string& where,
                   std::vector<std::string>& warnings, bool complete) {
  std::vector<const SafetensorsTensor*> order;
  for (const auto& tensor : tensors)
    if (tensor.bytes.count() > 0) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  int64_t covered = dataBegin;
  const SafetensorsTensor* previous = nullptr;
  int64_t unused = 0;
  for (const auto* tensor : order) {
    if (tensor->offset < covered && previous)
      return failure(where, fmt::format("tensors {} and {} share bytes", clipped(previous->name), clipped(tensor->name)),
                     "data of their own", "the file is damaged; fetch it again");
    unused += tensor->offset - covered;
    covered = tensor->offset + tensor->bytes.count();
    previous = tensor;
  }
  unused += fileSize - covered;
  if (complete && unused > 0) warnings.push_back(fmt::format("{} bytes of {} belong to no tensor", unused, where));
  return {};
}

}  // namespace

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view json, int64_t fileSize, const std::string& where) {
  const int64_t dataBegin = kLengthBytes + static_cast<int64_t>(json.size());
  std::set<std::string, std::less<>> seen;
  std::string repeated;
  const auto noteRepeats = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key && !seen.insert(value.get<std::string>()).second &&
        repeated.empty())
      repeated = value.get<std::string>();
    return true;
  };
  if (isNestedTooDeep(json))
    return failure(where, "a header with " + std::string(kTooDeepJson), "a JSON object of tensors",
                   "is this a safetensors file? fetch it again");
  const nlohmann::json header = nlohmann::json::parse(json, noteRepeats, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    return failure(where, fmt::format("a header that begins {}", describeBytes(json)), "a JSON object of tensors",
                   "is this a safetensors file? fetch it again");
  if (!repeated.empty()) return failure(where, fmt::format("tensor {} twice", clipped(repeated)), "each name once");

  SafetensorsHeader result;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    auto tensor = readTensor(name, entry, dataBegin, fileSize - dataBegin, where, result.warnings);
    if (!tensor) return tl::unexpected(tensor.error());
    if (*tensor) result.tensors.push_back(std::move(**tensor));
  }
  const bool complete = result.warnings.empty();
  if (auto layout = checkLayout(result.tensors, dataBegin, fileSize, where, result.warnings, complete); !layout)
    return tl::unexpected(layout.error());
  return result;
}

Result<SafetensorsHeader> readSafetensorsHeader(const std::filesystem::path& file) {
  const std::string where = file.string();
  const std::string expected = "a safetensors file";
  const auto size = regularFileSize(file);
  if (!size) return tl::unexpected(size.error());
  auto head = readFileHead(file, std::min<int64_t>(*size, 256));
  if (!head) return tl::unexpected(head.error());
  if (auto foreign = explainForeignFile(*head, *size, where, expected)) return tl::unexpected(*foreign);
  if (head->starts_with("GGUF")) return failure(where, "a GGUF file", expected, "rename it to .gguf");
  if (head->starts_with("PK\x03\x04") || head->starts_with("\x80\x02"))
    return failure(where, "a PyTorch pickle or zip archive", expected, "convert it: save_pretrained(safe_serialization=True)");
  if (static_cast<int64_t>(head->size()) < kLengthBytes)
    return failure(where, fmt::format("{} bytes", *size), expected, "the download is truncated; fetch it again");

  uint64_t length = 0;
  for (int64_t i = kLengthBytes - 1; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>((*head)[static_cast<size_t>(i)]);
  const auto remaining = static_cast<uint64_t>(*size - kLengthBytes);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes))
    return failure(where, fmt::format("a header length of {} bytes (the file begins {})", length, describeBytes(*head)),
                   fmt::format("at most {} bytes", kMaxHeaderBytes),
                   "this is not a safetensors file, or it is damaged; fetch it again");
  if (length > remaining)
    return failure(where, fmt::format("a header of {} bytes in a file of {}", length, *size), "a complete file",
                   "the download is truncated; fetch it again");
  head = readFileHead(file, kLengthBytes + static_cast<int64_t>(length));
  if (!head) return tl::unexpected(head.error());
  if (head->size() != kLengthBytes + length) return failure(where, "a file that shrank while it was read", expected);
  return parseSafetensorsHeader(std::string_view(*head).substr(kLengthBytes), *size, where);
}

}  // namespace headroom
