// SPDX-License-Identifier: Apache-2.0
// config.json of the families, normalized; wrong values named.
#include "core/model/model_config.h"

#include <QtTest>

using namespace headroom;

namespace {

// A small Llama with keys replaced or added.
std::string llama(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json config = {{"model_type", "llama"},
                           {"architectures", {"LlamaForCausalLM"}},
                           {"hidden_size", 64},
                           {"num_hidden_layers", 4},
                           {"num_attention_heads", 8},
                           {"num_key_value_heads", 2},
                           {"intermediate_size", 160},
                           {"vocab_size", 300},
                           {"max_position_embeddings", 512},
                           {"torch_dtype", "float16"},
                           {"rms_norm_eps", 1e-6}};
  for (const auto& [key, value] : changes.items()) config[key] = value;
  return config.dump();
}

ModelConfig parsed(const std::string& text) {
  const auto config = parseModelConfig(text, "config.json");
  if (!config) qFatal("%s", config.error().message().c_str());
  return *config;
}

bool mentions(const std::vector<std::string>& list, const char* words) {
  return std::any_of(list.begin(), list.end(), [&](const auto& text) { return text.find(words) != std::string::npos; });
}

}  // namespace

class ModelConfigTest : public QObject {
  Q_OBJECT

 private slots:
  void readsLlama() {
    const ModelConfig config = parsed(llama({{"eos_token_id", {2, 7}}, {"bos_token_id", 1}, {"rope_theta", 500000.0}}));
    QCOMPARE(config.layerCount(), 4);
    QCOMPARE(config.headDim, 8);
    QCOMPARE(config.kvHeads, 2);
    QVERIFY(config.dtype == DType::F16);
    QCOMPARE(config.rope.theta, 500000.0);
    QCOMPARE(config.rope.rotaryDim, 8);
    QVERIFY(config.rope.style == RopeStyle::Neox);
    QCOMPARE(config.decoder.normEpsilon, 1e-6);
    QVERIFY((config.eosTokenIds == std::vector<int32_t>{2, 7}));
    QCOMPARE(*config.bosTokenId, 1);
    QVERIFY(!config.tieWordEmbeddings && !config.checkpoint.qkvBias);
    QVERIFY(config.missingInEngine.empty());
    QVERIFY(config.warnings.empty());
    QVERIFY(config.layers[3].attention == AttentionKind::Full && config.layers[3].rope &&
            config.layers[3].intermediateSize == 160);
  }

