// SPDX-License-Identifier: Apache-2.0
// The compiled-in catalog: every entry plans, published totals are met, and damaged entries never end the program.
#include "core/model/model_catalog.h"
#include "core/model/tensor_inventory.h"

#include <QtTest>

#include <random>
#include <set>

using namespace headroom;

class ModelCatalogTest : public QObject {
  Q_OBJECT

 private slots:
  void everyEntryPlans() {
    QVERIFY(modelCatalog().size() >= 100);
    std::set<std::string> names;
    for (const auto& model : modelCatalog()) {
      QVERIFY2(names.insert(model.name).second, model.name.c_str());
      QVERIFY2(!model.licence.empty(), model.name.c_str());
      const auto source = openModel(model.name);
      QVERIFY2(source.has_value(), model.name.c_str());
      QVERIFY(source->origin == ModelSource::Origin::Catalog && !source->canBeLoaded());
      QVERIFY2(!source->config.eosTokenIds.empty() || model.config.value("eos_token_id", nlohmann::json()).is_null(),
               model.name.c_str());
      Bytes sum;
      for (const auto& tensor : source->inventory.tensors) {
        sum += tensor.storedBytes();
        int64_t split = 0;
        for (const auto& segment : tensor.segments) split += segment.elements;
        const std::string why = model.name + " " + tensor.name;
        QVERIFY2(tensor.splitDim < 0 || tensor.shape.at(static_cast<size_t>(tensor.splitDim)) == split, why.c_str());
      }
      QVERIFY(sum == source->inventory.checkpointBytes());
    }
  }

  // Totals as the hub publishes them.
  void meetsPublishedTotals_data() {
    QTest::addColumn<qint64>("parameters");
    const std::pair<const char*, qint64> rows[] = {{"Qwen/Qwen2.5-0.5B", 494032768},
                                                   {"Qwen/Qwen2.5-7B-Instruct", 7615616512},
                                                   {"Qwen/Qwen2.5-72B-Instruct", 72706203648},
                                                   {"Qwen/Qwen3-0.6B", 751632384},
                                                   {"Qwen/Qwen3-4B", 4022468096},
                                                   {"Qwen/Qwen3-8B", 8190735360},
                                                   {"Qwen/Qwen3-30B-A3B", 30532122624},
                                                   {"Qwen/Qwen3-30B-A3B-FP8", 30533947392},
                                                   {"Qwen/Qwen3-235B-A22B", 235093634560},
                                                   {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480154875392},
                                                   {"Qwen/Qwen3-Next-80B-A3B-Instruct", 81324862720},
                                                   {"meta-llama/Llama-2-7b-hf", 6738417664},
                                                   {"meta-llama/Llama-2-70b-hf", 68976653312},
                                                   {"meta-llama/Llama-3.1-8B-Instruct", 8030261248},
                                                   {"meta-llama/Llama-3.3-70B-Instruct", 70553706496},
                                                   {"meta-llama/Llama-3.1-405B-Instruct", 405853388800},
                                                   {"meta-llama/Llama-3.2-1B-Instruct", 1235814400},
                                                   {"meta-llama/Llama-3.2-3B-Instruct", 3212749824},
                                                   {"mistralai/Mistral-7B-v0.1", 7241732096},
                                                   {"mistralai/Mistral-Nemo-Instruct-2407", 12247782400},
                                                   {"mistralai/Mistral-Small-24B-Instruct-2501", 23572403200},
                                                   {"mistralai/Mistral-Large-Instruct-2407", 122610069504},
                                                   {"mistralai/Mixtral-8x7B-Instruct-v0.1", 46702792704},
                                                   {"mistralai/Mixtral-8x22B-v0.1", 140620634112},
                                                   {"google/gemma-2b", 2506172416},
                                                   {"google/gemma-2-2b-it", 2614341888},
                                                   {"google/gemma-2-9b-it", 9241705984},
                                                   {"google/gemma-2-27b-it", 27227128320},
                                                   {"google/gemma-3-1b-it", 999885952},
                                                   {"google/gemma-3-4b-it", 4300079472},
                                                   {"google/gemma-3-27b-it", 27432406640},
                                                   {"microsoft/Phi-3-mini-4k-instruct", 3821079552},
                                                   {"microsoft/phi-4", 14659507200},
                                                   {"HuggingFaceTB/SmolLM2-135M-Instruct", 134515008},
                                                   {"HuggingFaceTB/SmolLM3-3B", 3075098624},
                                                   {"deepseek-ai/DeepSeek-V2-Lite", 15706484224},
                                                   {"deepseek-ai/DeepSeek-V2", 235741434880},
                                                   {"deepseek-ai/DeepSeek-V3", 684531386000},
                                                   {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1777088000},
                                                   {"openai/gpt-oss-20b", 20914757184},
                                                   {"openai/gpt-oss-120b", 116829156672},
                                                   {"zai-org/GLM-4-9B-0414", 9400279040},
                                                   {"zai-org/GLM-4-32B-0414", 32566081536},
                                                   {"zai-org/GLM-4.5-Air", 110468824832},
                                                   {"zai-org/GLM-4.5", 358337791296},
                                                   {"allenai/OLMo-2-1124-7B", 7298617344},
                                                   {"CohereForAI/c4ai-command-r-v01", 34980831232},
                                                   {"CohereForAI/c4ai-command-r-plus", 103810674688},
                                                   {"CohereForAI/c4ai-command-r7b-12-2024", 8028033024},
                                                   {"ibm-granite/granite-3.1-8b-instruct", 8170848256},
                                                   {"internlm/internlm2_5-7b-chat", 7737708544},
                                                   {"tiiuae/Falcon3-7B-Instruct", 7455550464},
                                                   {"01-ai/Yi-34B-Chat", 34388917248}};
    for (const auto& [name, parameters] : rows) QTest::newRow(name) << parameters;
  }
  void meetsPublishedTotals() {
    QFETCH(qint64, parameters);
    const auto source = openModel(QTest::currentDataTag());
    QVERIFY2(source, source ? "" : source.error().message().c_str());
    QCOMPARE(static_cast<qint64>(source->inventory.parameters()), parameters);
  }

