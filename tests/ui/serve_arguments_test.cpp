// SPDX-License-Identifier: GPL-3.0-or-later
// What the window starts the engine with says all that the plan was made with.
#include "core/layout/parallel_layout.h"
#include "ui/models/layout_text.h"
#include "ui/models/serve_arguments.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class ServeArgumentsTest : public QObject {
  Q_OBJECT

  static QString startOf(const Machine& machine, const PlanOptions& options, int tp, int pp) {
    const ModelSource model = test::makeModel({});
    const auto report = planModel(model, machine, options);
    if (!report) return fromCore(report.error().message());
    return launchRequest(*report, *report->find(tp, pp, 1), model, QStringLiteral("MODEL"), {2, 1_GiB})
        .arguments.join(QLatin1Char(' '));
  }

 private slots:
  void gpusAreNamedInTheRanksOrder() {
    PlanOptions options;
    options.maxModelLen = 1024;
    options.kvCacheDType = DType::F8E5M2;
    Machine machine = *parseMachine("4x24GiB");
    machine.isLocal = true;
    QCOMPARE(startOf(machine, options, 3, 1),
             QStringLiteral("serve MODEL --tp 3 --pp 1 --dp 1 --max-model-len 1024 --max-num-seqs 256 --max-num-batched-tokens 2048 "
                            "--gpu-memory-utilization 0.9 --dtype bfloat16 --kv-cache-dtype float8_e5m2 --device cuda --gpus 0,1,2"));
    options.enforceEager = true;
    QVERIFY(startOf(machine, options, 3, 1).endsWith(QStringLiteral("--gpus 0,1,2 --enforce-eager")));
  }

  // Stages that follow cards with unequal room go as the layout itself, on the devices by CUDA's own numbers.
  void unequalCardsGetTheLayoutItself() {
    PlanOptions options;
    options.maxModelLen = 1024;
    Machine machine = *parseMachine("1x24GiB,1x6GiB");
    machine.isLocal = true;
    machine.gpus[0].index = 1;
    machine.gpus[1].index = 0;
    const ModelSource model = test::makeModel({});
    const auto report = planModel(model, machine, options);
    QVERIFY(report);
    const auto requestOf = [&](int tp, int pp) {
      return launchRequest(*report, *report->find(tp, pp, 1), model, QStringLiteral("MODEL"), {});
    };
    QVERIFY(requestOf(2, 1).layoutFile.isEmpty());
    const auto layout = layoutFromJson(nlohmann::json::parse(requestOf(1, 2).layoutFile.toStdString()), "layout");
    QVERIFY2(layout, layout ? "" : layout.error().message().c_str());
    QVERIFY(checkLayout(*layout, model));
    const LayoutPlan& planned = *report->find(1, 2, 1);
    QCOMPARE(layout->ranks.size(), planned.ranks.size());
    for (size_t i = 0; i < layout->ranks.size(); ++i) {
      QCOMPARE(layout->ranks[i].layers, planned.ranks[i].slice.layers);
      QCOMPARE(layout->ranks[i].gpu, machine.gpus[static_cast<size_t>(planned.ranks[i].slice.gpu)].index);
    }
  }

  void hostDevicesAreSizedAsPlanned() {
    PlanOptions options;
    options.maxModelLen = 1024;
    options.kvCacheDType = DType::I8;
    QCOMPARE(startOf(hostMachine({2, 1_GiB}), options, 1, 2),
             QStringLiteral("serve MODEL --tp 1 --pp 2 --dp 1 --max-model-len 1024 --max-num-seqs 16 --max-num-batched-tokens 512 "
                            "--gpu-memory-utilization 0.9 --dtype bfloat16 --kv-cache-dtype int8 --device cpu --device-memory 1024MiB"));
  }
};

QTEST_MAIN(ServeArgumentsTest)
#include "serve_arguments_test.moc"
