// SPDX-License-Identifier: Apache-2.0
#include "core/model/embedding_config.h"

#include "core/json_text.h"
#include "core/model/config_reader.h"
#include "core/model/file_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames{std::pair{Pooling::Last, std::string_view("last")},
                            std::pair{Pooling::First, std::string_view("cls")},
                            std::pair{Pooling::Mean, std::string_view("mean")},
                            std::pair{Pooling::Max, std::string_view("max")},
                            std::pair{Pooling::MeanSqrtLength, std::string_view("mean_sqrt_len")},
                            std::pair{Pooling::WeightedMean, std::string_view("weighted_mean")}};

// As sentence-transformers calls them: a switch each, and one name since its version 5.2.
constexpr std::array kSwitches{std::pair{Pooling::Last, std::string_view("pooling_mode_lasttoken")},
                               std::pair{Pooling::First, std::string_view("pooling_mode_cls_token")},
                               std::pair{Pooling::Mean, std::string_view("pooling_mode_mean_tokens")},
                               std::pair{Pooling::Max, std::string_view("pooling_mode_max_tokens")},
                               std::pair{Pooling::MeanSqrtLength, std::string_view("pooling_mode_mean_sqrt_len_tokens")},
                               std::pair{Pooling::WeightedMean, std::string_view("pooling_mode_weightedmean_tokens")}};
constexpr std::array kModes{std::pair{std::string_view("lasttoken"), Pooling::Last},
                            std::pair{std::string_view("cls"), Pooling::First},
                            std::pair{std::string_view("mean"), Pooling::Mean},
                            std::pair{std::string_view("max"), Pooling::Max},
                            std::pair{std::string_view("mean_sqrt_len_tokens"), Pooling::MeanSqrtLength},
                            std::pair{std::string_view("weightedmean"), Pooling::WeightedMean}};

constexpr const char* kWhatRuns = "a transformer, one pooling and a normalization";

// The text under a key; `absent` where there is none.
std::string textOf(const nlohmann::json& object, const char* key, std::string absent = {}) {
  if (!object.is_object()) return absent;
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : absent;
}

// Null where there is no such file.
Result<nlohmann::json> readJson(const fs::path& file) {
  std::error_code problem;
  if (!fs::exists(file, problem)) return nlohmann::json();
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  const auto all = readTextFile(file, kMostBytes);
  if (!all) return tl::unexpected(all.error());
  const size_t first = all->find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (*all)[first] != '[') return parsePythonJson(*all, file.string());
  auto list = readJsonText(*all);
  if (list.is_discarded()) return failure(file.string(), "a list that is no JSON", "JSON");
  return list;
}

Result<Pooling> readPooling(const fs::path& file) {
  const auto json = readJson(file);
  if (!json) return tl::unexpected(json.error());
  if (!json->is_object())
    return failure(file.string(), json->is_null() ? "no such file" : "no JSON object", "a pooling's configuration");
  std::optional<Error> error;
  const ConfigReader reader(*json, file.string(), error);
  std::optional<Pooling> found;
  for (const auto& [pooling, name] : kSwitches) {
    if (!reader.flag({name}).value_or(false)) continue;
    if (found) return failure(file.string(), "several poolings at once", kWhatRuns);
    found = pooling;
  }
  if (const auto mode =
          reader.has("pooling_mode") && json->at("pooling_mode").is_string() ? reader.text({"pooling_mode"}) : std::nullopt)
    for (const auto& [name, pooling] : kModes)
      if (*mode == name) found = pooling;
  if (error) return tl::unexpected(*error);
  if (!found) return failure(file.string(), "no pooling that is known", "one of cls, mean, max, last token, weighted mean");
  return *found;
}

// The modules of a sentence-transformers folder, in order.
Result<std::optional<EmbeddingConfig>> fromModules(const fs::path& folder) {
  const fs::path file = folder / "modules.json";
  const auto modules = readJson(file);
  if (!modules) return tl::unexpected(modules.error());
  if (modules->is_null()) return std::optional<EmbeddingConfig>();
  if (!modules->is_array()) return failure(file.string(), "no list", "the modules of a sentence-transformers model");
  std::optional<EmbeddingConfig> config;
  for (const auto& module : *modules) {
    const std::string type = textOf(module, "type");
    const std::string kind = type.substr(type.rfind('.') + 1);
    if (kind == "Pooling" && !config) {
      const auto pooling = readPooling(folder / textOf(module, "path", "1_Pooling") / "config.json");
      if (!pooling) return tl::unexpected(pooling.error());
      config = EmbeddingConfig{*pooling, false};
    } else if (kind == "Normalize" && config) {
      config->normalizes = true;
    } else if (kind != "Transformer" || config) {
      return failure(file.string(), fmt::format("a module of type {}", kind.empty() ? "that is not told" : kind), kWhatRuns);
    }
  }
  return config;
}

// llama.cpp's numbers. Its server normalizes all vectors, so files carry no word of it.
Result<std::optional<EmbeddingConfig>> fromGguf(const ModelSource& model) {
  const auto& metadata = model.ggufMetadata;
  const std::string key = textOf(metadata, "general.architecture") + ".pooling_type";
  if (!metadata.contains(key) || !metadata[key].is_number_integer()) return std::optional<EmbeddingConfig>();
  switch (metadata[key].get<int64_t>()) {
    case 0:
      return std::optional<EmbeddingConfig>();
    case 1:
      return std::optional(EmbeddingConfig{Pooling::Mean, true});
    case 2:
      return std::optional(EmbeddingConfig{Pooling::First, true});
    case 3:
      return std::optional(EmbeddingConfig{Pooling::Last, true});
    default:
      return failure(model.path.string(), fmt::format("{} {}", key, metadata[key].dump()), "0 to 3: none, mean, cls or last");
  }
}

}  // namespace

std::string_view poolingName(Pooling pooling) {
  for (const auto& [value, name] : kNames)
    if (value == pooling) return name;
  return {};
}

std::optional<Pooling> parsePooling(std::string_view name) {
  for (const auto& [value, known] : kNames)
    if (known == name) return value;
  return std::nullopt;
}

bool lacksHead(const ModelSource& model) {
  const auto& tensors = model.inventory.tensors;
  return model.canBeLoaded() && model.config.architecture.ends_with("Model") &&
         std::none_of(tensors.begin(), tensors.end(),
                      [](const TensorEntry& tensor) { return tensor.role == TensorRole::LmHead; });
}

Result<std::optional<EmbeddingConfig>> readEmbeddingConfig(const ModelSource& model) {
  if (model.ggufMetadata.is_object()) return fromGguf(model);
  if (model.folder.empty()) return std::optional<EmbeddingConfig>();
  auto config = fromModules(model.folder);
  if (!config || !*config) return config;
  const auto whole = readJson(model.folder / "config.json");
  if (!whole) return tl::unexpected(whole.error());
  if (!whole->is_object()) return config;
  const auto keys = languageModelKeys(*whole);
  if (keys.value("use_bidirectional_attention", nlohmann::json()) == true || keys.value("is_causal", nlohmann::json()) == false)
    return failure((model.folder / "config.json").string(), "attention to the tokens behind", "causal attention");
  return config;
}

}  // namespace headroom
