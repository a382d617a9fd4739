// SPDX-License-Identifier: Apache-2.0
// What a rank of vLLM 0.32 holds: parameter bytes and cache blocks as its own model classes built them for these sizes on
// compute capability 9.0, and the rules behind them on models made here.
#include "core/memory/held_weights.h"
#include "core/memory/vllm_memory.h"

#include <QtTest>

using namespace headroom;

namespace {

// The engine's own counts: bytes of rank 0's parameters, how many of them single numbers that the engine makes itself; bytes of a
// cache block and blocks of a request of `length` tokens, with 8192 tokens in a step.
struct Recorded {
  const char* model;
  int tp;
  qint64 bytes, scalars, blockBytes, requestBlocks, length;
};
constexpr Recorded kRecorded[] = {{"HuggingFaceTB/SmolLM3-3B", 1, 6150197248, 0, 1179648, 4096, 65536},
                                  {"HuggingFaceTB/SmolLM3-3B", 2, 3075248128, 0, 589824, 4096, 65536},
                                  {"HuggingFaceTB/SmolLM3-3B", 8, 787910656, 0, 294912, 4096, 65536},
                                  {"Qwen/Qwen2.5-72B-Instruct-AWQ", 1, 41595518976, 0, 5242880, 2048, 32768},
                                  {"Qwen/Qwen2.5-72B-Instruct-AWQ", 2, 20799078400, 0, 2621440, 2048, 32768},
                                  {"Qwen/Qwen2.5-72B-Instruct-AWQ", 8, 5201747968, 0, 655360, 2048, 32768},
                                  {"Qwen/Qwen2.5-7B", 1, 15231233024, 0, 917504, 8192, 131072},
                                  {"Qwen/Qwen2.5-7B", 2, 7615820800, 0, 458752, 8192, 131072},
                                  {"Qwen/Qwen3-235B-A22B-FP8", 1, 236445456112, 752, 3080192, 2560, 40960},
                                  {"Qwen/Qwen3-235B-A22B-FP8", 2, 118272809712, 752, 1540096, 2560, 40960},
                                  {"Qwen/Qwen3-235B-A22B-FP8", 4, 59186486512, 752, 770048, 2560, 40960},
                                  {"Qwen/Qwen3-235B-A22B-FP8", 8, 29713411312, 752, 770048, 2560, 40960},
                                  {"Qwen/Qwen3-235B-A22B-FP8", 16, 14997665008, 752, 770048, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B", 1, 61064245248, 0, 1572864, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B", 2, 30544916480, 0, 786432, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B", 8, 7680585728, 0, 393216, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B-FP8", 1, 31174545792, 384, 1572864, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B-FP8", 2, 15600066944, 384, 786432, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B-FP8", 4, 7818135936, 384, 393216, 2560, 40960},
                                  {"Qwen/Qwen3-30B-A3B-FP8", 8, 3945064832, 384, 393216, 2560, 40960},
                                  {"Qwen/Qwen3-8B-FP8", 1, 9437399328, 288, 2359296, 2560, 40960},
                                  {"Qwen/Qwen3-8B-FP8", 2, 4719008032, 288, 1179648, 2560, 40960},
                                  {"Qwen/Qwen3-8B-FP8", 4, 2359812384, 288, 589824, 2560, 40960},
                                  {"Qwen/Qwen3-8B-FP8", 8, 1180214560, 288, 294912, 2560, 40960},
                                  {"Qwen/Qwen3-8B-FP8", 16, 609294624, 288, 294912, 2560, 40960},
                                  {"deepseek-ai/DeepSeek-V2-Lite", 1, 31412968448, 0, 497664, 10240, 163840},
                                  {"deepseek-ai/DeepSeek-V2-Lite", 2, 15741869056, 0, 497664, 10240, 163840},
                                  {"deepseek-ai/DeepSeek-V2-Lite", 8, 3988544512, 0, 497664, 10240, 163840},
                                  {"deepseek-ai/DeepSeek-V3", 1, 673150611808, 0, 1124352, 10240, 163840},
                                  {"deepseek-ai/DeepSeek-V3", 2, 337144622688, 0, 1124352, 10240, 163840},
                                  {"deepseek-ai/DeepSeek-V3", 8, 85140130848, 0, 1124352, 10240, 163840},
                                  {"google/gemma-2b", 1, 5012344832, 0, 294912, 512, 8192},
                                  {"google/gemma-2b", 2, 2525122560, 0, 294912, 512, 8192},
                                  {"google/gemma-2b", 8, 659705856, 0, 294912, 512, 8192},
                                  {"google/gemma-3-1b-it", 1, 1999771904, 0, 65536, 8390, 32768},
                                  {"google/gemma-3-1b-it", 2, 1015355648, 0, 65536, 8390, 32768},
                                  {"google/gemma-3-27b-it", 1, 54864813280, 0, 1310720, 14726, 131072},
                                  {"google/gemma-3-27b-it", 2, 27445541488, 0, 655360, 14726, 131072},
                                  {"google/gemma-3-27b-it", 8, 6881087644, 0, 163840, 14726, 131072},
                                  {"internlm/internlm2_5-7b-chat", 1, 15475417088, 0, 2097152, 4096, 65536},
                                  {"internlm/internlm2_5-7b-chat", 2, 7737974784, 0, 1048576, 4096, 65536},
                                  {"internlm/internlm2_5-7b-chat", 8, 1934893056, 0, 262144, 4096, 65536},
                                  {"meta-llama/Llama-3.3-70B-Instruct", 1, 141107412992, 0, 5242880, 8192, 131072},
                                  {"meta-llama/Llama-3.3-70B-Instruct", 2, 70555025408, 0, 2621440, 8192, 131072},
                                  {"meta-llama/Llama-3.3-70B-Instruct", 8, 17640734720, 0, 655360, 8192, 131072},
                                  {"microsoft/phi-4", 1, 29319014400, 0, 3276800, 1024, 16384},
                                  {"microsoft/phi-4", 2, 14659921920, 0, 1638400, 1024, 16384},
                                  {"mistralai/Mixtral-8x22B-v0.1", 1, 281241268224, 0, 3670016, 4096, 65536},
                                  {"mistralai/Mixtral-8x22B-v0.1", 2, 140624080896, 0, 1835008, 4096, 65536},
                                  {"mistralai/Mixtral-8x22B-v0.1", 8, 35161190400, 0, 458752, 4096, 65536},
                                  {"moonshotai/Kimi-K2-Instruct", 1, 1029173249888, 0, 1124352, 8192, 131072},
                                  {"moonshotai/Kimi-K2-Instruct", 2, 515214678368, 0, 1124352, 8192, 131072},
                                  {"moonshotai/Kimi-K2-Instruct", 8, 129745749728, 0, 1124352, 8192, 131072},
                                  {"openai/gpt-oss-120b", 1, 65248815744, 0, 589824, 9225, 131072},
                                  {"openai/gpt-oss-120b", 2, 33328681344, 0, 294912, 9225, 131072},
                                  {"openai/gpt-oss-120b", 8, 8711167680, 0, 73728, 9225, 131072},
                                  {"openai/gpt-oss-20b", 1, 13761264768, 0, 393216, 9225, 131072},
                                  {"openai/gpt-oss-20b", 2, 6998169216, 0, 196608, 9225, 131072},
                                  {"openai/gpt-oss-20b", 8, 1812945408, 0, 49152, 9225, 131072}};

HeldWeightsOptions optionsOf(const ModelConfig& config, double computeCapability = 9.0) {
  HeldWeightsOptions options;
  options.version = {0, 32, 0};
  options.dtype = config.dtype == DType::F16 || config.dtype == DType::F32 ? DType::F16 : DType::BF16;
  if (config.quantization) options.quantization = config.quantization->method;
  options.computeCapability = computeCapability;
  return options;
}

ModelSource modelOf(const char* text) {
  auto config = parseModelConfig(text, "config.json");
  expects(config.has_value(), "a good configuration");
  ModelSource model;
  model.config = *config;
  model.inventory = inventoryOfConfig(model.config);
  return model;
}

qint64 bytesOf(const ModelSource& model, int tp, double computeCapability = 9.0) {
  const HeldWeights held(model, optionsOf(model.config, computeCapability));
  return held.stageBytes({.tp = tp, .experts = tp}, {0, model.config.layerCount()}, true, true).count();
}

constexpr const char* kSmallMoe = R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 1024,
  "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1024,
  "moe_intermediate_size": 768, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1000, "max_position_embeddings": 4096,
  "torch_dtype": "bfloat16", "tie_word_embeddings": false%s})";

}  // namespace

