// SPDX-License-Identifier: Apache-2.0
// Opening MODEL: folders, shards, GGUF files, configurations, names; one clear message for what cannot be opened.
#include "core/model/tensor_inventory.h"
#include "gguf_writer.h"

#include <QDir>
#include <QTemporaryDir>
#include <QtTest>

#include <sys/stat.h>

#include <fstream>

using namespace headroom;

namespace {

nlohmann::json llama() {
  return {{"model_type", "llama"},
          {"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"intermediate_size", 160},
          {"vocab_size", 300},
          {"max_position_embeddings", 512},
          {"torch_dtype", "bfloat16"},
          {"eos_token_id", 2}};
}

// The tensors [first, last) of what a configuration stores, as a safetensors file.
std::string safetensors(const nlohmann::json& config, size_t first = 0, size_t last = SIZE_MAX,
                        const std::function<void(TensorEntry&)>& change = {}) {
  const auto list = inventoryOfConfig(*parseModelConfig(config.dump(), "test")).tensors;
  nlohmann::json header;
  int64_t offset = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, int64_t bytes) {
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  for (size_t i = first; i < std::min(last, list.size()); ++i) {
    TensorEntry entry = list[i];
    if (change) change(entry);
    const size_t all = entry.name.find("*");
    if (all == std::string::npos) {
      add(entry.name, entry.shape, entry.storedBytes().count());
      continue;
    }
    for (int64_t expert = 0; expert < entry.shape[0]; ++expert) {
      std::string name = entry.name;
      name.replace(all, 1, std::to_string(expert));
      add(name, {entry.shape[1], entry.shape[2]}, entry.storedBytes().count() / entry.shape[0]);
    }
  }
  const std::string text = header.dump();
  std::string bytes(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text + std::string(static_cast<size_t>(offset), '\0');
}

// A GGUF of the same shapes; embedding and head are F16, matrices Q8_0.
GgufWriter gguf(const std::string& arch = "llama") {
  GgufWriter writer;
  writer.text("general.architecture", arch)
      .text("general.name", "Tiny")
      .u32(arch + ".embedding_length", 64)
      .u32(arch + ".block_count", 2);
  writer.u32(arch + ".attention.head_count", 8)
      .u32(arch + ".attention.head_count_kv", 2)
      .u32(arch + ".feed_forward_length", 160)
      .u32(arch + ".context_length", 512);
  writer.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .f32(arch + ".rope.freq_base", 50000.f)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.eot_token_id", 3);
  writer.texts("tokenizer.ggml.tokens", std::vector<std::string>(300, "t"));
  writer.tensor("token_embd.weight", 1, {64, 300}).tensor("output_norm.weight", 0, {64});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    writer.tensor(at + "attn_norm.weight", 0, {64})
        .tensor(at + "attn_q.weight", 8, {64, 64})
        .tensor(at + "attn_k.weight", 8, {64, 16})
        .tensor(at + "attn_v.weight", 8, {64, 16});
    writer.tensor(at + "attn_output.weight", 8, {64, 64})
        .tensor(at + "ffn_norm.weight", 0, {64})
        .tensor(at + "ffn_gate.weight", 8, {64, 160});
    writer.tensor(at + "ffn_up.weight", 8, {64, 160}).tensor(at + "ffn_down.weight", 8, {160, 64});
  }
  return writer;
}

bool mentions(const std::vector<std::string>& list, const char* words) {
  return std::any_of(list.begin(), list.end(), [&](const auto& text) { return text.find(words) != std::string::npos; });
}

}  // namespace

class OpenModelTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> m_folder;

