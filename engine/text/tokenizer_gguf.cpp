// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pipeline.h"

namespace headroom::engine::text {
Result<std::unique_ptr<Tokenizer>> openGgufTokenizer(const std::filesystem::path& file) {
  return failure(file.string(), "a GGUF tokenizer", "a tokenizer.json");
}
}  // namespace headroom::engine::text
