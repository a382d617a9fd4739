// SPDX-License-Identifier: Apache-2.0
// Opens what people name as MODEL: finds the files, reads their headers, and joins configuration and tensors.
#include "core/model/config_reader.h"
#include "core/model/engine_support.h"
#include "core/model/file_head.h"
#include "core/model/gguf_config.h"
#include "core/model/gguf_header.h"
#include "core/model/model_catalog.h"
#include "core/model/safetensors_header.h"
#include "core/model/tensor_inventory.h"
#include "core/model/tensor_split.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxConfigBytes = 64 << 20;
constexpr int64_t kMaxIndexBytes = 512 << 20;
constexpr size_t kShownDifferences = 4;
constexpr const char* kIndexName = "model.safetensors.index.json";

bool fileExists(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

bool isFolder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

// Names of the folder's files, sorted; empty when it cannot be read.
std::vector<std::string> filesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string shortList(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kShownDifferences);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Result<ModelConfig> readConfigFile(const fs::path& file) {
  const auto text = readTextFile(file, kMaxConfigBytes);
  if (!text) return tl::unexpected(text.error());
  auto config = parseModelConfig(*text, file.string());
  if (!config) return config;
  // NVIDIA's checkpoints may describe their quantization in a file of its own.
  const fs::path separate = file.parent_path() / "hf_quant_config.json";
  if (!config->quantization && fileExists(separate)) {
    const auto quantText = readTextFile(separate, kMaxConfigBytes);
    if (!quantText) return tl::unexpected(quantText.error());
    const auto quant = parsePythonJson(*quantText, separate.string());
    if (!quant) return tl::unexpected(quant.error());
    if (const auto inner = quant->find("quantization"); inner != quant->end() && inner->is_object()) {
      nlohmann::json joined = config->raw;
      joined["quantization_config"] = *inner;
      joined["quantization_config"]["quant_method"] = "modelopt";
      config = parseModelConfig(joined.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), file.string());
      if (!config) return config;
    }
  }
  const std::string folder = file.parent_path().filename().string();
  if (file.filename() == "config.json" && !folder.empty()) config->name = folder;
  return config;
}

// The files that the index names, in order of their names; each must be there.
Result<std::vector<fs::path>> shardsOfIndex(const fs::path& folder) {
  const fs::path index = folder / kIndexName;
  const auto text = readTextFile(index, kMaxIndexBytes);
  if (!text) return tl::unexpected(text.error());
  const auto json = parsePythonJson(*text, index.string());
  if (!json) return tl::unexpected(json.error());
  const auto map = json->find("weight_map");
  if (map == json->end() || !map->is_object() || map->empty())
    return failure(index.string(), "no weight_map", "a map from tensors to files");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      return failure(index.string() + ": weight_map", file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                     "a file name");
    const std::string name = file.get<std::string>();
    if (name.empty() || fs::path(name).filename() != fs::path(name) || name == "..")
      return failure(index.string() + ": weight_map", name, "a file name without folders");
    names.insert(name);
  }
  std::vector<fs::path> shards;
  std::vector<std::string> missing;
  for (const auto& name : names) {
    shards.push_back(folder / name);
    if (!fileExists(shards.back())) missing.push_back(name);
  }
  if (!missing.empty())
    return failure(folder.string(), fmt::format("{} of {} shards missing ({})", missing.size(), names.size(), shortList(missing)),
                   "all files of " + std::string(kIndexName), "download the missing files");
  return shards;
}

// The safetensors files of a model folder; empty when it has none.
Result<std::vector<fs::path>> weightFilesOf(const fs::path& folder) {
  if (fileExists(folder / kIndexName)) return shardsOfIndex(folder);
  if (fileExists(folder / "model.safetensors")) return std::vector<fs::path>{folder / "model.safetensors"};
  std::vector<fs::path> shards;
  int64_t promised = 0;
  for (const auto& name : filesIn(folder)) {
    if (!name.ends_with(".safetensors") || name.starts_with("adapter_") || name.starts_with("consolidated")) continue;
    int number = 0, count = 0;
    if (std::sscanf(name.c_str(), "model-%5d-of-%5d.safetensors", &number, &count) == 2)
      promised = std::max<int64_t>(promised, count);
    shards.push_back(folder / name);
  }
  if (promised > static_cast<int64_t>(shards.size()))
    return failure(folder.string(), fmt::format("{} of {} shards and no {}", shards.size(), promised, kIndexName), "all shards",
                   "download the missing files");
  return shards;
}

