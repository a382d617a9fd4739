// SPDX-License-Identifier: Apache-2.0
// Reads GGUF headers: magic, version, counts, metadata, tensor infos, then aligned data. Every length is checked against what the
// file still holds before it is used; split files are put together from all their parts.
#include "core/model/gguf_header.h"

#include "core/model/file_head.h"
#include "core/model/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <type_traits>

namespace headroom {
namespace {

constexpr int64_t kFirstRead = 1 << 20;
constexpr int64_t kMaxHeaderBytes = int64_t{1} << 30;
constexpr uint64_t kMaxStringBytes = 64 << 20;
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint64_t kMaxArrayElements = 16'000'000;
constexpr uint32_t kMaxDimensions = 4;
constexpr int64_t kMaxParts = 9999;

enum class ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

// Bytes of one element; the least that a string takes is its length.
int64_t leastBytes(ValueType type) {
  switch (type) {
    case ValueType::U8:
    case ValueType::I8:
    case ValueType::Bool:
      return 1;
    case ValueType::U16:
    case ValueType::I16:
      return 2;
    case ValueType::U32:
    case ValueType::I32:
    case ValueType::F32:
      return 4;
    default:
      return 8;
  }
}

std::string clipped(std::string_view text) {
  return text.size() <= 120 ? std::string(text) : std::string(text.substr(0, 117)) + "...";
}

// Names in messages: what is not printable ASCII is shown as '?'.
std::string printable(std::string_view text) {
  std::string result = clipped(text);
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  return result;
}

// A position in the file's begin. Reading past what was read sets needsMore, past the file's end an error.
class Reader {
 public:
  Reader(std::string_view head, int64_t fileSize, std::string where)
      : m_head(head), m_fileSize(fileSize), m_where(std::move(where)) {}

  bool failed() const { return m_error || m_needsMore; }
  bool needsMore() const { return m_needsMore; }
  const Error& error() const { return *m_error; }
  int64_t position() const { return m_position; }
  int64_t remaining() const { return m_fileSize - m_position; }

  void fail(std::string found, std::string expected, std::string next = {}) {
    if (!failed()) m_error = Error{m_where, std::move(found), std::move(expected), std::move(next)};
  }

  std::string_view bytes(uint64_t count, const char* what) {
    if (failed()) return {};
    if (count > static_cast<uint64_t>(remaining())) {
      fail(fmt::format("{} of {} bytes at byte {}, past the end of the file ({} bytes)", what, count, m_position, m_fileSize),
           "a complete GGUF file", "the download is truncated; fetch it again");
      return {};
    }
    if (count > m_head.size() - static_cast<size_t>(m_position)) {
      m_needsMore = true;
      return {};
    }
    const auto result = m_head.substr(static_cast<size_t>(m_position), count);
    m_position += static_cast<int64_t>(count);
    return result;
  }

