// SPDX-License-Identifier: Apache-2.0
// Headroom's own rules agree with the layouts it can make.
#include "core/layout/rules/engine_rules.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::test;

class RulesHeadroomTest : public QObject {
  Q_OBJECT
 private slots:
  void refusesExactlyWhatHasNoLayout() {
    const ModelSource model = makeModel(smolShape());
    const Machine machine = *parseMachine("1x24GiB");
    const RuleContext context{model, machine, headroomRules().newestKnown(), std::nullopt, ""};
    for (int tp = 1; tp <= 12; ++tp) {
      for (int pp : {1, 2, 30, 31}) {
        const bool refused = headroomRules().check(context, {tp, pp, 1}).refusal.has_value();
        QCOMPARE(refused, !makeHeadroomLayout(model, tp, pp, 1).has_value());
        QCOMPARE(refused, tp > 9 || pp > 30);
      }
    }
    QCOMPARE(headroomRules().check(context, {10, 1, 1}).refusal->rule, std::string("headroom.heads"));
    QVERIFY(headroomRules().check(context, {10, 1, 1}).refusal->message.find("9 query heads") != std::string::npos);
  }

  // As serve does: a plan that fits and cannot be started would be no plan.
  void refusesWhatTheEngineCannotRun() {
    ModelSource model = makeModel(smolShape());
    model.config.missingInEngine = {"latent attention", "awq quantization"};
    const Machine machine = *parseMachine("1x24GiB");
    const RuleVerdict verdict = headroomRules().check({model, machine, {0, 1, 0}, std::nullopt, ""}, {1, 1, 1});
    QVERIFY(verdict.refusal.has_value());
    QCOMPARE(verdict.refusal->rule, std::string("headroom.missing"));
    QVERIFY2(verdict.refusal->message.find("latent attention, awq quantization") != std::string::npos,
             verdict.refusal->message.c_str());
  }
};

QTEST_GUILESS_MAIN(RulesHeadroomTest)
#include "rules_headroom_test.moc"
