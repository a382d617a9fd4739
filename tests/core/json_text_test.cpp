// SPDX-License-Identifier: Apache-2.0
// JSON from outside is refused before it is read where it is nested too deep to be walked; and every file goes that way.
#include "core/json_text.h"

#include "core/layout/parallel_layout.h"
#include "core/model/tensor_inventory.h"

#include <QtTest>

#include <filesystem>
#include <fstream>

using namespace headroom;
namespace fs = std::filesystem;

namespace {

std::string nested(const std::string& open, const std::string& close, int levels, const std::string& inner = "1") {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += inner;
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

}  // namespace

class JsonTextTest : public QObject {
  Q_OBJECT

 private slots:
  void countsLevels() {
    QVERIFY(!isNestedTooDeep(nested("[", "]", kMostJsonNesting)));
    QVERIFY(isNestedTooDeep(nested("[", "]", kMostJsonNesting + 1)));
    QVERIFY(isNestedTooDeep(nested("{\"a\":[", "]}", kMostJsonNesting / 2 + 1)));
    QVERIFY(!isNestedTooDeep("[\"" + std::string(1000, '[') + "\"]"));
    QVERIFY(!isNestedTooDeep("[\"\\\"" + std::string(1000, '{') + "\", 1]"));
    std::string wide = "[";
    for (int i = 0; i < 1000; ++i) wide += "[1],";
    QVERIFY(!isNestedTooDeep(wide + "1]"));
    QVERIFY(!isNestedTooDeep("\"never closed [[["));
    QVERIFY(readJsonText(nested("[", "]", 5)).is_array());
    QVERIFY(readJsonText(nested("[", "]", 100'000)).is_discarded());
    QVERIFY(readJsonText("no json").is_discarded());
  }

  // Each of them ended the process with a signal, or took time by the square of the depth.
  void deepFilesAreOneError_data() {
    QTest::addColumn<QByteArray>("config");
    QTest::addColumn<bool>("weights");
    for (const int levels : {10'000, 200'000}) {
      QTest::addRow("config of %d parts", levels) << QByteArray::fromStdString(nested("{\"text_config\":", "}", levels)) << false;
      QTest::addRow("safetensors header of %d lists", levels) << QByteArray::number(levels) << true;
    }
  }
  void deepFilesAreOneError() {
    QFETCH(QByteArray, config);
    QFETCH(bool, weights);
    QTemporaryDir folder;
    const fs::path path = folder.path().toStdString();
    if (weights) {
      const std::string header = "{\"a\":" + nested("[", "]", config.toInt()) + "}";
      std::ofstream file(path / "model.safetensors", std::ios::binary);
      const uint64_t length = header.size();
      file.write(reinterpret_cast<const char*>(&length), sizeof length);
      file << header;
      fs::copy_file(HEADROOM_TEST_DATA "/models/llama/config.json", path / "config.json");
    } else {
      std::ofstream(path / "config.json") << config.toStdString();
    }
    const auto model = openModel(path.string());
    QVERIFY(!model);
    QVERIFY2(model.error().message().find("nested") != std::string::npos, model.error().message().c_str());
  }

  // What is not read by readJsonText is named here with the reason why it may be deep.
  void everyTextFromOutsideIsChecked() {
    const std::map<std::string, int> known = {
        {"core/json_text.h", 1},                    // itself
        {"core/model/config_reader.cpp", 1},        // after the check, for the parser's words
        {"core/model/safetensors_header.cpp", 1},   // after the check, with names counted
        {"core/model/model_catalog.cpp", 1},        // compiled in
        {"core/hardware/gpu_catalog.cpp", 1},       // compiled in
        {"core/launch/plan_json.cpp", 1},           // what the lines above it wrote
        {"engine/text/tokenizer_json.cpp", 1},      // after the check, for the parser's words
        {"app/engine/model_loader.cpp", 1},         // after the check, for the parser's words
        {"engine/server/api_error.cpp", 1},         // has limits of its own
        {"engine/server/response_store.cpp", 1},    // what this server wrote
        {"engine/server/responses_requests.cpp", 2},  // what this server wrote
        {"engine/server/openai_routes.cpp", 1},     // what this server wrote
        {"engine/server/response_output.cpp", 1},   // what this server wrote
    };
    std::map<std::string, int> found;
    for (const char* folder : {"core", "engine", "app", "ui"})
      for (const auto& entry : fs::recursive_directory_iterator(fs::path(HEADROOM_SOURCE_DIR) / folder)) {
        if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
        std::ifstream file(entry.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        for (const char* call : {"json::parse(", "Json::parse("})
          for (size_t at = 0; (at = text.find(call, at)) != std::string::npos; ++at)
            ++found[fs::relative(entry.path(), HEADROOM_SOURCE_DIR).string()];
      }
    for (const auto& [file, count] : found) {
      const auto listed = known.find(file);
      QVERIFY2(listed != known.end() && listed->second == count,
               qPrintable(QStringLiteral("%1 parses JSON %2 times past readJsonText").arg(file.c_str()).arg(count)));
    }
  }
};

QTEST_APPLESS_MAIN(JsonTextTest)
#include "json_text_test.moc"