  template <class T>
  T number(const char* what) {
    const auto raw = bytes(sizeof(T), what);
    T value{};
    if (!failed()) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  std::string_view text(uint64_t limit, const char* what) {
    const auto length = number<uint64_t>(what);
    if (!failed() && length > limit)
      fail(fmt::format("{} of {} bytes at byte {}", what, length, m_position), fmt::format("at most {} bytes", limit));
    return bytes(length, what);
  }

 private:
  std::string_view m_head;
  int64_t m_fileSize;
  std::string m_where;
  int64_t m_position = 0;
  std::optional<Error> m_error;
  bool m_needsMore = false;
};

// The text with U+FFFD for bytes that are no UTF-8 (one for each maximal part of a character): JSON holds none.
std::string withoutInvalidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  for (size_t at = 0; at < text.size();) {
    const unsigned char lead = byte(at);
    const size_t length = lead < 0x80                    ? 1
                          : lead >= 0xC2 && lead <= 0xDF ? 2
                          : lead >= 0xE0 && lead <= 0xEF ? 3
                          : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                         : 0;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    size_t good = 1;
    for (; good < length && at + good < text.size() && byte(at + good) >= low && byte(at + good) <= high; ++good)
      low = 0x80, high = 0xBF;
    if (good == length)
      valid.append(text.substr(at, length));
    else
      valid += "\xEF\xBF\xBD";
    at += good;
  }
  return valid;
}

nlohmann::json readScalar(Reader& reader, ValueType type) {
  switch (type) {
    case ValueType::U8:
      return reader.number<uint8_t>("a value");
    case ValueType::I8:
      return reader.number<int8_t>("a value");
    case ValueType::U16:
      return reader.number<uint16_t>("a value");
    case ValueType::I16:
      return reader.number<int16_t>("a value");
    case ValueType::U32:
      return reader.number<uint32_t>("a value");
    case ValueType::I32:
      return reader.number<int32_t>("a value");
    case ValueType::F32:
      return reader.number<float>("a value");
    case ValueType::Bool:
      return reader.number<uint8_t>("a value") != 0;
    case ValueType::String:
      return withoutInvalidUtf8(reader.text(kMaxStringBytes, "a string"));
    case ValueType::U64:
      return reader.number<uint64_t>("a value");
    case ValueType::I64:
      return reader.number<int64_t>("a value");
    case ValueType::F64:
      return reader.number<double>("a value");
    case ValueType::Array:
      break;
  }
  return nullptr;
}

ValueType readType(Reader& reader, std::string_view key) {
  const auto type = reader.number<uint32_t>("a value type");
  if (!reader.failed() && type > static_cast<uint32_t>(ValueType::F64))
    reader.fail(fmt::format("metadata key {} of value type {}", printable(key), type), "a value type from 0 to 12",
                "the file is damaged or newer than this reader");
  return static_cast<ValueType>(type);
}

// Passes over `count` elements without keeping them.
void skipElements(Reader& reader, ValueType type, uint64_t count) {
  if (type == ValueType::String) {
    for (uint64_t i = 0; i < count && !reader.failed(); ++i) reader.text(kMaxStringBytes, "a string");
  } else {
    reader.bytes(count * static_cast<uint64_t>(leastBytes(type)), "an array");
  }
}

// The value of `key` goes into `metadata`; arrays that are not kept leave "<key>.length".
void readValue(Reader& reader, const std::string& key, bool keepArrays, nlohmann::json& metadata) {
  const ValueType type = readType(reader, key);
  if (type != ValueType::Array) {
    nlohmann::json value = readScalar(reader, type);
    if (!reader.failed()) metadata[key] = std::move(value);
    return;
  }
  const ValueType element = readType(reader, key);
  const auto count = reader.number<uint64_t>("an array length");
  if (reader.failed()) return;
  if (element == ValueType::Array)
    return reader.fail(fmt::format("metadata key {} with arrays inside an array", printable(key)),
                       "an array of numbers or strings");
  if (count > static_cast<uint64_t>(reader.remaining() / leastBytes(element)))
    return reader.fail(fmt::format("metadata key {} with {} array elements, more than the file holds", printable(key), count),
                       "a complete GGUF file", "the file is damaged or truncated; fetch it again");
  if (count > kMaxArrayElements)
    return reader.fail(fmt::format("metadata key {} with {} array elements", printable(key), count),
                       fmt::format("at most {}", kMaxArrayElements));
  if (!keepArrays) {
    skipElements(reader, element, count);
    if (!reader.failed()) metadata[key + ".length"] = count;
    return;
  }
  nlohmann::json values = nlohmann::json::array();
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) values.push_back(readScalar(reader, element));
  if (!reader.failed()) metadata[key] = std::move(values);
}

bool isTokenList(std::string_view key) {
  constexpr std::string_view kLists[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type",
                                         "tokenizer.ggml.merges", "tokenizer.ggml.precompiled_charsmap"};
  return std::find(std::begin(kLists), std::end(kLists), key) != std::end(kLists);
}

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  // outermost first
  uint32_t type = 0;
  uint64_t offset = 0;  // from the data's begin
};

TensorInfo readTensorInfo(Reader& reader) {
  TensorInfo info;
  info.name = reader.text(kMaxNameBytes, "a tensor name");
  const auto dimensions = reader.number<uint32_t>("a tensor's number of dimensions");
  if (!reader.failed() && dimensions > kMaxDimensions)
    reader.fail(fmt::format("tensor {} with {} dimensions", printable(info.name), dimensions),
                fmt::format("at most {}", kMaxDimensions));
  int64_t elements = 1;
  for (uint32_t i = 0; i < dimensions && !reader.failed(); ++i) {
    const auto extent = reader.number<uint64_t>("a tensor's extent");
    if (reader.failed()) break;
    if (extent > static_cast<uint64_t>(INT64_MAX) || __builtin_mul_overflow(elements, static_cast<int64_t>(extent), &elements))
      reader.fail(fmt::format("tensor {} with an extent of {}", printable(info.name), extent), "a shape that fits the file");
    info.shape.insert(info.shape.begin(), static_cast<int64_t>(extent));
  }
  info.type = reader.number<uint32_t>("a tensor type");
  info.offset = reader.number<uint64_t>("a tensor offset");
  return info;
}