// "…experts.7.gate_proj.weight" as the formula names all experts together: "…experts.*.gate_proj.weight".
std::string nameOfAllExperts(const std::string& name) {
  const size_t at = name.find("experts.");
  if (at == std::string::npos) return name;
  const size_t begin = at + 8, end = name.find('.', begin);
  if (end == std::string::npos || end == begin ||
      !std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin), name.begin() + static_cast<std::ptrdiff_t>(end),
                   [](char c) { return c >= '0' && c <= '9'; }))
    return name;
  return name.substr(0, begin) + "*" + name.substr(end);
}

// What the formula expects, found by the names that the files use: with other prefixes, and one tensor for each expert.
class FormulaIndex {
 public:
  explicit FormulaIndex(const TensorInventory& formula) {
    for (const auto& entry : formula.tensors) m_byName.emplace(stem(entry.name), &entry);
  }

  const TensorEntry* find(const std::string& name) const {
    auto found = m_byName.find(stem(name));
    if (found == m_byName.end()) found = m_byName.find(stem(nameOfAllExperts(name)));
    return found == m_byName.end() ? nullptr : found->second;
  }

 private:
  // Savers put "model." and "language_model." before the same names in several orders.
  static std::string stem(std::string_view name) {
    for (bool again = true; again;) {
      again = false;
      for (std::string_view prefix : {"model.", "language_model.", "transformer.", "backbone."})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size()), again = true;
    }
    return std::string(name);
  }

  std::map<std::string, const TensorEntry*, std::less<>> m_byName;
};

// The shape and split of one expert's part of a formula entry.
struct ExpectedTensor {
  std::vector<int64_t> shape;
  int splitDim = -1;
};

ExpectedTensor expectedOf(const TensorEntry& formula, const std::string& name) {
  ExpectedTensor expected{formula.shape, formula.splitDim};
  if (formula.name.find("experts.*.") == std::string::npos || name.find("experts.*.") != std::string::npos ||
      expected.shape.empty())
    return expected;
  expected.shape.erase(expected.shape.begin());
  if (expected.splitDim >= 0) --expected.splitDim;
  return expected;
}

// Differences between the files and the formula become warnings, the first of each kind by name.
void compareWithFormula(const TensorInventory& formula, const FormulaIndex& index, const TensorInventory& files,
                        ModelConfig& config) {
  std::vector<std::string> different, additional, missing;
  std::set<const TensorEntry*> seen;
  for (const auto& entry : files.tensors) {
    const TensorEntry* known = index.find(entry.name);
    if (!known) {
      if (entry.role == TensorRole::Other) additional.push_back(entry.name);
      continue;
    }
    seen.insert(known);
    const auto expected = expectedOf(*known, entry.name);
    if (expected.shape != entry.shape)
      different.push_back(fmt::format("{} has shape [{}], by the configuration [{}]", entry.name, fmt::join(entry.shape, ", "),
                                      fmt::join(expected.shape, ", ")));
  }
  for (const auto& entry : formula.tensors) {
    if (seen.contains(&entry) || !entry.loaded) continue;
    // Embedding models are saved by a class without a head, which names itself so.
    if (entry.role == TensorRole::LmHead && config.architecture.ends_with("Model")) continue;
    missing.push_back(entry.name);
  }
  for (size_t i = 0; i < std::min(different.size(), kShownDifferences); ++i) config.warnings.push_back(different[i]);
  if (different.size() > kShownDifferences)
    config.warnings.push_back(fmt::format("{} more tensors differ from the configuration", different.size() - kShownDifferences));
  if (!missing.empty())
    config.warnings.push_back(
        fmt::format("the files lack {} tensors that the configuration expects: {}", missing.size(), shortList(missing)));
  if (!additional.empty())
    config.warnings.push_back(fmt::format("the files hold {} tensors that the configuration does not tell of: {}",
                                          additional.size(), shortList(additional)));
  if (!missing.empty() || !different.empty()) config.missingInEngine.push_back("tensors that do not follow the configuration");
}

