// SPDX-License-Identifier: Apache-2.0
// Small configurations of each family, and what Hugging Face Transformers 5 counts in the model it builds of them (on its meta
// device): every parameter and stored buffer once, a tied head not again.
#include "core/model/tensor_inventory.h"

#include <QtTest>

#include <algorithm>
#include <fstream>
#include <set>

using namespace headroom;

class ModelFamiliesTest : public QObject {
  Q_OBJECT
 private slots:
  void countsWhatTheModelClassesHold_data() {
    QTest::addColumn<QByteArray>("config");
    QTest::addColumn<qint64>("parameters");
    std::ifstream file(HEADROOM_TEST_DATA "/model_families.jsonl");
    QVERIFY(file.is_open());
    int rows = 0;
    for (std::string line; std::getline(file, line); ++rows) {
      const auto row = nlohmann::json::parse(line);
      const std::string name = row["name"].get<std::string>();
      QTest::newRow(name.c_str()) << QByteArray::fromStdString(row["config"].dump()) << row["parameters"].get<qint64>();
    }
    QVERIFY(rows > 100);
  }
  void countsWhatTheModelClassesHold() {
    QFETCH(QByteArray, config);
    QFETCH(qint64, parameters);
    const auto parsed = parseModelConfig(config.toStdString(), "config.json");
    QVERIFY2(parsed, parsed ? "" : parsed.error().message().c_str());
    for (const std::string& warning : parsed->warnings)
      QVERIFY2(warning.find("model_type") == std::string::npos && warning.find("layer_types") == std::string::npos,
               warning.c_str());
    const TensorInventory inventory = inventoryOfConfig(*parsed);
    QCOMPARE(static_cast<qint64>(inventory.parameters()), parameters);
    for (const TensorEntry& tensor : inventory.tensors) {
      if (tensor.splitDim < 0) continue;
      int64_t split = 0;
      for (const SplitSegment& segment : tensor.segments) split += segment.elements;
      QVERIFY2(tensor.shape.at(static_cast<size_t>(tensor.splitDim)) == split, tensor.name.c_str());
    }
  }

  // Published totals of models whose files Transformers does not build: by their own code, or with a tower.
  void meetsPublishedTotals_data() {
    QTest::addColumn<QByteArray>("config");
    QTest::addColumn<qint64>("parameters");
    const auto row = [](const char* name, const nlohmann::json& config, qint64 parameters) {
      QTest::newRow(name) << QByteArray::fromStdString(config.dump()) << parameters;
    };
    row("Molmo-7B-D",
        {{"model_type", "molmo"},
         {"hidden_size", 3584},
         {"intermediate_size", 37888},
         {"num_hidden_layers", 28},
         {"num_attention_heads", 28},
         {"num_key_value_heads", 4},
         {"embedding_size", 152064},
         {"vocab_size", 152064},
         {"qkv_bias", true},
         {"weight_tying", false},
         {"tie_word_embeddings", false}},
        8021025280);
    row("Phi-3.5-vision",
        {{"model_type", "phi3_v"},
         {"hidden_size", 3072},
         {"intermediate_size", 8192},
         {"num_hidden_layers", 32},
         {"num_attention_heads", 32},
         {"num_key_value_heads", 32},
         {"vocab_size", 32064},
         {"tie_word_embeddings", false}},
        4146621440);
    row("Phi-4-multimodal-instruct: two towers and two sets of adapters",
        {{"model_type", "phi4mm"},
         {"hidden_size", 3072},
         {"intermediate_size", 8192},
         {"num_hidden_layers", 32},
         {"num_attention_heads", 24},
         {"num_key_value_heads", 8},
         {"vocab_size", 200064},
         {"tie_word_embeddings", true},
         {"vision_lora", {{"r", 256}}},
         {"speech_lora", {{"r", 320}}}},
        5574460384);
    nlohmann::json kinds = nlohmann::json::array();
    for (int i = 0; i < 80; ++i) kinds.push_back(i % 8 == 7 ? 1 : 0);
    row("MiniMax-Text-01",
        {{"model_type", "minimax_text_01"},
         {"hidden_size", 6144},
         {"intermediate_size", 9216},
         {"num_hidden_layers", 80},
         {"num_attention_heads", 64},
         {"num_key_value_heads", 8},
         {"head_dim", 128},
         {"vocab_size", 200064},
         {"num_local_experts", 32},
         {"num_experts_per_tok", 2},
         {"attn_type_list", kinds},
         {"tie_word_embeddings", false}},
        456089655296);
    row("Falcon-7B: one norm a layer",
        {{"model_type", "falcon"},
         {"hidden_size", 4544},
         {"num_hidden_layers", 32},
         {"num_attention_heads", 71},
         {"multi_query", true},
         {"parallel_attn", true},
         {"bias", false},
         {"new_decoder_architecture", false},
         {"vocab_size", 65024}},
        6921720704);
    row("gemma-3-4b-it: heads left to the class",
        {{"model_type", "gemma3"},
         {"text_config",
          {{"model_type", "gemma3_text"},
           {"hidden_size", 2560},
           {"intermediate_size", 10240},
           {"num_hidden_layers", 34},
           {"sliding_window", 1024}}},
         {"vision_config",
          {{"model_type", "siglip_vision_model"},
           {"hidden_size", 1152},
           {"intermediate_size", 4304},
           {"num_hidden_layers", 27},
           {"image_size", 896},
           {"patch_size", 14}}}},
        4300079472);
  }
  void meetsPublishedTotals() { countsAsPublished(); }