// Places the tensors in the file; those of an unknown type get what lies up to the next one.
Status placeTensors(const std::vector<TensorInfo>& infos, int64_t dataBegin, int64_t fileSize, int64_t alignment,
                    const std::string& where, GgufHeader& header) {
  std::vector<uint64_t> begins;
  for (const auto& info : infos) begins.push_back(info.offset);
  std::sort(begins.begin(), begins.end());
  const auto dataBytes = static_cast<uint64_t>(std::max<int64_t>(fileSize - dataBegin, 0));
  std::set<std::string_view> names;
  for (const auto& info : infos) {
    const std::string at = fmt::format("{}: tensor {}", where, printable(info.name));
    if (!names.insert(info.name).second) return failure(at, "the name twice", "each name once");
    if (info.offset > dataBytes)
      return failure(at, fmt::format("an offset of {} in {} bytes of data", info.offset, dataBytes), "a complete GGUF file",
                     "the download is truncated; fetch it again");
    if (info.offset % static_cast<uint64_t>(alignment) != 0)
      return failure(at, fmt::format("an offset of {}", info.offset), fmt::format("a multiple of the alignment {}", alignment));
    const int64_t offset = dataBegin + static_cast<int64_t>(info.offset);
    const auto dtype = dtypeOfGgufType(info.type);
    if (!dtype) {
      const auto next = std::upper_bound(begins.begin(), begins.end(), info.offset);
      const uint64_t end = next == begins.end() ? dataBytes : std::min(*next, dataBytes);
      header.unknownTensors.push_back(
          {info.name, info.type, info.shape, 0, offset, Bytes(static_cast<int64_t>(end - info.offset))});
      header.warnings.push_back(
          fmt::format("tensor {} uses tensor type {}, newer than this reader", printable(info.name), info.type));
      continue;
    }
    const DTypeInfo& format = dtypeInfo(*dtype);
    const int64_t row = info.shape.empty() ? 1 : info.shape.back();
    if (row % format.blockElements != 0)
      return failure(at, fmt::format("rows of {} elements of {}", row, format.name),
                     fmt::format("a multiple of {}", format.blockElements));
    int64_t elements = 1, bytes = 0;
    for (int64_t extent : info.shape) elements *= extent;
    if (__builtin_mul_overflow(elements / format.blockElements, format.blockBytes, &bytes) || bytes > fileSize ||
        static_cast<uint64_t>(bytes) > dataBytes - info.offset)
      return failure(at,
                     fmt::format("{} of shape [{}] at byte {}, past the end of the file ({} bytes)", format.name,
                                 fmt::join(info.shape, ", "), offset, fileSize),
                     "a complete GGUF file", "the download is truncated, or the file was split into raw parts; fetch it again");
    header.tensors.push_back({info.name, *dtype, info.shape, 0, offset, Bytes(bytes)});
  }
  return {};
}

std::string nameOfPart(const GgufPartName& part, int64_t number, int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", part.prefix, number, count);
}

// A file cut into raw pieces: "model.gguf.part1of2", "model.gguf-part-a", "model.gguf.001".
bool isRawPiece(const std::string& name) {
  const size_t at = name.find(".gguf");
  if (at == std::string::npos || at + 5 == name.size()) return false;
  const std::string_view rest = std::string_view(name).substr(at + 5);
  return rest.find("part") != std::string_view::npos || rest.find("split") != std::string_view::npos ||
         (rest.size() >= 3 && rest[0] == '.' &&
          std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; }));
}

