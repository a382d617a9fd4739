// SPDX-License-Identifier: Apache-2.0
// Tensors by formula: names, shapes, roles, splits and what quantization formats store.
#include "core/model/tensor_inventory.h"

#include "core/model/inventory_builder.h"
#include "core/model/tensor_split.h"

#include <QtTest>

using namespace headroom;

namespace {

nlohmann::json llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},        {"num_hidden_layers", 2}, {"num_attention_heads", 8},
          {"num_key_value_heads", 2}, {"intermediate_size", 160}, {"vocab_size", 300},      {"max_position_embeddings", 512},
          {"torch_dtype", "bfloat16"}};
}

TensorInventory inventory(nlohmann::json config, const nlohmann::json& changes = nlohmann::json::object()) {
  config.merge_patch(changes);
  const auto parsed = parseModelConfig(config.dump(), "test");
  if (!parsed) qFatal("%s", parsed.error().message().c_str());
  return inventoryOfConfig(*parsed);
}

const TensorEntry& named(const TensorInventory& inventory, const std::string& name) {
  for (const auto& tensor : inventory.tensors)
    if (tensor.name == name) return tensor;
  qFatal("no tensor %s", name.c_str());
}

bool has(const TensorInventory& inventory, const std::string& name) {
  return std::any_of(inventory.tensors.begin(), inventory.tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
}

}  // namespace

class TensorInventoryTest : public QObject {
  Q_OBJECT

 private slots:
  void spellsLlamaAsHuggingFaceDoes() {
    const auto list = inventory(llama());
    QCOMPARE(list.tensors.size(), size_t(3 + 2 * 9));
    const auto& k = named(list, "model.layers.1.self_attn.k_proj.weight");
    QVERIFY(k.role == TensorRole::K && k.layer == 1 && k.shape == std::vector<int64_t>({16, 64}) && k.dtype == DType::BF16);
    QVERIFY(k.splitDim == 0 && k.segments.size() == 1 && k.segments[0].unit == SplitUnit::KvHeads);
    QCOMPARE(k.segments[0].elements, 16);
    QCOMPARE(k.segments[0].elementsPerUnit, 8);
    const auto& o = named(list, "model.layers.0.self_attn.o_proj.weight");
    QVERIFY(o.splitDim == 1 && o.segments[0].unit == SplitUnit::QHeads);
    const auto& down = named(list, "model.layers.0.mlp.down_proj.weight");
    QVERIFY(down.splitDim == 1 && down.segments[0].unit == SplitUnit::MlpColumns && down.segments[0].elementsPerUnit == 1);
    QVERIFY(named(list, "model.embed_tokens.weight").segments[0].unit == SplitUnit::Vocabulary);
    QCOMPARE(named(list, "model.norm.weight").splitDim, -1);
    QVERIFY(list.find(TensorRole::LmHead) != nullptr && list.find(TensorRole::Q, 1) != nullptr &&
            list.find(TensorRole::Q, 2) == nullptr);
    // 2 x 300 x 64 + 64 + 2 x (2 x 64 + 64 x (64 + 16 + 16 + 64) + 3 x 64 x 160)
    QCOMPARE(list.parameters(), 120640);
    QCOMPARE(list.checkpointBytes().count(), 241280);
  }

  void leavesOutATiedHead() {
    const auto tied = inventory(llama(), {{"tie_word_embeddings", true}});
    QVERIFY(!has(tied, "lm_head.weight"));
    QCOMPARE(tied.parameters(), 120640 - 300 * 64);
  }

