// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, or as a GGUF with a tokenizer; where it opens, texts through it and back.
#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz_folder.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;
  const bool isGguf = size >= 4 && std::string_view(reinterpret_cast<const char*>(data), 4) == "GGUF";
  const char* name = isGguf ? "model.gguf" : "tokenizer.json";
  test::writeFile(name, data, size);
  const auto opened = engine::Tokenizer::open(isGguf ? test::fuzzFolder() / name : test::fuzzFolder());
  if (!opened) return 0;
  for (const char* text :
       {"", "Hello, world! It's 42.", "  \n\t na\xC3\xAFve \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x99\x82", "\xFF\x80 bad"}) {
    const auto ids = (*opened)->encode(text, true);
    for (const int32_t id : ids) (void)(*opened)->tokenBytes(id);
    (void)(*opened)->decode(ids, true);
  }
  return 0;
}