// Stored, but not what an engine holds.
bool isLoaded(const TensorEntry& entry, const ModelConfig& config) {
  if (entry.name.ends_with("rotary_emb.inv_freq") || entry.name.ends_with("rotary_pos_emb.inv_freq")) return false;
  if (entry.layer >= config.layerCount()) return false;
  for (const char* speaking : {"talker.", "token2wav.", "code2wav."})  // servers of text leave them alone
    if (entry.name.starts_with(speaking)) return false;
  return !(entry.role == TensorRole::LmHead && config.tieWordEmbeddings);
}

// Names that only the family knows get role and split from the formula, where the shapes agree.
void adoptExpected(TensorEntry& entry, const TensorEntry* formula) {
  if (!formula) return;
  const auto expected = expectedOf(*formula, entry.name);
  if (expected.shape != entry.shape) return;
  entry.role = formula->role;
  entry.splitDim = expected.splitDim;
  entry.segments = formula->segments;
  // Packed weights count what they stand for.
  if (formula->logicalParameters)
    entry.logicalParameters = formula->shape == entry.shape
                                  ? *formula->logicalParameters
                                  : *formula->logicalParameters / std::max<int64_t>(1, formula->shape.front());
}

// The files decide which type the weights have; config.json may name the one of training.
void takeStoredDType(ModelSource& source) {
  if (source.config.quantization) return;
  std::map<DType, int64_t> bytes;
  for (const auto& tensor : source.inventory.tensors)
    if (isFloating(tensor.dtype)) bytes[tensor.dtype] += tensor.storedBytes().count();
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end() || most->first == source.config.dtype) return;
  source.config.warnings.push_back(
      fmt::format("config.json says {}, the files hold {}", dtypeName(source.config.dtype), dtypeName(most->first)));
  source.config.dtype = most->first;
}

Result<ModelSource> openGguf(const fs::path& file);

// Models among a folder's GGUF files, one name each: the first part of a split file stands for all, also when it is not there.
// Projectors of images and sound (mmproj-*) belong to a model and are none.
std::vector<std::string> ggufModelsIn(const std::vector<std::string>& names) {
  std::set<std::string> models;
  for (const auto& name : names) {
    if (!name.ends_with(".gguf") || name.starts_with("mmproj")) continue;
    const auto part = ggufPartName(name);
    models.insert(part ? fmt::format("{}-00001-of-{:05}.gguf", part->prefix, part->count) : name);
  }
  return {models.begin(), models.end()};
}

// A file of the model that is there: the first part, or one of the later ones, whose reader says what is missing.
fs::path anyPartOf(const fs::path& folder, const std::string& model, const std::vector<std::string>& names) {
  const auto first = ggufPartName(model);
  for (const auto& name : names) {
    const auto part = ggufPartName(name);
    if (name == model || (first && part && part->prefix == first->prefix && part->count == first->count)) return folder / name;
  }
  return folder / model;
}