class HeldWeightsTest : public QObject {
  Q_OBJECT
 private slots:
  void equalTheEnginesOwnCounts_data() {
    QTest::addColumn<int>("row");
    for (int row = 0; row < static_cast<int>(std::size(kRecorded)); ++row)
      QTest::addRow("%s tp%d", kRecorded[row].model, kRecorded[row].tp) << row;
  }
  void equalTheEnginesOwnCounts() {
    QFETCH(int, row);
    const Recorded& recorded = kRecorded[row];
    const auto model = openModel(recorded.model);
    QVERIFY(model.has_value());
    const qint64 bytes = bytesOf(*model, recorded.tp);
    QVERIFY2(bytes <= recorded.bytes && bytes >= recorded.bytes - recorded.scalars,
             qPrintable(QString("%1, engine %2").arg(bytes).arg(recorded.bytes)));
    if (recorded.blockBytes == 0) return;
    VllmLimits limits;
    limits.version = {0, 32, 0};
    limits.maxModelLen = recorded.length;
    limits.maxNumSeqs = 1024;
    limits.maxNumBatchedTokens = 8192;
    const VllmKvShape shape = vllmKvShape(model->config, limits, {recorded.tp, 1, {0, model->config.layerCount()}, true});
    QCOMPARE(qint64(shape.blockBytes.count()), recorded.blockBytes);
    QCOMPARE(qint64(shape.blocksPerRequest), recorded.requestBlocks);
  }