Result<GgufHeader> readOneFile(const std::filesystem::path& file, bool withTokens) {
  const std::string where = file.string(), expected = "a GGUF file";
  const auto size = regularFileSize(file);
  if (!size) return tl::unexpected(size.error());
  if (isRawPiece(file.filename().string()))
    return failure(where, "one raw piece of a file that was cut into pieces", expected,
                   "put the pieces together first: cat model.gguf.part* > model.gguf");
  for (int64_t count = kFirstRead;; count *= 4) {
    const auto head = readFileHead(file, std::min(count, *size));
    if (!head) return tl::unexpected(head.error());
    auto parsed = parseGgufHeader(*head, *size, withTokens, where);
    if (!parsed) return tl::unexpected(parsed.error());
    if (!parsed->needsMore) return std::move(parsed->header);
    if (static_cast<int64_t>(head->size()) < std::min(count, *size))
      return failure(where, "a file that shrank while it was read", expected);
    if (count >= kMaxHeaderBytes)
      return failure(where, fmt::format("a header of more than {} MiB", kMaxHeaderBytes >> 20), expected);
  }
}

}  // namespace

std::optional<GgufPartName> ggufPartName(const std::string& name) {
  constexpr size_t kTail = sizeof("-00001-of-00013.gguf") - 1;
  if (name.size() < kTail || !name.ends_with(".gguf")) return std::nullopt;
  const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
  const auto digits = [&](size_t at) {
    int64_t value = 0;
    for (char c : tail.substr(at, 5)) {
      if (c < '0' || c > '9') return int64_t{-1};
      value = value * 10 + (c - '0');
    }
    return value;
  };
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || digits(1) < 1 || digits(10) < 1) return std::nullopt;
  return GgufPartName{name.substr(0, name.size() - kTail), digits(1), digits(10)};
}

Result<GgufParse> parseGgufHeader(std::string_view head, int64_t fileSize, bool withTokens, const std::string& where) {
  static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie");
  if (auto foreign = explainForeignFile(head.substr(0, 256), fileSize, where, "a GGUF file")) return tl::unexpected(*foreign);
  if (!head.starts_with("GGUF"))
    return failure(where, fmt::format("{} at the beginning of {} bytes", describeBytes(head), fileSize),
                   "a GGUF file, which begins \"GGUF\"", "fetch it again, or open the file it belongs to");

  Reader reader(head, fileSize, where);
  reader.bytes(4, "the magic");
  const auto version = reader.number<uint32_t>("the version");
  if (!reader.failed()) {
    if ((version & 0xFFFF) == 0 && version != 0)
      return failure(where, "a big-endian GGUF file", "a little-endian one", "use the file made for this kind of machine");
    if (version < 2 || version > 3)
      return failure(where, fmt::format("GGUF version {}", version), "version 2 or 3",
                     version == 1 ? "convert the model again" : "");
  }
  const auto tensorCount = reader.number<uint64_t>("the number of tensors");
  const auto keyCount = reader.number<uint64_t>("the number of metadata keys");
  // The least that one takes: a tensor info 8+4+4+8 bytes, a key 8+4+1.
  if (!reader.failed() &&
      (tensorCount > static_cast<uint64_t>(reader.remaining()) / 24 || keyCount > static_cast<uint64_t>(reader.remaining()) / 13))
    reader.fail(fmt::format("{} tensors and {} metadata keys in {} bytes", tensorCount, keyCount, fileSize),
                "a complete GGUF file", "the file is damaged or truncated; fetch it again");

  GgufParse result;
  nlohmann::json& metadata = result.header.metadata = nlohmann::json::object();
  for (uint64_t i = 0; i < keyCount && !reader.failed(); ++i) {
    const std::string key(reader.text(kMaxNameBytes, "a metadata key"));
    if (reader.failed()) break;
    if (metadata.contains(key)) reader.fail(fmt::format("metadata key {} twice", printable(key)), "each key once");
    readValue(reader, key, withTokens || !isTokenList(key), metadata);
  }
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < tensorCount && !reader.failed(); ++i) infos.push_back(readTensorInfo(reader));
  if (reader.needsMore()) {
    result.needsMore = true;
    return result;
  }
  if (reader.failed()) return tl::unexpected(reader.error());

  int64_t alignment = 32;
  if (const auto given = metadata.find("general.alignment"); given != metadata.end()) {
    const bool natural = given->is_number_unsigned() && given->get<uint64_t>() <= (1u << 20);
    alignment = natural ? given->get<int64_t>() : 0;
    if (!std::has_single_bit(static_cast<uint64_t>(alignment)))
      return failure(where + ": general.alignment", given->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
                     "a power of two up to 1048576");
  }
  if (auto placed = placeTensors(infos, roundUp(reader.position(), alignment), fileSize, alignment, where, result.header);
      !placed)
    return tl::unexpected(placed.error());
  return result;
}