Result<ModelSource> openFolder(const fs::path& folder) {
  std::error_code unreadable;
  if (fs::directory_iterator(folder, unreadable); unreadable)
    return failure(folder.string(), unreadable.message(), "a model folder that can be read");
  const auto names = filesIn(folder);
  if (names.empty())
    return failure(folder.string(), "an empty folder", "a model folder with config.json", "download the model again");
  if (!fileExists(folder / "config.json")) {
    if (const auto link = explainBrokenLink(folder / "config.json", "a configuration")) return tl::unexpected(*link);
    const auto ggufs = ggufModelsIn(names);
    if (ggufs.size() == 1) return openGguf(anyPartOf(folder, ggufs.front(), names));
    if (!ggufs.empty())
      return failure(folder.string(), fmt::format("several GGUF models ({}) and no config.json", shortList(ggufs)),
                     "a model folder with config.json, or with one GGUF model", "give the .gguf file itself");
    if (fileExists(folder / "adapter_config.json"))
      return failure(folder.string(), "an adapter (adapter_config.json) without config.json", "a whole model",
                     "merge the adapter into its base model first");
    if (fileExists(folder / "params.json") || fileExists(folder / "consolidated.safetensors"))
      return failure(folder.string(), "a model in its maker's own format (params.json) without config.json",
                     "a model folder with config.json", "download the Hugging Face files of the model");
    if (fileExists(folder / "tokenizer.json") || fileExists(folder / "tokenizer_config.json") ||
        fileExists(folder / "tokenizer.model"))
      return failure(folder.string(), "a tokenizer and no config.json", "a model folder with config.json",
                     "download the model's other files");
    return failure(folder.string(), fmt::format("no config.json among {}", shortList(names)), "a model folder with config.json",
                   "is it a folder above or below?");
  }
  auto config = readConfigFile(folder / "config.json");
  if (!config) return tl::unexpected(config.error());
  ModelSource source;
  source.config = std::move(*config);
  source.path = source.folder = folder;

  // generation_config.json knows further end tokens (Llama 3: <|eot_id|>).
  if (const auto text = readTextFile(folder / "generation_config.json", kMaxConfigBytes); text) {
    std::optional<Error> ignored;
    if (const auto json = parsePythonJson(*text, "generation_config.json")) {
      const ConfigReader keys(*json, "generation_config.json", ignored);
      const auto* eos = keys.find({"eos_token_id"});
      std::vector<int64_t> ids;
      if (eos && eos->is_array())
        ids = keys.integers({"eos_token_id"}, 0, INT32_MAX);
      else if (const auto id = keys.integer({"eos_token_id"}, 0, INT32_MAX))
        ids = {*id};
      for (int64_t id : ids)
        if (auto& list = source.config.eosTokenIds; std::find(list.begin(), list.end(), id) == list.end())
          list.push_back(static_cast<int32_t>(id));
    }
  }

  const TensorInventory formula = inventoryOfConfig(source.config);
  const FormulaIndex index(formula);
  auto files = weightFilesOf(folder);
  if (!files) return tl::unexpected(files.error());
  if (files->empty()) {
    if (const auto ggufs = ggufModelsIn(names); ggufs.size() == 1) return openGguf(anyPartOf(folder, ggufs.front(), names));
    const bool pickled = std::any_of(names.begin(), names.end(), [](const auto& name) {
      return name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt");
    });
    source.config.warnings.push_back(pickled
                                         ? "the weights are PyTorch pickles, which are not read: sizes follow the configuration"
                                         : "no weight files in the folder: sizes follow the configuration");
    source.inventory = formula;
    return source;
  }

  std::map<std::string, fs::path, std::less<>> owner;
  for (const auto& file : *files) {
    const auto header = readSafetensorsHeader(file);
    if (!header) return tl::unexpected(header.error());
    for (const auto& warning : header->warnings) source.config.warnings.push_back(warning);
    const int fileIndex = static_cast<int>(source.weightFiles.size());
    source.weightFiles.push_back(file);
    for (const auto& tensor : header->tensors) {
      if (const auto [first, inserted] = owner.emplace(tensor.name, file); !inserted)
        return failure(file.string(),
                       fmt::format("tensor {} once more (first in {})", tensor.name, first->second.filename().string()),
                       "each tensor in one file", "remove the files that do not belong to the model");
      TensorEntry entry;
      entry.name = tensor.name;
      const TensorName name = readTensorName(tensor.name, source.config);
      entry.role = name.role;
      entry.layer = name.layer;
      entry.expert = name.expert;
      entry.dtype = tensor.dtype;
      entry.shape = tensor.shape;
      entry.location = TensorLocation{fileIndex, tensor.offset, tensor.bytes};
      const TensorEntry* expected = index.find(tensor.name);
      if (!assignSplit(entry, source.config) || entry.role == TensorRole::Other) adoptExpected(entry, expected);
      entry.loaded = isLoaded(entry, source.config) && (!expected || expected->loaded || expected->role == TensorRole::LmHead);
      source.inventory.tensors.push_back(std::move(entry));
    }
  }
  source.origin = ModelSource::Origin::SafetensorsHeaders;
  takeStoredDType(source);
  // A head that the files do not have can only be the embedding.
  if (!source.config.tieWordEmbeddings && !source.inventory.find(TensorRole::LmHead) &&
      source.inventory.find(TensorRole::TokenEmbedding)) {
    source.config.tieWordEmbeddings = true;
    source.config.warnings.push_back("the files hold no lm_head: the embedding is taken for it");
  }
  compareWithFormula(formula, index, source.inventory, source.config);
  noteMissingFormats(source);
  return source;
}