  // 768 columns on 4 ranks are 192, one and a half blocks of 128: Hopper's kernels take blocks of 64 there.
  void takesSmallerBlocksWhereAShareEndsInsideOne() {
    const ModelSource plain = modelOf(QByteArray(kSmallMoe).replace("%s", "").constData());
    const ModelSource fp8 =
        modelOf(QByteArray(kSmallMoe)
                    .replace("%s", R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
                                                 "modules_to_not_convert": ["lm_head"]})")
                    .constData());
    auto expertScales = [&](int tp) {
      // The difference to the 16-bit model without its halved matrices leaves scales and what the cache brings.
      qint64 matrices = 0;
      for (const TensorEntry& tensor : fp8.inventory.tensors)
        if (tensor.dtype == DType::F8E4M3) matrices += tensor.elements();
      return bytesOf(fp8, tp) - (bytesOf(plain, tp) - matrices / tp);
    };
    // Two layers: q, k, v, o of 8 x 8 blocks; experts of 6 x 8 blocks, three each; 32-bit; two scales of the cache a layer.
    QCOMPARE(expertScales(1), qint64(2 * 4 * (4 * 64 + 8 * 3 * 48) + 2 * 8));
    // On 4 ranks: a quarter of the attention's; each expert 3 x 16 blocks of 64, three times.
    QCOMPARE(expertScales(4), qint64(2 * 4 * (4 * 16 + 8 * 3 * 48) + 2 * 8));
  }

  void padsTheVocabularyTo64() {
    const ModelSource model = modelOf(QByteArray(kSmallMoe).replace("%s", "").constData());
    // 1000 rows are held as 1024: half of them, twice (embedding and head).
    const HeldWeights held(model, optionsOf(model.config));
    const auto shares = held.sharesOf({.tp = 2, .experts = 2});
    QCOMPARE(qint64(shares.embedding), qint64(512 * 1024 * 2));
    QCOMPARE(qint64(shares.head), qint64(512 * 1024 * 2));
    QCOMPARE(qint64(held.sharesOf({}).embedding), qint64(1024 * 1024 * 2));
  }

  void dealsWholeExpertsToTheFirstRanks() {
    const ModelSource model = modelOf(QByteArray(kSmallMoe).replace("%s", "").constData());
    const HeldWeights held(model, optionsOf(model.config));
    const qint64 expert = 3 * 768 * 1024 * 2;
    const qint64 all = held.sharesOf({.tp = 1, .experts = 1, .expertGroups = 1}).kindBytes.front(),
                 third = held.sharesOf({.tp = 1, .experts = 1, .expertGroups = 3}).kindBytes.front();
    QCOMPARE(all - third, expert * (8 - 3));  // 3, 3 and 2
  }

  // gpt-oss on compute capability 8.0: as the engine counted.
  void padsPackedExpertsMoreWithoutHopper() {
    const auto model = openModel("openai/gpt-oss-20b");
    QVERIFY(model.has_value());
    QCOMPARE(bytesOf(*model, 1, 8.0), qint64(14679227520));
    QCOMPARE(bytesOf(*model, 2, 8.0), qint64(7585240704));
    QCOMPARE(bytesOf(*model, 8, 8.0), qint64(1903483392));
  }

  // Recurrent layers: an attention block grows until it holds a state. As the engine logged for this shape (Qwen3.5-27B).
  void growsAttentionBlocksToTheState() {
    const ModelSource model = modelOf(R"({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
      "text_config": {"model_type": "qwen3_5_text", "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 17408, "vocab_size": 248320,
        "max_position_embeddings": 262144, "full_attention_interval": 4, "linear_num_key_heads": 16,
        "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32", "tie_word_embeddings": false, "torch_dtype": "bfloat16"}})");
    VllmLimits limits;
    limits.version = {0, 32, 0};
    limits.maxModelLen = 262144;
    limits.maxNumBatchedTokens = 8192;
    VllmStage stage{1, 1, {0, 64}, true};
    VllmKvShape shape = vllmKvShape(model.config, limits, stage);
    QCOMPARE(qint64(shape.blockTokens), qint64(784));
    QCOMPARE(qint64(shape.blockBytes.count()), qint64(51380224));
    QCOMPARE(qint64(shape.blocksPerRequest), qint64(341));
    // With an 8-bit cache on two ranks: a start-up log of 0.21 printed 619202 tokens for 9.84 GiB.
    limits.version = {0, 21, 0};
    limits.kvDType = DType::F8E5M2;
    stage.tp = 2;
    shape = vllmKvShape(model.config, limits, stage);
    const qint64 blocks = static_cast<qint64>(9.84 * 1024 * 1024 * 1024) / shape.blockBytes.count();
    QVERIFY(!shape.uniform);
    QCOMPARE(blocks * 262144 / shape.blocksPerRequest, qint64(619202));
  }
};

QTEST_APPLESS_MAIN(HeldWeightsTest)
#include "held_weights_test.moc"
