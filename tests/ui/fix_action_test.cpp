// SPDX-License-Identifier: GPL-3.0-or-later
// Fixes as buttons: what core advises is read from its own words, and only what the grid accepts is offered.
#include "ui/models/fix_action.h"
#include "core/model/model_catalog.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class FixActionTest : public QObject {
  Q_OBJECT

  PlanReport m_story;  // Qwen2.5-72B on six A800, vLLM

  static FixAction::Sizes sizes(int tp, int pp, int dp) { return {tp, pp, dp}; }

 private slots:
  void initTestCase() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral(".*")));
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct");
    const auto machine = parseMachine("6xA800-80GB");
    QVERIFY(model && machine);
    PlanOptions options;
    options.engine = *parseEngine("vllm");
    auto report = planModel(*model, *machine, options);
    QVERIFY(report);
    m_story = std::move(*report);
  }

  void readsEachKindOfFix_data() {
    QTest::addColumn<QString>("fix");
    QTest::addColumn<QString>("labels");
    QTest::newRow("all GPUs, then the next valid TP") << "TP=2 with PP=3 uses all 6 GPUs; TP sizes that work: 1, 2, 4"
                                                      << "Show TP2 × PP3; Show TP4 × PP1";
    QTest::newRow("a smaller context or another layout") << "--max-model-len 8192, or TP=4 (4 GPUs) fits"
                                                         << "Context of 8,192 tokens; Show TP4 × PP1";
    QTest::newRow("two sizes") << "TP=2 x PP=3 (6 GPUs) fits"
                               << "Show TP2 × PP3";
    QTest::newRow("fewer requests") << "12 requests at once instead of 20"
                                    << "12 request(s) at once";
    QTest::newRow("data type") << "--dtype float16"
                               << "Use float16";
    QTest::newRow("experts") << "--enable-expert-parallel keeps experts whole"
                             << "Whole experts on each GPU";
    QTest::newRow("a version") << "vllm@0.31 or earlier, or an AWQ, GPTQ or FP8 checkpoint"
                               << "Plan for vLLM 0.31";
    QTest::newRow("other engines") << "use llama.cpp or Headroom, or an earlier vLLM"
                                   << "Plan for llama.cpp; Plan for Headroom";
    QTest::newRow("stages") << "TP=2 with pipeline stages"
                            << "Show TP2 × PP3";
    QTest::newRow("a layout that is refused too is not offered") << "TP=5"
                                                                 << "";
    QTest::newRow("nothing that a window can do") << "more GPUs, or a quantized checkpoint"
                                                  << "";
    QTest::newRow("no fix") << ""
                            << "";
  }
  void readsEachKindOfFix() {
    QFETCH(QString, fix);
    QFETCH(QString, labels);
    QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedStates));
    const LayoutPlan* layout = m_story.find(6, 1, 1);
    QVERIFY(layout);
    QStringList got;
    for (const FixAction& action : fixActions(fix.toStdString(), m_story, *layout))
      got << action.label().replace(QStringLiteral("%n"), QString::number(action.concurrency.value_or(0)));
    QCOMPARE(got.join(QStringLiteral("; ")), labels);
  }

  void everyRefusalOfTheStoryOffersAWayOut() {
    for (const LayoutPlan& layout : m_story.layouts) {
      if (layout.verdict != Verdict::Invalid || layout.dp != 1) continue;
      const auto actions = fixActions(m_story, layout);
      QVERIFY2(!actions.empty(), qPrintable(QStringLiteral("TP%1 PP%2").arg(layout.tp).arg(layout.pp)));
      for (const FixAction& action : actions)
        if (action.layout) {
          const LayoutPlan* target = m_story.find(action.layout->tp, action.layout->pp, action.layout->dp);
          QVERIFY(target && target->verdict != Verdict::Invalid);
        }
    }
    // The reason's own advice, from the engine's rules.
    const auto actions = fixActions(m_story, *m_story.find(6, 1, 1));
    QVERIFY(actions.front().layout == sizes(2, 3, 1));
  }
};

QTEST_GUILESS_MAIN(FixActionTest)
#include "fix_action_test.moc"