// The floats of a small F32 tensor; empty when they cannot be read.
std::vector<double> readFloats(const GgufHeader& header, std::string_view name) {
  for (const auto& tensor : header.tensors) {
    if (tensor.name != name || tensor.dtype != DType::F32 || tensor.bytes.count() > 65536) continue;
    std::ifstream stream(header.files[static_cast<size_t>(tensor.file)], std::ios::binary);
    std::string raw(static_cast<size_t>(tensor.bytes.count()), '\0');
    if (!stream.seekg(tensor.offset) || !stream.read(raw.data(), tensor.bytes.count())) return {};
    std::vector<double> values(raw.size() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
      float value = 0;
      std::memcpy(&value, raw.data() + i * sizeof(float), sizeof(float));
      values[i] = value;
    }
    return values;
  }
  return {};
}

// Frequency divisors stand in tensors: rope_freqs (Llama 3's scaling, worked out) or rope_factors_long and _short.
Status readRopeTensors(const GgufHeader& header, const std::string& where, RopeParameters& rope) {
  const auto fits = [&](const std::vector<double>& factors) {
    return static_cast<int64_t>(factors.size()) * 2 == rope.rotaryDim &&
           std::all_of(factors.begin(), factors.end(), [](double f) { return f > 0 && f < 1e9; });
  };
  const auto frequencies = readFloats(header, "rope_freqs.weight");
  const auto longFactors = readFloats(header, "rope_factors_long.weight"),
             shortFactors = readFloats(header, "rope_factors_short.weight");
  if (!frequencies.empty()) {
    if (!fits(frequencies))
      return failure(where + ": rope_freqs.weight", fmt::format("{} values", frequencies.size()),
                     fmt::format("{} positive divisors", rope.rotaryDim / 2));
    rope.scaling = RopeScaling::LongRope;
    rope.shortFactors = rope.longFactors = frequencies;
    rope.attentionFactor = 1.0;
  } else if (!longFactors.empty() || !shortFactors.empty()) {
    if (!fits(longFactors) || !fits(shortFactors))
      return failure(where + ": rope_factors_long/short.weight",
                     fmt::format("{} and {} values", longFactors.size(), shortFactors.size()),
                     fmt::format("{} positive divisors each", rope.rotaryDim / 2));
    rope.scaling = RopeScaling::LongRope;
    rope.longFactors = longFactors;
    rope.shortFactors = shortFactors;
  }
  return {};
}

// What people call a GGUF: its file's name without the shard and the type ("SmolLM2-135M-Instruct.Q4_1.gguf" is SmolLM2-135M-Instruct). A file that is named by
// its type alone goes by general.name, which converters often fill with the name of a training run.
std::string nameOfGguf(const fs::path& file, const std::string& generalName) {
  std::string name = file.stem().string();
  auto cut = [&](const char* pattern) { name = std::regex_replace(name, std::regex(pattern, std::regex::icase), ""); };
  cut("-[0-9]{5}-of-[0-9]{5}$");
  cut("(^|[-._])(I?Q[1-8]_[A-Z0-9_]+|TQ[12]_0|MXFP4(_MOE)?|(B?F|FP)(16|32))$");
  if (!name.empty()) return name;
  return generalName.empty() ? file.stem().string() : generalName;
}

