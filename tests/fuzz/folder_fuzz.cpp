// SPDX-License-Identifier: Apache-2.0
// Any bytes as one of the files of a model's folder, beside good ones.
#include "core/model/embedding_config.h"
#include "core/model/tensor_inventory.h"
#include "tests/fuzz/fuzz_folder.h"

#include <string_view>

using namespace headroom;

namespace {

struct File {
  const char* name;
  std::string_view good;
};
constexpr File kFiles[] = {
    {"config.json",
     R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":32})"},
    {"model.safetensors.index.json", R"({"weight_map":{"model.norm.weight":"model-00001-of-00001.safetensors"}})"},
    {"generation_config.json", R"({"eos_token_id":[1,2]})"},
    {"modules.json", R"([{"path":"","type":"a.Transformer"},{"path":"","type":"a.Pooling"},{"path":"","type":"a.Normalize"}])"},
    {"hf_quant_config.json", R"({"quantization":{"quant_algo":"FP8"}})"},
    {"model-00001-of-00001.safetensors",
     {"\x48\0\0\0\0\0\0\0{\"model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[8],\"data_offsets\":[0,16]}}0123456789abcdef",
      96}}};

void write(const char* name, std::string_view bytes) {
  test::writeFile(name, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > 16384) return 0;
  static const bool written = [] {
    for (const File& file : kFiles)
      if (file.name != std::string_view("hf_quant_config.json")) write(file.name, file.good);
    return true;
  }();
  (void)written;
  const File& file = kFiles[data[0] % std::size(kFiles)];
  test::writeFile(file.name, data + 1, size - 1);
  if (const auto model = openModel(test::fuzzFolder().string())) (void)readEmbeddingConfig(*model);
  write(file.name, file.good);
  return 0;
}