Result<GgufHeader> readGgufHeader(const std::filesystem::path& file, bool withTokens) {
  const auto part = ggufPartName(file.filename().string());
  const std::filesystem::path folder = file.parent_path();
  const std::filesystem::path first = part ? folder / nameOfPart(*part, 1, part->count) : file;
  if (part && part->number != 1 && std::filesystem::exists(file) && !std::filesystem::exists(first))
    return failure(file.string(), fmt::format("part {} of {} without the first part", part->number, part->count),
                   first.filename().string() + " beside it", "download the missing parts");

  auto header = readOneFile(first, withTokens);
  if (!header) return header;
  header->files = {first};
  const auto countKey = header->metadata.find("split.count");
  if (countKey == header->metadata.end() || !countKey->is_number_integer() || *countKey <= 1) return header;
  const auto count = countKey->get<int64_t>();
  if (count > kMaxParts)
    return failure(first.string() + ": split.count", fmt::format("{}", count), fmt::format("at most {} parts", kMaxParts));
  const auto name = ggufPartName(first.filename().string());
  if (!name || name->count != count)
    return failure(first.string(), fmt::format("a split file of {} parts under this name", count),
                   fmt::format("a name that ends in -00001-of-{:05}.gguf", count), "give the parts their original names");

  std::vector<std::string> missing;
  for (int64_t number = 2; number <= count; ++number)
    if (!std::filesystem::exists(folder / nameOfPart(*name, number, count))) missing.push_back(nameOfPart(*name, number, count));
  if (!missing.empty()) {
    const size_t shown = std::min<size_t>(missing.size(), 4);
    std::string names = fmt::format("{}", fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < missing.size()) names += fmt::format(", … {}", missing.back());
    return failure(first.string(), fmt::format("{} of {} parts missing ({})", missing.size(), count, names),
                   "all parts in one folder", "download the missing parts");
  }
  for (int64_t number = 2; number <= count; ++number) {
    auto next = readOneFile(folder / nameOfPart(*name, number, count), false);
    if (!next) return next;
    const auto says = [&](const char* key, int64_t expected) {
      const auto given = next->metadata.find(key);
      return given == next->metadata.end() || !given->is_number_integer() || *given == expected;
    };
    if (!says("split.no", number - 1) || !says("split.count", count))
      return failure((folder / nameOfPart(*name, number, count)).string(),
                     fmt::format("part {} of {}", next->metadata.value("split.no", int64_t{-1}) + 1,
                                 next->metadata.value("split.count", count)),
                     fmt::format("part {} of {}", number, count), "give the parts their original names");
    const int index = static_cast<int>(header->files.size());
    for (auto& tensor : next->tensors) tensor.file = index;
    for (auto& tensor : next->unknownTensors) tensor.file = index;
    std::move(next->tensors.begin(), next->tensors.end(), std::back_inserter(header->tensors));
    std::move(next->unknownTensors.begin(), next->unknownTensors.end(), std::back_inserter(header->unknownTensors));
    std::move(next->warnings.begin(), next->warnings.end(), std::back_inserter(header->warnings));
    header->files.push_back(folder / nameOfPart(*name, number, count));
  }
  std::set<std::string_view> names;
  for (const auto& tensor : header->tensors)
    if (!names.insert(tensor.name).second)
      return failure(first.string(), fmt::format("tensor {} in two parts", printable(tensor.name)), "each tensor in one part",
                     "the parts do not belong together");
  const auto total = header->metadata.find("split.tensors.count");
  const auto found = static_cast<int64_t>(header->tensors.size() + header->unknownTensors.size());
  if (total != header->metadata.end() && total->is_number_integer() && total->get<int64_t>() != found)
    return failure(first.string(), fmt::format("{} tensors in all parts", found),
                   fmt::format("{} (split.tensors.count)", total->get<int64_t>()), "the parts do not belong together");
  return header;
}

}  // namespace headroom