  // A model around a language model of another family: the text as that family counts it, the tower as it names itself.
  void modelsOfSeveralParts() {
    const nlohmann::json text = {{"model_type", "mistral"},  {"hidden_size", 256},       {"num_hidden_layers", 2},
                                 {"num_attention_heads", 8}, {"num_key_value_heads", 2}, {"head_dim", 32},
                                 {"intermediate_size", 512}, {"vocab_size", 1000}};
    const auto alone = parseModelConfig(text.dump(), "config.json");
    QVERIFY(alone);
    nlohmann::json whole = {{"model_type", "mistral3"},
                            {"text_config", text},
                            {"spatial_merge_size", 2},
                            {"vision_config",
                             {{"model_type", "pixtral"},
                              {"hidden_size", 128},
                              {"intermediate_size", 256},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"patch_size", 14}}}};
    const auto both = parseModelConfig(whole.dump(), "config.json");
    QVERIFY(both);
    QCOMPARE(both->modelType, std::string("mistral"));
    QCOMPARE(both->wrapperType, std::string("mistral3"));
    const int64_t tower = 128 * 3 * 14 * 14 + 128 + 2 * (4 * 128 * 128 + 3 * 128 * 256 + 2 * 128);
    const int64_t projector = 128 + 128 * 4 * 128 + 256 * 128 + 256 * 256;
    QCOMPARE(inventoryOfConfig(*both).parameters(), inventoryOfConfig(*alone).parameters() + tower + projector);
    // A tower that is not known is named, not guessed; so is a model that is not known around one that is.
    whole["vision_config"]["model_type"] = "something_new";
    const auto other = parseModelConfig(whole.dump(), "config.json");
    QVERIFY(other && std::count(other->warnings.begin(), other->warnings.end(), "the vision tower is not counted") == 1);
    whole["model_type"] = "something_newer";
    const auto unknown = parseModelConfig(whole.dump(), "config.json");
    QVERIFY(unknown && unknown->modelType == "mistral");
    QVERIFY(std::any_of(unknown->warnings.begin(), unknown->warnings.end(),
                        [](const std::string& warning) { return warning.find("something_newer") != std::string::npos; }));
  }

  // The formula's names are those of published files, so that a folder's tensors find theirs.
  void partsAreNamedAsFilesNameThem() {
    const auto names = [](const nlohmann::json& config) {
      std::set<std::string> found;
      const auto parsed = parseModelConfig(config.dump(), "config.json");
      if (!parsed) return found;
      for (const TensorEntry& tensor : inventoryOfConfig(*parsed).tensors)
        if (!found.insert(tensor.name).second) return std::set<std::string>{"twice: " + tensor.name};
      return found;
    };
    const auto expectAll = [](const std::set<std::string>& found, const std::vector<std::string>& expected) {
      for (const std::string& name : expected)
        if (!found.contains(name)) return name;
      return std::string();
    };
    const std::set<std::string> longcat = names(rowNamed("longcat_flash"));
    QCOMPARE(expectAll(longcat, {"model.layers.2.self_attn.0.q_a_proj.weight", "model.layers.2.self_attn.1.kv_b_proj.weight",
                                 "model.layers.0.input_layernorm.1.weight", "model.layers.2.post_attention_layernorm.0.weight",
                                 "model.layers.1.mlps.0.gate_proj.weight", "model.layers.2.mlps.1.down_proj.weight",
                                 "model.layers.2.mlp.experts.*.up_proj.weight", "model.layers.0.mlp.router.classifier.weight",
                                 "model.layers.0.mlp.router.e_score_correction_bias"}),
             std::string());
    const std::set<std::string> zamba = names(rowNamed("zamba2"));
    QCOMPARE(expectAll(zamba, {"model.layers.0.mamba.in_proj.weight", "model.layers.2.mamba_decoder.mamba.norm.weight",
                               "model.layers.4.linear.weight", "model.layers.4.shared_transformer.self_attn.q_proj.weight",
                               "model.layers.2.shared_transformer.feed_forward.gate_up_proj_adapter_list.4.1.weight"}),
             std::string());
    QVERIFY(!zamba.contains("model.layers.6.shared_transformer.self_attn.q_proj.weight"));  // layer 2 holds it
    const std::set<std::string> olmo = names(rowNamed("olmo_hybrid"));
    QCOMPARE(expectAll(olmo, {"model.layers.0.input_layernorm.weight", "model.layers.0.linear_attn.conv1d.weight",
                              "model.layers.3.post_feedforward_layernorm.weight", "model.layers.3.self_attn.q_norm.weight"}),
             std::string());
    const std::set<std::string> omni = names(rowNamed("qwen2_5_omni thinker"));
    QCOMPARE(expectAll(omni, {"thinker.model.layers.0.self_attn.q_proj.weight", "thinker.lm_head.weight",
                              "thinker.visual.blocks.1.attn.k.weight", "thinker.visual.merger.ln_q.weight",
                              "thinker.audio_tower.audio_bos_eos_token.weight"}),
             std::string());
  }

  // What speaks is named and not counted; servers of text load none of it.
  // Towers that are not counted are named, also where a file names its tower another way.
  void towersAreNamedHoweverFilesTellOfThem_data() {
    QTest::addColumn<QString>("type");
    QTest::addColumn<QByteArray>("more");
    QTest::newRow("LLaVA's own files") << "llava" << QByteArray(R"({"mm_vision_tower": "openai/clip-vit-large-patch14-336"})");
    QTest::newRow("MiniCPM-V 2") << "minicpmv" << QByteArray(R"({"vision_encoder": "vit_so400m_patch14_siglip_384.webli"})");
    QTest::newRow("MiniCPM-V 2.6") << "minicpmv" << QByteArray(R"({"vision_config": {"model_type": "siglip"}})");
    QTest::newRow("Ovis 1.6") << "ovis"
                              << QByteArray(R"({"visual_tokenizer_config": {"model_type": "siglip_visual_tokenizer"}})");
    QTest::newRow("Qwen-VL") << "qwen" << QByteArray(R"({"visual": {"layers": 48, "width": 1664}})");
    QTest::newRow("GLM-4V") << "chatglm" << QByteArray(R"({"vision_config": {"hidden_size": 1792, "num_hidden_layers": 63}})");
    QTest::newRow("DeepSeek-VL2") << "deepseek_vl_v2"
                                  << QByteArray(R"({"vision_config": {"model_type": "vision", "layers": 27}})");
  }
  void towersAreNamedHoweverFilesTellOfThem() {
    QFETCH(QString, type);
    QFETCH(QByteArray, more);
    nlohmann::json config = {{"model_type", type.toStdString()}, {"hidden_size", 64},        {"num_hidden_layers", 2},
                             {"num_attention_heads", 4},         {"intermediate_size", 128}, {"vocab_size", 256},
                             {"max_position_embeddings", 512},   {"torch_dtype", "bfloat16"}};
    config.merge_patch(nlohmann::json::parse(more.toStdString()));
    const auto parsed = parseModelConfig(config.dump(), "config.json");
    QVERIFY2(parsed, parsed ? "" : parsed.error().message().c_str());
    QCOMPARE(std::count(parsed->warnings.begin(), parsed->warnings.end(), "the vision tower is not counted"), 1);
    QVERIFY(std::count(parsed->missingInEngine.begin(), parsed->missingInEngine.end(), "image input") >= 1);
  }

  void partsThatSpeakAreNamed() {
    nlohmann::json config = rowNamed("qwen2_5_omni thinker");
    const auto silent = parseModelConfig(config.dump(), "config.json");
    QVERIFY(silent && silent->modelType == "qwen2");
    config["talker_config"] = {{"hidden_size", 896}};
    const auto speaking = parseModelConfig(config.dump(), "config.json");
    QVERIFY(speaking &&
            std::count(speaking->warnings.begin(), speaking->warnings.end(), "the parts that speak are not counted") == 1);
    QCOMPARE(inventoryOfConfig(*speaking).parameters(), inventoryOfConfig(*silent).parameters());
  }

  // Each attention of LongCat's double layers keeps a cache of its own; the router has rows for experts without weights.
  void doubleLayersKeepTwoCaches() {
    nlohmann::json config = rowNamed("longcat_flash");
    const auto parsed = parseModelConfig(config.dump(), "config.json");
    QVERIFY(parsed);
    QCOMPARE(parsed->layerCount(), int64_t{6});
    for (const LayerSpec& layer : parsed->layers) QVERIFY(layer.attention == AttentionKind::Latent);
    QVERIFY(parsed->layers[0].ffn == FfnKind::MixtureOfExperts && parsed->layers[1].ffn == FfnKind::Dense);
    config["zero_expert_num"] = 3;
    const auto idle = parseModelConfig(config.dump(), "config.json");
    QVERIFY(idle);
    QCOMPARE(inventoryOfConfig(*idle).parameters() - inventoryOfConfig(*parsed).parameters(), int64_t{3 * 3 * (256 + 1)});
  }

  // One value a layer in place of one for all, as Hunyuan's files have it.
  void listsOfLayersAreRead() {
    nlohmann::json config = rowNamed("hunyuan_v1_moe");
    const int64_t layers = config["num_hidden_layers"].get<int64_t>();
    const auto plain = parseModelConfig(config.dump(), "config.json");
    QVERIFY(plain && plain->layers.back().moe.expertsPerToken > 0);
    config["moe_intermediate_size"] =
        std::vector<int64_t>(static_cast<size_t>(layers), plain->layers.back().moe.expertIntermediate);
    config["moe_topk"] = std::vector<int64_t>(static_cast<size_t>(layers), 2);
    const auto listed = parseModelConfig(config.dump(), "config.json");
    QVERIFY2(listed, listed ? "" : listed.error().message().c_str());
    QCOMPARE(inventoryOfConfig(*listed).parameters(), inventoryOfConfig(*plain).parameters());
    QCOMPARE(listed->layers.back().moe.expertsPerToken, int64_t{2});
  }

  // Kinds of layers that are not known are named and planned as full attention.
  void unknownLayerTypesAreNamed() {
    const nlohmann::json config = {{"model_type", "llama"},
                                   {"hidden_size", 256},
                                   {"num_hidden_layers", 2},
                                   {"num_attention_heads", 8},
                                   {"intermediate_size", 512},
                                   {"vocab_size", 1000},
                                   {"layer_types", {"full_attention", "spiral"}}};
    const auto parsed = parseModelConfig(config.dump(), "config.json");
    QVERIFY(parsed);
    QVERIFY(parsed->layers[1].attention == AttentionKind::Full);
    QVERIFY(!parsed->missingInEngine.empty());  // the engine does not guess
    QVERIFY(std::any_of(parsed->warnings.begin(), parsed->warnings.end(),
                        [](const std::string& warning) { return warning.find("spiral") != std::string::npos; }));
  }

 private:
  // The configuration of a row of the table.
  static nlohmann::json rowNamed(const std::string& name) {
    std::ifstream file(HEADROOM_TEST_DATA "/model_families.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto row = nlohmann::json::parse(line);
      if (row["name"] == name) return row["config"];
    }
    return {};
  }

  void countsAsPublished() {
    QFETCH(QByteArray, config);
    QFETCH(qint64, parameters);
    const auto parsed = parseModelConfig(config.toStdString(), "config.json");
    QVERIFY2(parsed, parsed ? "" : parsed.error().message().c_str());
    QCOMPARE(static_cast<qint64>(inventoryOfConfig(*parsed).parameters()), parameters);
  }
};

QTEST_GUILESS_MAIN(ModelFamiliesTest)
#include "model_families_test.moc"
