// SPDX-License-Identifier: Apache-2.0
// Launch commands: right options, safe quoting, a better stage split where there is one.
#include "core/launch/planner.h"
#include "tests/core/sample_model.h"

#include <QProcess>
#include <QtTest>

using namespace headroom;
using namespace headroom::test;

namespace {
PlanReport planOf(const ModelSource& model, const char* gpus, const char* engine, int64_t length) {
  PlanOptions options;
  options.engine = *parseEngine(engine);
  options.maxModelLen = length;
  return *planModel(model, *parseMachine(gpus, {6, 2_GiB}), options);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
}  // namespace

class LaunchCommandTest : public QObject {
  Q_OBJECT
 private slots:
  void vllmNamesSizesAndGpus() {
    const PlanReport report = planOf(makeModel(qwen72Shape()), "6xA800-80GB", "vllm", 8192);
    const std::string all = launchCommand(report, *report.find(2, 3, 1), "Qwen/Qwen2.5-72B")->text;
    QVERIFY2(has(all, "vllm serve Qwen/Qwen2.5-72B --tensor-parallel-size 2 --pipeline-parallel-size 3") &&
                 has(all, "--max-model-len 8192"),
             all.c_str());
    QVERIFY(!has(all, "CUDA_VISIBLE_DEVICES"));
    const std::string four = launchCommand(report, *report.find(4, 1, 1), "Qwen/Qwen2.5-72B")->text;
    QVERIFY2(has(four, "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve"), four.c_str());
    QVERIFY(!launchCommand(report, *report.find(6, 1, 1), "Qwen/Qwen2.5-72B"));
  }

  void partitionIsBalancedByBytes() {
    // A small model with a large vocabulary: the embedding and the head weigh as much as many layers.
    const PlanReport report = planOf(makeModel(smolShape()), "3x24GiB", "vllm", 2048);
    const std::string text = launchCommand(report, *report.find(1, 3, 1), "smol")->text;
    QVERIFY2(has(text, "VLLM_PP_LAYER_PARTITION="), text.c_str());
    const size_t at = text.find('=') + 1;
    int64_t sum = 0;
    for (const QString& part : QString::fromStdString(text.substr(at, text.find(' ') - at)).split(',')) sum += part.toInt();
    QCOMPARE(sum, int64_t(30));
  }

  void everyOptionIsExplained() {
    const PlanReport report = planOf(makeModel(smolShape()), "local", "headroom", 2048);
    const auto command = launchCommand(report, *report.find(3, 2, 1), "model");
    QVERIFY2(has(command->text, "headroom-engine serve model --tp 3 --pp 2"), command->text.c_str());
    for (const auto& option : command->explained) {
      QVERIFY2(has(command->text, option.option), option.option.c_str());
      QVERIFY(!option.why.empty());
    }
  }

  void pathsAreQuotedForTheShell() {
    const PlanReport report = planOf(makeModel(smolShape()), "local", "headroom", 2048);
    const std::string path = "/tmp/it's; $(touch pwned) `x` \"y\" *";
    const std::string text = launchCommand(report, *report.find(1, 1, 1), path)->text;
    // What a shell hands on as the third word is the path itself.
    QProcess shell;
    shell.start("sh", {"-c", "set -- " + QString::fromStdString(text) + "; printf %s \"$3\""});
    QVERIFY(shell.waitForFinished());
    QCOMPARE(shell.readAllStandardOutput().toStdString(), path);
  }
};

QTEST_GUILESS_MAIN(LaunchCommandTest)
#include "launch_command_test.moc"