  void findsNamesInAnyCaseAndWithoutTheOwner() {
    QCOMPARE(findCatalogModel("qwen/qwen2.5-72b-instruct")->name, std::string("Qwen/Qwen2.5-72B-Instruct"));
    QCOMPARE(findCatalogModel("Qwen2.5-72B-Instruct")->name, std::string("Qwen/Qwen2.5-72B-Instruct"));
    QVERIFY(findCatalogModel("Qwen2.5") == nullptr);
    QVERIFY(findCatalogModel("") == nullptr);
  }

  // Keys removed, retyped and made absurd: a value or an error that names the model, never an abort.
  void survivesDamagedConfigurations() {
    std::mt19937 random(3);
    const nlohmann::json values[] = {nullptr,
                                     -1,
                                     0,
                                     1,
                                     3,
                                     1e18,
                                     "text",
                                     2.5,
                                     true,
                                     nlohmann::json::array(),
                                     nlohmann::json::object(),
                                     nlohmann::json::array({1, "x"}),
                                     4096,
                                     1000000};
    int accepted = 0;
    for (int round = 0; round < 4000; ++round) {
      nlohmann::json config = modelCatalog()[random() % modelCatalog().size()].config;
      for (int hits = 1 + static_cast<int>(random() % 3); hits > 0; --hits) {
        nlohmann::json* object = &config;
        if (random() % 3 == 0)
          for (auto& [key, value] : config.items())
            if (value.is_object() && random() % 2) object = &value;
        if (object->empty()) continue;
        auto at = object->begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random() % object->size()));
        if (at.key() == "model_type")
          *at = modelCatalog()[random() % modelCatalog().size()].config["model_type"];
        else
          *at = values[random() % std::size(values)];
      }
      const auto parsed = parseModelConfig(config.dump(), "damaged");
      if (!parsed) {
        QVERIFY(!parsed.error().where.empty() && !parsed.error().found.empty());
        continue;
      }
      ++accepted;
      QVERIFY2(inventoryOfConfig(*parsed).checkpointBytes().count() > 0, config.dump().c_str());
    }
    QVERIFY(accepted > 100);
  }
};

QTEST_APPLESS_MAIN(ModelCatalogTest)
#include "model_catalog_test.moc"