Result<ModelSource> openGguf(const fs::path& file) {
  auto header = readGgufHeader(file, false);
  if (!header) return tl::unexpected(header.error());
  auto config = configOfGguf(*header, header->files.front().string());
  if (!config) return tl::unexpected(config.error());
  if (auto rope = readRopeTensors(*header, file.string(), config->rope); !rope) return tl::unexpected(rope.error());

  ModelSource source;
  source.config = std::move(*config);
  source.config.name = nameOfGguf(file, source.config.name);
  source.origin = ModelSource::Origin::GgufHeader;
  source.path = header->files.front();
  source.folder = file.parent_path();
  source.weightFiles = header->files;
  source.ggufMetadata = std::move(header->metadata);
  for (auto& warning : header->warnings) source.config.warnings.push_back(warning);
  std::vector<std::string> different;
  for (const auto& tensor : header->tensors) {
    TensorEntry entry;
    entry.name = tensor.name;
    const TensorName name = readGgufTensorName(tensor.name, source.config);
    entry.role = name.role;
    entry.layer = name.layer;
    entry.dtype = tensor.dtype;
    entry.shape = tensor.shape;
    entry.location = TensorLocation{tensor.file, tensor.offset, tensor.bytes};
    entry.loaded = isLoaded(entry, source.config);
    if (!assignSplit(entry, source.config))
      different.push_back(
          fmt::format("{} has shape [{}], which does not follow the metadata", entry.name, fmt::join(entry.shape, ", ")));
    source.inventory.tensors.push_back(std::move(entry));
  }
  if (!different.empty()) {
    source.config.missingInEngine.push_back("tensors whose shapes do not follow the metadata");
    for (size_t i = 0; i < std::min(different.size(), kShownDifferences); ++i) source.config.warnings.push_back(different[i]);
  }
  for (const auto& tensor : header->unknownTensors) {
    TensorEntry entry;
    entry.name = tensor.name;
    entry.layer = readGgufTensorName(tensor.name, source.config).layer;
    entry.dtype = DType::U8;
    entry.shape = {tensor.bytesUpToNext.count()};
    entry.location = TensorLocation{tensor.file, tensor.offset, tensor.bytesUpToNext};
    int64_t elements = 1;
    for (int64_t extent : tensor.shape) elements *= extent;
    entry.logicalParameters = elements;
    source.inventory.tensors.push_back(std::move(entry));
  }
  if (!header->unknownTensors.empty())
    source.config.missingInEngine.push_back(fmt::format("tensor type {}", header->unknownTensors.front().type));
  noteMissingFormats(source);
  return source;
}

Result<ModelSource> openConfigFile(const fs::path& file) {
  const fs::path folder = file.parent_path();
  if (file.filename() == "config.json") {
    const auto names = filesIn(folder);
    const bool weights = std::any_of(names.begin(), names.end(),
                                     [](const auto& name) { return name.ends_with(".safetensors") || name == kIndexName; });
    const bool weightsHere =
        std::any_of(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".safetensors"); });
    if (weights && weightsHere) return openFolder(folder);
  }
  auto config = readConfigFile(file);
  if (!config) return tl::unexpected(config.error());
  ModelSource source;
  source.config = std::move(*config);
  source.inventory = inventoryOfConfig(source.config);
  source.path = file;
  source.folder = folder;
  return source;
}

Result<ModelSource> openCatalogModel(const CatalogModel& entry) {
  auto config = parseModelConfig(entry.config.dump(), "catalog: " + entry.name);
  if (!config) return tl::unexpected(config.error());
  ModelSource source;
  source.config = std::move(*config);
  source.config.name = entry.name;
  source.inventory = inventoryOfConfig(source.config);
  source.origin = ModelSource::Origin::Catalog;
  return source;
}

}  // namespace

Result<ModelSource> openModel(const std::string& model) {
  if (model.empty()) return failure("MODEL", "an empty name", "a config.json, a model folder, a .gguf file or a catalog name");
  std::error_code code;
  const fs::path path = fs::absolute(model, code).lexically_normal();
  if (!code && isFolder(path)) return openFolder(path.has_filename() ? path : path.parent_path());
  if (!code && fileExists(path)) {
    const std::string name = path.filename().string();
    if (name.ends_with(".safetensors"))
      return fileExists(path.parent_path() / "config.json") ? openFolder(path.parent_path())
                                                            : failure(path.string(), "weights without config.json beside them",
                                                                      "a model folder", "download the model's other files");
    if (name.ends_with(".json")) return openConfigFile(path);
    const auto head = readFileHead(path, 8);
    if (!head) return tl::unexpected(head.error());
    if (name.find(".gguf") != std::string::npos || head->starts_with("GGUF")) return openGguf(path);
    if (head->starts_with("{")) return openConfigFile(path);
    return failure(path.string(), fmt::format("a file that begins {}", describeBytes(*head)),
                   "a config.json, a model folder or a .gguf file");
  }
  if (const auto link = explainBrokenLink(path, "a config.json, a model folder or a .gguf file")) return tl::unexpected(*link);
  if (const CatalogModel* entry = findCatalogModel(model)) return openCatalogModel(*entry);
  return failure(model, "no such file or folder, and no model of this name in the catalog",
                 "a config.json, a model folder, a .gguf file or a catalog name such as Qwen/Qwen2.5-72B-Instruct",
                 model.find('/') == std::string::npos ? "check the spelling" : "download the model first, or check the spelling");
}

}  // namespace headroom