  void countsATiedHeadThatIsStoredAnyway() {
    // Qwen3-0.6B, as published: 751632384 stored, 596049920 without the second table.
    const auto list = inventory({{"model_type", "qwen3"},
                                 {"hidden_size", 1024},
                                 {"num_hidden_layers", 28},
                                 {"num_attention_heads", 16},
                                 {"num_key_value_heads", 8},
                                 {"head_dim", 128},
                                 {"intermediate_size", 3072},
                                 {"vocab_size", 151936},
                                 {"max_position_embeddings", 40960},
                                 {"torch_dtype", "bfloat16"},
                                 {"tie_word_embeddings", true}});
    QCOMPARE(list.parameters(), 751632384);
    QVERIFY(!named(list, "lm_head.weight").loaded);
    QCOMPARE(list.parameters() - named(list, "lm_head.weight").elements(), 596049920);
  }

  void countsStoredFrequenciesOfOldCheckpoints() {
    const auto list = inventory(llama(), {{"transformers_version", "4.31.0"}});
    const auto& frequencies = named(list, "model.layers.0.self_attn.rotary_emb.inv_freq");
    QVERIFY(!frequencies.loaded && frequencies.dtype == DType::F32 && frequencies.elements() == 4);
  }

  void splitsFusedWeightsByTheirParts() {
    const auto list = inventory(llama(), {{"model_type", "phi3"}});
    const auto& qkv = named(list, "model.layers.0.self_attn.qkv_proj.weight");
    QCOMPARE(qkv.segments.size(), size_t(3));
    QVERIFY(qkv.segments[0].unit == SplitUnit::QHeads && qkv.segments[0].elements == 64 &&
            qkv.segments[1].unit == SplitUnit::KvHeads && qkv.segments[2].elements == 16);
    const auto& gateUp = named(list, "model.layers.0.mlp.gate_up_proj.weight");
    QVERIFY(gateUp.role == TensorRole::GateUp && gateUp.shape[0] == 320 && gateUp.segments.size() == 2);
  }

  void givesBiasesTheSplitOfTheirRows() {
    const auto list = inventory(llama(), {{"attention_bias", true}, {"mlp_bias", true}});
    QVERIFY(named(list, "model.layers.0.self_attn.q_proj.bias").segments[0].unit == SplitUnit::QHeads);
    QCOMPARE(named(list, "model.layers.0.self_attn.o_proj.bias").splitDim, -1);
    QVERIFY(named(list, "model.layers.0.mlp.up_proj.bias").role == TensorRole::UpBias);
    QCOMPARE(named(list, "model.layers.0.mlp.down_proj.bias").splitDim, -1);
  }

