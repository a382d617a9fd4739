// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer.h"

#include "engine/text/pipeline.h"

namespace headroom::engine {

Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const std::filesystem::path& path) {
  std::error_code error;
  if (path.extension() == ".gguf") return text::openGgufTokenizer(path);
  const bool folder = std::filesystem::is_directory(path, error);
  // A config.json stands for its folder.
  const auto place = folder ? path : path.filename() == "config.json" ? path.parent_path() : std::filesystem::path();
  const auto file = place.empty() ? path : place / "tokenizer.json";
  if (!std::filesystem::exists(file, error)) {
    const bool sentencePiece = !place.empty() && std::filesystem::exists(place / "tokenizer.model", error);
    return failure(file.string(), sentencePiece ? "only tokenizer.model" : "no such file", "a tokenizer.json",
                   sentencePiece ? "convert it: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
                                 : "copy the tokenizer's files beside the weights");
  }
  return text::openTokenizerJson(file);
}

}  // namespace headroom::engine
