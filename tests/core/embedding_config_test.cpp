// SPDX-License-Identifier: Apache-2.0
// What files say of embeddings: sentence-transformers' modules and GGUF's pooling type.
#include "core/model/embedding_config.h"

#include <QTemporaryDir>
#include <QtTest>

#include <sys/stat.h>
#include <fstream>

using namespace headroom;

namespace {

constexpr const char* kTransformer = R"({"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"})";
constexpr const char* kPooling = R"({"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})";
constexpr const char* kNormalize = R"({"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})";

// A folder with these files; an empty text leaves one out.
struct Folder {
  Folder(const std::string& modules, const std::string& pooling, const std::string& config = "{}") {
    const std::filesystem::path path = dir.path().toStdString();
    std::filesystem::create_directory(path / "1_Pooling");
    if (!modules.empty()) std::ofstream(path / "modules.json") << modules;
    if (!pooling.empty()) std::ofstream(path / "1_Pooling" / "config.json") << pooling;
    std::ofstream(path / "config.json") << config;
    model.folder = path;
  }
  QTemporaryDir dir;
  ModelSource model;
};

std::string modules(std::initializer_list<const char*> all) {
  std::string text = "[";
  for (const char* module : all) text += (text.size() > 1 ? "," : "") + std::string(module);
  return text + "]";
}

}  // namespace

class EmbeddingConfigTest : public QObject {
  Q_OBJECT

 private slots:
  void readsTheModules_data() {
    QTest::addColumn<std::string>("pooling");
    QTest::addColumn<bool>("normalizes");
    QTest::addColumn<std::string>("expected");
    QTest::newRow("last token") << std::string(R"({"pooling_mode_lasttoken": true})") << true << std::string("last");
    QTest::newRow("mean") << std::string(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false})") << false
                          << std::string("mean");
    QTest::newRow("cls") << std::string(R"({"pooling_mode_cls_token": true})") << true << std::string("cls");
    QTest::newRow("max") << std::string(R"({"pooling_mode_max_tokens": true})") << false << std::string("max");
    QTest::newRow("sqrt") << std::string(R"({"pooling_mode_mean_sqrt_len_tokens": true})") << false
                          << std::string("mean_sqrt_len");
    QTest::newRow("weighted") << std::string(R"({"pooling_mode_weightedmean_tokens": true})") << false
                              << std::string("weighted_mean");
    QTest::newRow("by one name") << std::string(R"({"embedding_dimension": 8, "pooling_mode": "lasttoken"})") << true
                                 << std::string("last");
  }
  void readsTheModules() {
    QFETCH(std::string, pooling);
    QFETCH(bool, normalizes);
    QFETCH(std::string, expected);
    const Folder folder(normalizes ? modules({kTransformer, kPooling, kNormalize}) : modules({kTransformer, kPooling}), pooling);
    const auto config = readEmbeddingConfig(folder.model);
    QVERIFY2(config.has_value(), config ? "" : config.error().message().c_str());
    QVERIFY(config->has_value());
    QCOMPARE(std::string(poolingName((*config)->pooling)), expected);
    QCOMPARE((*config)->normalizes, normalizes);
    QVERIFY(parsePooling(expected) == (*config)->pooling);
  }

  void saysNothingWhereTheFilesSayNothing() {
    const Folder folder("", "");
    const auto config = readEmbeddingConfig(folder.model);
    QVERIFY(config && !config->has_value());
    QVERIFY(!parsePooling("middle"));
  }

  void refusesWhatIsNotComputed_data() {
    QTest::addColumn<std::string>("list");
    QTest::addColumn<std::string>("pooling");
    QTest::addColumn<std::string>("config");
    QTest::addColumn<std::string>("says");
    const std::string last = R"({"pooling_mode_lasttoken": true})", all = modules({kTransformer, kPooling});
    QTest::newRow("a dense layer") << modules({kTransformer, kPooling, R"({"type": "sentence_transformers.models.Dense"})"})
                                   << last << std::string("{}") << std::string("Dense");
    QTest::newRow("two poolings") << all << std::string(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})")
                                  << std::string("{}") << std::string("several poolings");
    QTest::newRow("no pooling") << all << std::string("{}") << std::string("{}") << std::string("no pooling that is known");
    QTest::newRow("no file") << all << std::string() << std::string("{}") << std::string("no such file");
    QTest::newRow("no list") << std::string("{}") << last << std::string("{}") << std::string("no list");
    QTest::newRow("both ways") << all << last << std::string(R"({"use_bidirectional_attention": true})") << std::string("causal");
    QTest::newRow("not causal") << all << last << std::string(R"({"is_causal": false})") << std::string("causal");
    QTest::newRow("cut off") << all << std::string("{\"pooling") << std::string("{}") << std::string("1_Pooling");
  }
  void refusesWhatIsNotComputed() {
    QFETCH(std::string, list);
    QFETCH(std::string, pooling);
    QFETCH(std::string, config);
    QFETCH(std::string, says);
    const Folder folder(list, pooling, config);
    const auto found = readEmbeddingConfig(folder.model);
    QVERIFY(!found.has_value());
    QVERIFY2(found.error().message().find(says) != std::string::npos, found.error().message().c_str());
  }

  // A pipe would be waited for, a device read for ever.
  void readsRegularFilesOnly() {
    const Folder folder("", "");
    QCOMPARE(mkfifo((folder.model.folder / "modules.json").c_str(), 0600), 0);
    const auto found = readEmbeddingConfig(folder.model);
    QVERIFY(!found.has_value());
    QVERIFY2(found.error().message().find("not a regular file") != std::string::npos, found.error().message().c_str());
  }

  void readsGgufsPoolingType() {
    ModelSource model;
    model.ggufMetadata = {{"general.architecture", "qwen3"}};
    QVERIFY(readEmbeddingConfig(model) && !readEmbeddingConfig(model)->has_value());
    for (const auto& [number, name] : {std::pair{1, "mean"}, std::pair{2, "cls"}, std::pair{3, "last"}}) {
      model.ggufMetadata["qwen3.pooling_type"] = number;
      const auto config = readEmbeddingConfig(model);
      QVERIFY(config && config->has_value());
      QCOMPARE(std::string(poolingName((*config)->pooling)), std::string(name));
      QVERIFY((*config)->normalizes);
    }
    model.ggufMetadata["qwen3.pooling_type"] = 0;
    QVERIFY(!readEmbeddingConfig(model)->has_value());
    model.ggufMetadata["qwen3.pooling_type"] = 4;
    QVERIFY(!readEmbeddingConfig(model).has_value());
  }
};

QTEST_APPLESS_MAIN(EmbeddingConfigTest)
#include "embedding_config_test.moc"