  void knowsWhatTheFamiliesDoNotSay() {
    const ModelConfig qwen2 = parsed(llama({{"model_type", "qwen2"}, {"sliding_window", 128}, {"use_sliding_window", false}}));
    QVERIFY(qwen2.checkpoint.qkvBias && !qwen2.checkpoint.outputBias);
    QVERIFY(qwen2.layers[0].attention == AttentionKind::Full);
    QVERIFY(qwen2.missingInEngine.empty());

    const ModelConfig qwen3 = parsed(llama({{"model_type", "qwen3"}, {"head_dim", 16}}));
    QVERIFY(qwen3.decoder.qkNorm && qwen3.headDim == 16 && qwen3.missingInEngine.empty());

    const ModelConfig mistral = parsed(llama({{"model_type", "mistral"}, {"sliding_window", 128}}));
    QVERIFY(mistral.layers[2].attention == AttentionKind::SlidingWindow && mistral.layers[2].window == 128);
    QVERIFY(mistral.missingInEngine.empty());
    QVERIFY(parsed(llama({{"model_type", "mistral"}, {"sliding_window", nullptr}})).layers[2].attention == AttentionKind::Full);

    const ModelConfig smollm3 = parsed(llama({{"model_type", "smollm3"}}));
    QVERIFY(smollm3.tieWordEmbeddings && smollm3.layers[2].rope && !smollm3.layers[3].rope && smollm3.missingInEngine.empty());

    const ModelConfig gemma2 = parsed(llama({{"model_type", "gemma2"},
                                             {"sliding_window", 64},
                                             {"hidden_activation", "gelu_pytorch_tanh"},
                                             {"attn_logit_softcapping", 50.0},
                                             {"final_logit_softcapping", 30.0},
                                             {"query_pre_attn_scalar", 16}}));
    QVERIFY(gemma2.tieWordEmbeddings && gemma2.decoder.postNorm && gemma2.decoder.preNorm);
    QCOMPARE(gemma2.decoder.attentionScale, 0.25);
    QCOMPARE(gemma2.decoder.embeddingMultiplier, 8.0);
    QCOMPARE(gemma2.decoder.normWeightOffset, 1.0);
    QVERIFY(gemma2.layers[0].attention == AttentionKind::SlidingWindow && gemma2.layers[1].attention == AttentionKind::Full);
    QVERIFY(gemma2.missingInEngine.empty());

    const ModelConfig gemma3 = parsed(llama({{"model_type", "gemma3_text"},
                                             {"num_hidden_layers", 12},
                                             {"sliding_window", 64},
                                             {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}));
    QVERIFY(gemma3.layers[4].attention == AttentionKind::SlidingWindow && gemma3.layers[5].attention == AttentionKind::Full &&
            gemma3.layers[4].localRope && !gemma3.layers[5].localRope);
    QVERIFY(gemma3.rope.scaling == RopeScaling::Linear && gemma3.localRope.scaling == RopeScaling::None);
    QCOMPARE(gemma3.localRope.theta, 10000.0);
    QCOMPARE(gemma3.rope.theta, 1000000.0);

    const ModelConfig olmo2 = parsed(llama({{"model_type", "olmo2"}}));
    QVERIFY(!olmo2.decoder.preNorm && olmo2.decoder.postNorm && olmo2.decoder.qkNormFullWidth);

    const ModelConfig granite = parsed(llama({{"model_type", "granite"},
                                              {"logits_scaling", 4.0},
                                              {"attention_multiplier", 0.5},
                                              {"residual_multiplier", 0.25},
                                              {"embedding_multiplier", 12.0}}));
    QCOMPARE(granite.decoder.logitsMultiplier, 0.25);
    QCOMPARE(granite.decoder.attentionScale, 0.5);
    QCOMPARE(granite.decoder.residualMultiplier, 0.25);
    QCOMPARE(granite.decoder.embeddingMultiplier, 12.0);

    const ModelConfig cohere2 = parsed(llama({{"model_type", "cohere2"}, {"sliding_window", 64}, {"logit_scale", 0.25}}));
    QVERIFY(cohere2.decoder.parallelBlock && cohere2.decoder.norm == NormKind::LayerNorm &&
            cohere2.rope.style == RopeStyle::Interleaved);
    QVERIFY(cohere2.layers[0].rope && !cohere2.layers[3].rope);

    const ModelConfig glm4 = parsed(llama({{"model_type", "glm4"}, {"attention_bias", true}}));
    QVERIFY(glm4.checkpoint.qkvBias && !glm4.checkpoint.outputBias && glm4.checkpoint.fusedGateUp);
    QCOMPARE(glm4.rope.rotaryDim, 4);
  }

  void readsBiasesOfLlama() {
    const ModelConfig config = parsed(llama({{"attention_bias", true}, {"mlp_bias", true}}));
    QVERIFY(config.checkpoint.qkvBias && config.checkpoint.outputBias && config.checkpoint.mlpBias);
  }

  void readsRopeScaling() {
    const ModelConfig llama3 = parsed(llama({{"rope_scaling",
                                              {{"rope_type", "llama3"},
                                               {"factor", 8.0},
                                               {"low_freq_factor", 1.0},
                                               {"high_freq_factor", 4.0},
                                               {"original_max_position_embeddings", 64}}}}));
    QVERIFY(llama3.rope.scaling == RopeScaling::Llama3);
    QCOMPARE(llama3.rope.originalContext, 64);

    const ModelConfig yarn = parsed(llama({{"rope_parameters",
                                            {{"rope_type", "yarn"},
                                             {"factor", 4.0},
                                             {"rope_theta", 777.0},
                                             {"truncate", false},
                                             {"attention_factor", 1.5},
                                             {"original_max_position_embeddings", 64}}}}));
    QVERIFY(yarn.rope.scaling == RopeScaling::Yarn && !yarn.rope.truncate);
    QCOMPARE(yarn.rope.theta, 777.0);
    QCOMPARE(*yarn.rope.attentionFactor, 1.5);

    const ModelConfig longRope = parsed(
        llama({{"model_type", "phi3"},
               {"original_max_position_embeddings", 128},
               {"rope_scaling", {{"type", "longrope"}, {"short_factor", {1, 1, 1, 1}}, {"long_factor", {2, 2, 2, 2.5}}}}}));
    QVERIFY(longRope.rope.scaling == RopeScaling::LongRope && longRope.rope.originalContext == 128);
    QCOMPARE(longRope.rope.longFactors[3], 2.5);

    const ModelConfig byLayer =
        parsed(llama({{"layer_types", {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}},
                      {"sliding_window", 32},
                      {"rope_parameters",
                       {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}},
                        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 100.0}}}}}}));
    QCOMPARE(byLayer.rope.theta, 5000.0);
    QCOMPARE(byLayer.localRope.theta, 100.0);
    QVERIFY(byLayer.layers[0].localRope && !byLayer.layers[1].localRope);

    QVERIFY(mentions(parsed(llama({{"rope_scaling", {{"type", "spiral"}}}})).missingInEngine, "RoPE scaling \"spiral\""));
  }

  void readsExperts() {
    const ModelConfig config = parsed(llama({{"model_type", "deepseek_v3"},
                                             {"n_routed_experts", 16},
                                             {"num_experts_per_tok", 4},
                                             {"moe_intermediate_size", 24},
                                             {"n_shared_experts", 2},
                                             {"first_k_dense_replace", 1},
                                             {"kv_lora_rank", 32},
                                             {"q_lora_rank", nullptr},
                                             {"qk_nope_head_dim", 16},
                                             {"qk_rope_head_dim", 8},
                                             {"v_head_dim", 12}}));
    QVERIFY(config.layers[0].ffn == FfnKind::Dense && config.layers[1].ffn == FfnKind::MixtureOfExperts);
    QCOMPARE(config.layers[1].moe.experts, 16);
    QCOMPARE(config.layers[1].moe.sharedIntermediate, 48);
    QVERIFY(config.layers[1].moe.routerBias);
    QVERIFY(config.layers[0].attention == AttentionKind::Latent);
    QCOMPARE(config.layers[0].headDim, 24);
    QCOMPARE(config.layers[0].vHeadDim, 12);
    QCOMPARE(config.layers[0].latent.qLoraRank, 0);
    QCOMPARE(config.rope.rotaryDim, 8);
    QVERIFY2(config.missingInEngine.empty(), config.missingInEngine.empty() ? "" : config.missingInEngine.front().c_str());
  }

  void readsTheLanguageModelOfSeveralParts() {
    nlohmann::json outer = {{"model_type", "gemma3"},
                            {"architectures", {"Gemma3ForConditionalGeneration"}},
                            {"torch_dtype", "bfloat16"},
                            {"vision_config", {{"hidden_size", 32}}}};
    outer["text_config"] = nlohmann::json::parse(llama({{"model_type", "gemma3_text"}}));
    outer["text_config"].erase("vocab_size");
    outer["text_config"].erase("torch_dtype");
    const ModelConfig config = parsed(outer.dump());
    QCOMPARE(config.modelType, std::string("gemma3"));
    QCOMPARE(config.hiddenSize, 64);
    QCOMPARE(config.vocabSize, 262208);
    QVERIFY(config.dtype == DType::BF16 && config.tieWordEmbeddings);
    QVERIFY(mentions(config.warnings, "vocab_size is not given"));
    QVERIFY(mentions(config.missingInEngine, "image input"));
  }

  void readsQuantization() {
    const ModelConfig awq = parsed(llama({{"quantization_config",
                                           {{"quant_method", "awq"},
                                            {"bits", 4},
                                            {"group_size", 128},
                                            {"zero_point", true},
                                            {"modules_to_not_convert", {"lm_head"}}}}}));
    QCOMPARE(awq.quantization->method, std::string("awq"));
    QCOMPARE(awq.quantization->groupSize, 128);
    QVERIFY(awq.quantization->zeroPoint && mentions(awq.quantization->ignored, "lm_head") &&
            awq.missingInEngine.empty());
    const ModelConfig fp8 =
        parsed(llama({{"quantization_config", {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}}}));
    QVERIFY((fp8.quantization->weightBlock == std::vector<int64_t>{128, 128}) && fp8.quantization->bits == 8);
    const ModelConfig packed =
        parsed(llama({{"quantization_config",
                       {{"quant_method", "compressed-tensors"},
                        {"format", "pack-quantized"},
                        {"config_groups", {{"group_0", {{"weights", {{"num_bits", 4}, {"group_size", 32}}}}}}}}}}));
    QVERIFY(packed.quantization->bits == 4 && packed.quantization->groupSize == 32);
    QCOMPARE(parsed(llama({{"quantization", {{"bits", 4}, {"group_size", 64}}}})).quantization->method, std::string("mlx"));
    QVERIFY(mentions(parsed(llama({{"quantization_config", {{"quant_method", "magic"}}}})).warnings,
                     "quantization \"magic\" is unknown"));
  }

  void acceptsWhatPythonsJsonAccepts() {
    std::string text = llama();
    text.insert(text.size() - 1,
                R"(, "time_step_limit": [0.0, Infinity], "low": -Infinity, "gap": NaN, "note": "NaN and Infinity stay text")");
    const ModelConfig config = parsed("\n" + text);
    QVERIFY(config.raw["time_step_limit"][1].get<double>() > 1e300);
    QVERIFY(config.raw["low"].get<double>() < -1e300);
    QVERIFY(config.raw["gap"].is_null());
    QCOMPARE(config.raw["note"].get<std::string>(), std::string("NaN and Infinity stay text"));
  }

  void marksAssumptions() {
    nlohmann::json config = nlohmann::json::parse(llama({{"model_type", "newmodel"}}));
    config.erase("torch_dtype");
    config.erase("max_position_embeddings");
    const ModelConfig unknown = parsed(config.dump());
    QVERIFY(mentions(unknown.warnings, "model_type \"newmodel\" is unknown"));
    QVERIFY(mentions(unknown.warnings, "dtype is not given: bfloat16 is assumed"));
    QVERIFY(mentions(unknown.warnings, "max_position_embeddings is not given"));
    QVERIFY(mentions(unknown.missingInEngine, "model family \"newmodel\""));
    QCOMPARE(unknown.maxPositionEmbeddings, 0);
  }

  void refusesWithItsOwnMessage_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const std::string& text, const char* message) {
      QTest::newRow(name) << QByteArray::fromStdString(text) << message;
    };
    const auto without = [](const char* key) {
      nlohmann::json config = nlohmann::json::parse(llama());
      config.erase(key);
      return config.dump();
    };
    row("empty", "", "config.json: found an empty file");
    row("lfs pointer", "version https://git-lfs.github.com/spec/v1\nsize 12\n", "a Git LFS pointer");
    row("cut off", llama().substr(0, 60), "expected valid JSON");
    row("a list", "[1]", "JSON of type array, expected a JSON object");
    row("no hidden size", without("hidden_size"), "hidden_size: found no such key");
    row("no layers", without("num_hidden_layers"), "num_hidden_layers: found no such key");
    row("no vocabulary", without("vocab_size"), "no such key, expected an integer from 1 to 67108864");
    row("hidden size a string", llama({{"hidden_size", "64"}}),
        "hidden_size: found \"64\", expected an integer from 1 to 131072");
    row("negative layers", llama({{"num_hidden_layers", -3}}), "num_hidden_layers: found -3, expected an integer from 1 to 1024");
    row("a million layers", llama({{"num_hidden_layers", 1000000}}), "num_hidden_layers: found 1000000");
    row("fractional heads", llama({{"num_attention_heads", 7.5}}), "num_attention_heads: found 7.5");
    row("heads do not divide", llama({{"num_attention_heads", 7}}),
        "num_attention_heads: found 7, expected a divisor of hidden_size 64, or the key head_dim");
    row("KV heads do not divide", llama({{"num_key_value_heads", 3}}),
        "num_key_value_heads: found 3, expected a divisor of the 8 query heads");
    row("dtype", llama({{"torch_dtype", "float17"}}), "torch_dtype: found \"float17\", expected a dtype such as \"bfloat16\"");
    row("dtype a number", llama({{"torch_dtype", 16}}), "torch_dtype: found 16, expected a string");
    row("tie a string", llama({{"tie_word_embeddings", "yes"}}), "tie_word_embeddings: found \"yes\", expected true or false");
    row("epsilon", llama({{"rms_norm_eps", "small"}}), "rms_norm_eps: found \"small\", expected a number from 0 to 1");
    row("rope theta", llama({{"rope_theta", -1}}), "rope_theta: found -1");
    row("rope scaling a string", llama({{"rope_scaling", "yarn"}}), "rope_scaling: found \"yarn\", expected an object");
    row("rope factor", llama({{"rope_scaling", {{"type", "linear"}, {"factor", "8"}}}}), "rope_scaling: factor: found \"8\"");
    row("longrope factors",
        llama({{"rope_scaling", {{"type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1, 1, 1, 1}}}}}),
        "short_factor: found 1, expected 4 factors, one for each rotated pair");
    row("layer types too few", llama({{"layer_types", {"full_attention"}}}),
        "layer_types: found 1, expected one entry for each of the 4 layers");
    row("architectures a string", llama({{"architectures", "LlamaForCausalLM"}}),
        "architectures: found \"LlamaForCausalLM\", expected a list of strings");
    row("eos a string", llama({{"eos_token_id", "</s>"}}), "eos_token_id: found \"</s>\"");
    row(
        "experts without width",
        [] {
          auto c = nlohmann::json::parse(llama({{"model_type", "qwen3_moe"}, {"num_experts", 8}, {"num_experts_per_tok", 2}}));
          c.erase("intermediate_size");
          return c.dump();
        }(),
        "moe_intermediate_size: found no such key, expected the width of one expert");
    row("more used than experts", llama({{"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 9}}),
        "num_experts_per_tok: found 9, expected at most the 4 experts");
    row("latent attention incomplete", llama({{"model_type", "deepseek_v2"}, {"kv_lora_rank", 32}}),
        "qk_nope_head_dim: found no such key");
    row("hybrid pattern", llama({{"model_type", "nemotron_h"}, {"hybrid_override_pattern", "M*"}}),
        "hybrid_override_pattern: found 2, expected one letter for each of the 4 layers");
    row("dense without width", without("intermediate_size"), "intermediate_size: found no such key");
  }
  void refusesWithItsOwnMessage() {
    QFETCH(QByteArray, text);
    QFETCH(QString, message);
    const auto config = parseModelConfig(text.toStdString(), "config.json");
    QVERIFY(!config);
    const QString found = QString::fromStdString(config.error().message());
    QVERIFY2(found.contains(message), qPrintable(found));
  }
};

QTEST_APPLESS_MAIN(ModelConfigTest)
#include "model_config_test.moc"