  std::string folder() const { return m_folder->path().toStdString(); }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder() + "/" + name, std::ios::binary) << content;
  }
  ModelSource opened(const std::string& model) {
    auto source = openModel(model);
    if (!source) qFatal("%s", source.error().message().c_str());
    return std::move(*source);
  }
  void refuses(const std::string& model, const QString& message) {
    const auto source = openModel(model);
    QVERIFY(!source);
    const QString text = QString::fromStdString(source.error().message());
    QVERIFY2(text.contains(message), qPrintable(text));
  }

 private slots:
  void init() { m_folder = std::make_unique<QTemporaryDir>(); }

  void opensAFolderWithOneFile() {
    write("config.json", llama().dump());
    write("generation_config.json", R"({"eos_token_id": [2, 5]})");
    write("model.safetensors", safetensors(llama()));
    const ModelSource source = opened(folder());
    QVERIFY(source.origin == ModelSource::Origin::SafetensorsHeaders && source.canBeLoaded());
    QVERIFY2(source.config.warnings.empty(), source.config.warnings.empty() ? "" : source.config.warnings[0].c_str());
    QVERIFY(source.config.missingInEngine.empty());
    QVERIFY((source.config.eosTokenIds == std::vector<int32_t>{2, 5}));
    QCOMPARE(source.inventory.parameters(), 120640);
    const auto* down = source.inventory.find(TensorRole::Down, 1);
    QVERIFY(down && down->location && down->location->bytes.count() == 2 * 64 * 160 && down->splitDim == 1);
    QCOMPARE(source.config.name, QDir(m_folder->path()).dirName().toStdString());
    // The configuration beside its weights stands for the folder.
    QVERIFY(opened(folder() + "/config.json").canBeLoaded());
    QVERIFY(opened(folder() + "/").canBeLoaded());
  }

  void opensShardsByTheirIndex() {
    write("config.json", llama().dump());
    write("a.safetensors", safetensors(llama(), 0, 9));
    write("b.safetensors", safetensors(llama(), 9));
    write("stray.safetensors", "not one of the index");
    write("model.safetensors.index.json", R"({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
    const ModelSource source = opened(folder());
    QCOMPARE(source.weightFiles.size(), size_t(2));
    QCOMPARE(source.inventory.find(TensorRole::LmHead)->location->file, 1);
    QVERIFY(source.config.warnings.empty());

    QFile::remove(m_folder->path() + "/b.safetensors");
    refuses(folder(), "1 of 2 shards missing (b.safetensors), expected all files of model.safetensors.index.json");
  }

  void refusesAnIndexThatLeavesTheFolder() {
    write("config.json", llama().dump());
    write("model.safetensors.index.json", R"({"weight_map": {"x": "../../etc/passwd"}})");
    refuses(folder(), "a file name without folders");
    write("model.safetensors.index.json", R"({"weight_map": {}})");
    refuses(folder(), "no weight_map");
    write("model.safetensors.index.json", R"({"weight_map": {"x": 7}})");
    refuses(folder(), "weight_map: found 7");
  }

  void namesShardsThatNumbersPromise() {
    write("config.json", llama().dump());
    write("model-00001-of-00003.safetensors", safetensors(llama()));
    refuses(folder(), "1 of 3 shards and no model.safetensors.index.json");
  }

  void refusesATensorInTwoFiles() {
    write("config.json", llama().dump());
    write("a.safetensors", safetensors(llama()));
    write("b.safetensors", safetensors(llama(), 0, 1));
    refuses(folder(), "tensor model.embed_tokens.weight once more (first in a.safetensors)");
  }

  void opensExpertsStoredOneByOne() {
    nlohmann::json config = llama();
    config.merge_patch({{"model_type", "mixtral"}, {"num_local_experts", 4}, {"num_experts_per_tok", 2}});
    write("config.json", config.dump());
    write("model.safetensors", safetensors(config));
    const ModelSource source = opened(folder());
    QVERIFY2(source.config.warnings.empty(), source.config.warnings.empty() ? "" : source.config.warnings[0].c_str());
    const auto* expert = source.inventory.find(TensorRole::ExpertDown, 1, 3);
    QVERIFY(expert && expert->splitDim == 1 && expert->segments[0].unit == SplitUnit::ExpertColumns);
    QCOMPARE(source.inventory.parameters(), inventoryOfConfig(source.config).parameters());
  }

  void namesDifferencesFromTheConfiguration() {
    write("config.json", llama().dump());
    write("model.safetensors", safetensors(llama(), 0, 20, [](TensorEntry& entry) {
            if (entry.name.ends_with("1.mlp.up_proj.weight")) entry.shape[0] = 128;
            if (entry.name.ends_with("0.input_layernorm.weight")) entry.name = "something.else";
          }));
    const ModelSource source = opened(folder());
    QVERIFY(mentions(source.config.warnings,
                     "model.layers.1.mlp.up_proj.weight has shape [128, 64], by the configuration [160, 64]"));
    QVERIFY(mentions(source.config.warnings,
                     "the files lack 2 tensors that the configuration expects: model.layers.0.input_layernorm.weight"));
    QVERIFY(mentions(source.config.warnings, "the files hold 1 tensors that the configuration does not tell of: something.else"));
    // The head is missing: the embedding serves.
    QVERIFY(source.config.tieWordEmbeddings && mentions(source.config.warnings, "the embedding is taken for it"));
    QVERIFY(!source.config.missingInEngine.empty());
  }

  void plansFromAConfigurationAlone() {
    write("config.json", llama().dump());
    const ModelSource file = opened(folder() + "/config.json");
    QVERIFY(file.origin == ModelSource::Origin::ConfigFormula && !file.canBeLoaded() && file.inventory.parameters() == 120640);
    write("pytorch_model.bin", "PK");
    QVERIFY(mentions(opened(folder()).config.warnings, "PyTorch pickles"));
    write("hf_quant_config.json",
          R"({"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}})");
    const ModelSource quantized = opened(folder() + "/config.json");
    QVERIFY(quantized.config.quantization && quantized.config.quantization->method == "modelopt" &&
            quantized.config.quantization->bits == 4);
    QCOMPARE(quantized.inventory.parameters(), 120640);
    QVERIFY(quantized.inventory.checkpointBytes() < file.inventory.checkpointBytes());
  }

  void refusesWithItsOwnMessage() {
    refuses("", "an empty name");
    refuses("no/such-model", "no such file or folder, and no model of this name in the catalog");
    refuses(folder(), "an empty folder");
    write("notes.txt", "hello");
    refuses(folder(), "no config.json among notes.txt");
    refuses(folder() + "/notes.txt", "a file that begins \"hello\"");
    write("tokenizer.json", "{}");
    refuses(folder(), "a tokenizer and no config.json");
    write("params.json", "{}");
    refuses(folder(), "maker's own format");
    write("adapter_config.json", "{}");
    refuses(folder(), "an adapter (adapter_config.json) without config.json");
    write("x.gguf", "GGUF");
    refuses(folder(), "x.gguf: found the version of 4 bytes at byte 4, past the end of the file");
    write("y-00002-of-00002.gguf", "GGUF");
    refuses(folder(), "several GGUF models (x.gguf, y-00001-of-00002.gguf) and no config.json");
    write("w.safetensors", safetensors(llama()));
    refuses(folder() + "/w.safetensors", "weights without config.json beside them");
    write("empty.bin", "");
    refuses(folder() + "/empty.bin", "nothing (an empty file)");
  }

  // A download cache keeps its files behind links, and may have lost what they point to.
  void namesLinksThatLeadNowhere() {
    auto link = [&](const char* to, const char* name) {
      QVERIFY(QFile::link(to, QString::fromStdString(folder() + "/" + name)));
    };
    link("b", "a");
    link("a", "b");
    refuses(folder() + "/a", "a link that leads back to itself");
    link("../blobs/0f", "config.json");
    refuses(folder(), "config.json: found a link to ../blobs/0f, which is not there");
    refuses(folder() + "/config.json", "a link to ../blobs/0f, which is not there");
    QVERIFY(QFile::remove(QString::fromStdString(folder() + "/config.json")));
    write("config.json", llama().dump());
    link("../blobs/1f", "model.safetensors");
    refuses(folder(), "model.safetensors: found a link to ../blobs/1f, which is not there");
  }

  // Opening a pipe would wait for a writer that may never come.
  void refusesAPipe() {
    const std::string pipe = folder() + "/pipe";
    QCOMPARE(mkfifo(pipe.c_str(), 0600), 0);
    refuses(pipe, "not a regular file");
    QVERIFY(QFile::rename(QString::fromStdString(pipe), QString::fromStdString(folder() + "/config.json")));
    refuses(folder(), "not a regular file");
  }

  // The file's name without shard and type; general.name only where nothing else is left of it.
  void namesAGgufAfterItsFile_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("name");
    QTest::newRow("dot and type") << "SmolLM2-135M-Instruct.Q4_1.gguf" << "SmolLM2-135M-Instruct";
    QTest::newRow("dash and K type") << "Qwen2.5-7B-Instruct-Q4_K_M.gguf" << "Qwen2.5-7B-Instruct";
    QTest::newRow("lower case") << "mistral-7b-v0.3-iq4_xs.gguf" << "mistral-7b-v0.3";
    QTest::newRow("half precision") << "model-BF16.gguf" << "model";
    QTest::newRow("type alone") << "Q4_1.gguf" << "Tiny";
    QTest::newRow("no type") << "tiny.gguf" << "tiny";
  }
  void namesAGgufAfterItsFile() {
    QFETCH(QString, file);
    QFETCH(QString, name);
    write(file.toStdString(), gguf().bytes());
    QCOMPARE(QString::fromStdString(opened(folder() + "/" + file.toStdString()).config.name), name);
  }

  void opensGguf() {
    write("tiny.gguf", gguf().bytes());
    const ModelSource source = opened(folder() + "/tiny.gguf");
    QVERIFY(source.origin == ModelSource::Origin::GgufHeader && source.canBeLoaded());
    const ModelConfig& config = source.config;
    QVERIFY2(config.warnings.empty() && config.missingInEngine.empty(),
             config.warnings.empty() ? "" : config.warnings[0].c_str());
    QCOMPARE(config.name, std::string("tiny"));
    QCOMPARE(config.architecture, std::string("LlamaForCausalLM"));
    QCOMPARE(config.vocabSize, 300);
    QCOMPARE(config.kvHeads, 2);
    QCOMPARE(config.intermediateSize, 160);
    QCOMPARE(config.rope.theta, 50000.0);
    QVERIFY(config.rope.style == RopeStyle::Interleaved && config.tieWordEmbeddings && config.dtype == DType::Q8_0);
    QVERIFY((config.eosTokenIds == std::vector<int32_t>{2, 3}));
    const auto* q = source.inventory.find(TensorRole::Q, 1);
    QVERIFY(q && q->shape == std::vector<int64_t>({64, 64}) && q->splitDim == 0 && q->location->bytes.count() == 64 * 2 * 34);
    QCOMPARE(source.inventory.parameters(), 120640 - 300 * 64);
    QVERIFY(source.ggufMetadata.contains("tokenizer.ggml.tokens.length") &&
            !source.ggufMetadata.contains("tokenizer.ggml.tokens"));
  }

  // A folder that holds one model as GGUF is that model, whatever projectors stand beside it; parts that are not there are told.
  void opensAFolderOfOneGguf() {
    write("Tiny-Q8_0.gguf", gguf().bytes());
    write("mmproj-Tiny-F16.gguf", "GGUF");
    const ModelSource source = opened(folder());
    QCOMPARE(source.path.filename().string(), std::string("Tiny-Q8_0.gguf"));
    QCOMPARE(source.config.name, std::string("Tiny"));
    write("config.json", llama().dump());
    QVERIFY(opened(folder()).origin == ModelSource::Origin::GgufHeader);
    write("Tiny-Q4_0.gguf", gguf().bytes());
    QVERIFY(opened(folder()).origin == ModelSource::Origin::ConfigFormula);
    m_folder = std::make_unique<QTemporaryDir>();
    write("big-00002-of-00003.gguf", gguf().bytes());
    refuses(folder(), "part 2 of 3 without the first part");
  }

  void turnsHalvesForQwen() {
    GgufWriter writer = gguf("qwen2");
    writer.tensor("output.weight", 1, {64, 300}).tensor("blk.0.attn_q.bias", 0, {64});
    write("qwen.gguf", writer.bytes());
    const ModelSource source = opened(folder() + "/qwen.gguf");
    QVERIFY(source.config.rope.style == RopeStyle::Neox && !source.config.tieWordEmbeddings && source.config.checkpoint.qkvBias);
    QVERIFY(source.inventory.find(TensorRole::QBias, 0)->segments[0].unit == SplitUnit::QHeads);
  }

  void readsFrequencyDivisors() {
    GgufWriter writer = gguf();
    writer.floats("rope_freqs.weight", {1.f, 1.5f, 4.f, 8.f});
    write("scaled.gguf", writer.bytes());
    const ModelSource source = opened(folder() + "/scaled.gguf");
    QVERIFY(source.config.rope.scaling == RopeScaling::LongRope);
    QVERIFY((source.config.rope.longFactors == std::vector<double>{1.0, 1.5, 4.0, 8.0}));
    QCOMPARE(*source.config.rope.attentionFactor, 1.0);
    GgufWriter wrong = gguf();
    wrong.floats("rope_freqs.weight", {1.f, 0.f});
    write("wrong.gguf", wrong.bytes());
    refuses(folder() + "/wrong.gguf", "rope_freqs.weight: found 2 values, expected 4 positive divisors");
  }

  void readsValuesOfEachLayer() {
    GgufWriter writer;
    writer.text("general.architecture", "deci")
        .u32("deci.embedding_length", 64)
        .u32("deci.block_count", 3)
        .i32s("deci.attention.head_count", {8, 0, 8})
        .i32s("deci.attention.head_count_kv", {2, 0, 4});
    writer.i32s("deci.feed_forward_length", {160, 96, 0}).u32("deci.vocab_size", 300).tensor("token_embd.weight", 1, {64, 300});
    write("deci.gguf", writer.bytes());
    const ModelConfig config = opened(folder() + "/deci.gguf").config;
    QVERIFY(config.layers[1].attention == AttentionKind::None && config.layers[2].ffn == FfnKind::None);
    QCOMPARE(config.layers[2].kvHeads, 4);
    QCOMPARE(config.layers[1].intermediateSize, 96);
    QVERIFY(mentions(config.warnings, "architecture \"deci\" is unknown"));
  }

  void keepsMetadataReadableWithNewerTensorTypes() {
    GgufWriter writer = gguf();
    writer.tensor("blk.0.extra.weight", 99, {256}, 160);
    write("newer.gguf", writer.bytes());
    const ModelSource source = opened(folder() + "/newer.gguf");
    QVERIFY(mentions(source.config.warnings, "tensor blk.0.extra.weight uses tensor type 99, newer than this reader"));
    QVERIFY(mentions(source.config.missingInEngine, "tensor type 99"));
    QCOMPARE(source.inventory.tensors.back().storedBytes().count(), 160);
    QCOMPARE(source.inventory.tensors.back().parameters(), 256);
  }

  void refusesGgufWithItsOwnMessage_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* name, const GgufWriter& writer, const char* message) {
      QTest::newRow(name) << QByteArray::fromStdString(writer.bytes()) << message;
    };
    row("no architecture", GgufWriter().u32("x", 1), "no general.architecture");
    row("projector", GgufWriter().text("general.architecture", "clip"), "the image or audio part of a model");
    row("adapter", GgufWriter().text("general.architecture", "llama").text("general.type", "adapter"), "an adapter (LoRA)");
    row("no sizes", GgufWriter().text("general.architecture", "llama"), "no metadata key llama.embedding_length");
    row("no vocabulary",
        GgufWriter().text("general.architecture", "llama").u32("llama.embedding_length", 64).u32("llama.block_count", 1),
        "neither llama.vocab_size nor tokenizer.ggml.tokens");
    row("heads a text",
        GgufWriter()
            .text("general.architecture", "llama")
            .u32("llama.embedding_length", 64)
            .u32("llama.block_count", 1)
            .u32("llama.vocab_size", 9)
            .text("llama.attention.head_count", "8"),
        "llama.attention.head_count: found \"8\"");
    row("no heads",
        GgufWriter()
            .text("general.architecture", "llama")
            .u32("llama.embedding_length", 64)
            .u32("llama.block_count", 1)
            .u32("llama.vocab_size", 9),
        "at least one layer with attention heads");
    row("too few layers in an array",
        GgufWriter()
            .text("general.architecture", "llama")
            .u32("llama.embedding_length", 64)
            .u32("llama.block_count", 3)
            .u32("llama.vocab_size", 9)
            .i32s("llama.attention.head_count", {8, 8}),
        "llama.attention.head_count: found 2, expected one value for each of the 3 layers");
    row("KV heads do not divide",
        GgufWriter()
            .text("general.architecture", "llama")
            .u32("llama.embedding_length", 64)
            .u32("llama.block_count", 1)
            .u32("llama.vocab_size", 9)
            .u32("llama.attention.head_count", 8)
            .u32("llama.attention.head_count_kv", 3),
        "llama.attention.head_count_kv: found 3, expected a divisor of the 8 query heads");
  }
  void refusesGgufWithItsOwnMessage() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    write("model.gguf", bytes.toStdString());
    refuses(folder() + "/model.gguf", message);
  }
};

QTEST_APPLESS_MAIN(OpenModelTest)
#include "open_model_test.moc"