  void keepsAllExpertsOfALayerInOneEntry() {
    const auto list = inventory(llama(), {{"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 2}});
    const auto& down = named(list, "model.layers.0.block_sparse_moe.experts.*.w2.weight");
    QVERIFY(down.role == TensorRole::ExpertDown && down.shape == std::vector<int64_t>({4, 64, 160}) && down.splitDim == 2);
    QVERIFY(named(list, "model.layers.0.block_sparse_moe.gate.weight").role == TensorRole::Router);
  }

  void splitsLatentAttentionByHeads() {
    const auto list = inventory(llama(), {{"model_type", "deepseek_v2"},
                                          {"kv_lora_rank", 32},
                                          {"q_lora_rank", 24},
                                          {"qk_nope_head_dim", 16},
                                          {"qk_rope_head_dim", 8},
                                          {"v_head_dim", 12}});
    QVERIFY((named(list, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight").shape == std::vector<int64_t>{40, 64}));
    const auto& kvB = named(list, "model.layers.0.self_attn.kv_b_proj.weight");
    QVERIFY(kvB.shape[0] == 8 * 28 && kvB.segments[0].unit == SplitUnit::QHeads && kvB.segments[0].elementsPerUnit == 28);
    QVERIFY((named(list, "model.layers.0.self_attn.o_proj.weight").shape == std::vector<int64_t>{64, 96}));
  }

  void storesPredictionLayersWithoutLoadingThem() {
    const nlohmann::json deepseek = {{"model_type", "deepseek_v3"}, {"kv_lora_rank", 32},       {"q_lora_rank", 24},
                                     {"qk_nope_head_dim", 16},      {"qk_rope_head_dim", 8},    {"v_head_dim", 12},
                                     {"n_routed_experts", 4},       {"num_experts_per_tok", 2}, {"moe_intermediate_size", 16},
                                     {"n_shared_experts", 1}};
    const auto without = inventory(llama(), deepseek);
    auto more = deepseek;
    more["num_nextn_predict_layers"] = 1;
    const auto with = inventory(llama(), more);
    QVERIFY(with.parameters() > without.parameters());
    int64_t loaded = 0;
    for (const auto& tensor : with.tensors) loaded += tensor.loaded ? tensor.parameters() : 0;
    QCOMPARE(loaded, without.parameters());
    QVERIFY(!named(with, "model.layers.2.eh_proj.weight").loaded);
  }

  void storesAwq() {
    const auto list = inventory(llama(), {{"torch_dtype", "float16"},
                                          {"quantization_config", {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}}}});
    const auto& weight = named(list, "model.layers.0.self_attn.q_proj.qweight");
    QVERIFY(weight.dtype == DType::I32 && weight.shape == std::vector<int64_t>({64, 8}) && weight.role == TensorRole::Q);
    QCOMPARE(weight.parameters(), 4096);
    QVERIFY(weight.splitDim == 1 && weight.segments[0].elements == 8 && weight.segments[0].elementsPerUnit == 1);
    const auto& scales = named(list, "model.layers.0.mlp.down_proj.scales");
    QVERIFY(scales.shape == std::vector<int64_t>({5, 64}) && scales.splitDim == 0 && scales.segments[0].elements == 5);
    QVERIFY(has(list, "model.layers.0.self_attn.q_proj.qzeros") && has(list, "lm_head.weight"));
    QCOMPARE(list.parameters(), 120640);
  }

  void storesGptq() {
    const auto list = inventory(llama(), {{"quantization_config", {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}}}});
    QVERIFY((named(list, "model.layers.0.mlp.down_proj.qweight").shape == std::vector<int64_t>{20, 64}));
    QVERIFY((named(list, "model.layers.0.mlp.down_proj.qzeros").shape == std::vector<int64_t>{1, 8}));
    QVERIFY((named(list, "model.layers.0.mlp.down_proj.g_idx").shape == std::vector<int64_t>{160}));
  }

  void storesFp8BlocksAndCountsTheirScales() {
    const auto list = inventory(llama(), {{"quantization_config",
                                           {{"quant_method", "fp8"},
                                            {"weight_block_size", {32, 32}},
                                            {"modules_to_not_convert", {"lm_head", "model.layers.0.mlp"}}}}});
    QVERIFY(named(list, "model.layers.1.mlp.down_proj.weight").dtype == DType::F8E4M3);
    const auto& scale = named(list, "model.layers.1.mlp.down_proj.weight_scale_inv");
    QVERIFY(scale.shape == std::vector<int64_t>({2, 5}) && scale.parameters() == 10);
    QVERIFY(named(list, "model.layers.0.mlp.down_proj.weight").dtype == DType::BF16);
    QVERIFY(!has(list, "model.layers.0.mlp.down_proj.weight_scale_inv"));
  }

  void storesMlxAtItsPublishedSize() {
    // Qwen3-14B-MLX-4bit: 8307783680 bytes, embedding and head included.
    const auto list = inventory({{"model_type", "qwen3"},
                                 {"hidden_size", 5120},
                                 {"num_hidden_layers", 40},
                                 {"num_attention_heads", 40},
                                 {"num_key_value_heads", 8},
                                 {"head_dim", 128},
                                 {"intermediate_size", 17408},
                                 {"vocab_size", 151936},
                                 {"max_position_embeddings", 40960},
                                 {"torch_dtype", "bfloat16"},
                                 {"tie_word_embeddings", false},
                                 {"quantization", {{"bits", 4}, {"group_size", 64}}}});
    QCOMPARE(list.checkpointBytes().count(), 8307783680);
    QCOMPARE(list.parameters(), 14768307200);
  }

  // What bitsandbytes keeps beside a matrix of 4 bits is JSON text with the shape in it.
  void storesTheStateOfFourBitsAsText() {
    const auto stateBytes = [](bool nested) {
      const nlohmann::json format = {{"quant_method", "bitsandbytes"},
                                     {"load_in_4bit", true},
                                     {"bnb_4bit_quant_type", "nf4"},
                                     {"bnb_4bit_use_double_quant", nested}};
      const TensorInventory tensors = inventory(llama(), {{"quantization_config", format}});
      return named(tensors, "model.layers.0.mlp.gate_proj.weight.quant_state.bitsandbytes__nf4").storedBytes().count();
    };
    const std::string text = R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [160, 64]})";
    QCOMPARE(stateBytes(false), static_cast<int64_t>(text.size()));
    // With a second level: its block, its type and a mean of some 19 characters.
    QCOMPARE(stateBytes(true),
             static_cast<int64_t>(text.size() + std::string(R"(, "nested_blocksize": 256, "nested_dtype": "float32", )"
                                                            R"("nested_offset": 0.04857128858566284)")
                                                    .size()));
  }

  void matchesIgnoreLists_data() {
    QTest::addColumn<QString>("pattern");
    QTest::addColumn<QString>("module");
    QTest::addColumn<bool>("matches");
    QTest::newRow("itself") << "lm_head"
                            << "lm_head" << true;
    QTest::newRow("parent") << "model.layers.0.mlp"
                            << "model.layers.0.mlp.up_proj" << true;
    QTest::newRow("not a longer number") << "model.layers.1"
                                         << "model.layers.10.mlp.up_proj" << false;
    QTest::newRow("last part") << "gate"
                               << "model.layers.3.mlp.gate" << true;
    QTest::newRow("not a part of a word") << "gate"
                                          << "model.layers.3.mlp.my_gate" << false;
    QTest::newRow("glob") << "model.layers.*.self_attn"
                          << "model.layers.3.self_attn.q_proj" << true;
    QTest::newRow("glob elsewhere") << "model.layers.*.self_attn"
                                    << "model.layers.3.mlp.up_proj" << false;
    QTest::newRow("expression") << "re:.*self_attn.*"
                                << "model.layers.3.self_attn.q_proj" << true;
    QTest::newRow("expression with choices") << "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"
                                             << "model.layers.0.mlp.up_proj" << true;
    QTest::newRow("expression for experts") << "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"
                                            << "model.layers.0.mlp.experts.*.up_proj" << false;
    QTest::newRow("broken expression") << "re:("
                                       << "lm_head" << false;
    QTest::newRow("explosive expression") << "re:(a*)*b"
                                          << "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" << false;
  }
  void matchesIgnoreLists() {
    QFETCH(QString, pattern);
    QFETCH(QString, module);
    QFETCH(bool, matches);
    QCOMPARE(matchesModulePattern(pattern.toStdString(), module.toStdString()), matches);
  }

  void isQuickForLargeModels() {
    nlohmann::json large = llama();
    large.merge_patch({{"model_type", "qwen3_moe"},
                       {"num_hidden_layers", 94},
                       {"num_experts", 512},
                       {"num_experts_per_tok", 8},
                       {"moe_intermediate_size", 16}});
    const auto config = parseModelConfig(large.dump(), "large");
    QVERIFY(config.has_value());
    QElapsedTimer timer;
    timer.start();
    for (int i = 0; i < 10; ++i) QVERIFY(inventoryOfConfig(*config).tensors.size() < 2000);
    QVERIFY2(timer.elapsed() < 30'000, qPrintable(QString::number(timer.elapsed())));
  }
};

QTEST_APPLESS_MAIN(TensorInventoryTest)
#include "tensor_inventory_test.moc"
