// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of core in Chinese: every sentence that a plan of any model for any engine says is known to the table, nothing in it is
// lost, and English stays as core writes it.
#include "ui/models/core_text.h"
#include "app/desktop/appearance.h"
#include "core/launch/planner.h"
#include "core/model/model_catalog.h"
#include "ui/models/layout_text.h"
#include "ui/settings/app_settings.h"

#include <QApplication>
#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <memory>
#include <set>

using namespace headroom;
using namespace headroom::ui;

class CoreTextTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> m_folder;
  std::unique_ptr<AppSettings> m_settings;
  std::unique_ptr<app::Appearance> m_appearance;
  std::set<std::string> m_texts;

  // Sentences, as against names, numbers, options and what another program prints.
  static bool isProse(const std::string& text) {
    static const QRegularExpression words(QStringLiteral("[a-z]{2,} [a-z]{2,}"));
    static const QRegularExpression option(QStringLiteral("--[\\w-]+( [\\w.]+)?"));  // stays as it is typed
    return words.match(QString::fromStdString(text).remove(option)).hasMatch();
  }
  void note(const std::string& text) {
    if (isProse(text)) m_texts.insert(text);
  }
  void note(const PlanReport& report, const std::string& model) {
    for (const LayoutPlan& layout : report.layouts) {
      for (const LazyList<Reason>* list : {&layout.reasons, &layout.warnings})
        for (const Reason& reason : *list) {
          note(reason.message);
          note(reason.fix);
        }
      note(layout.predicted.source);
      for (const WasteItem& item : layout.waste) note(item.why);
      if (layout.verdict == Verdict::Invalid || layout.tp * layout.pp * layout.dp < report.machine.size() / 2) continue;
      if (const auto command = launchCommand(report, layout, model))
        for (const auto& option : command->explained) note(option.why);
    }
    if (report.recommended) note(report.recommended->why);
  }

 private slots:
  void initTestCase() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral(".*")));
    m_folder = std::make_unique<QTemporaryDir>();
    m_settings = std::make_unique<AppSettings>(m_folder->path());
    m_settings->setLanguage(QStringLiteral("zh_CN"));
    m_appearance = std::make_unique<app::Appearance>(*qApp, *m_settings);
    for (const CatalogModel& entry : modelCatalog()) {
      const auto model = openModel(entry.name);
      QVERIFY2(model, entry.name.c_str());
      for (const std::string& warning : model->config.warnings) note(warning);
      for (const std::string& missing : model->config.missingInEngine) note(missing);
      const bool hasExperts = std::any_of(model->config.layers.begin(), model->config.layers.end(),
                                          [](const LayerSpec& layer) { return layer.moe.experts > 0; });
      for (const char* gpus : {"3xT4-16GB,1x48GiB", "2n8xH100-80GB-SXM"}) {
        const auto machine = parseMachine(gpus);
        QVERIFY2(machine, gpus);
        for (const EngineKind kind : plannedEngines())
          for (const bool experts : {false, true}) {
            if (experts && !hasExperts) continue;
            PlanOptions options;
            options.engine.kind = kind;
            options.expertParallel = experts;
            options.concurrency = experts ? 64 : 1;
            const auto report = planModel(*model, *machine, options);
            if (report) {
              note(*report, entry.name);
            } else {
              note(report.error().found);
              note(report.error().expected);
              note(report.error().next);
            }
          }
      }
    }
    QVERIFY(m_texts.size() > 200);
  }

  void everySentenceOfAPlanIsKnown() {
    QStringList unknown;
    for (const std::string& text : m_texts) {
      const QString chinese = coreText(text);
      static const QRegularExpression han(QStringLiteral("\\p{Han}"), QRegularExpression::UseUnicodePropertiesOption);
      if (!han.match(chinese).hasMatch()) unknown << fromCore(text);
    }
    // Alike but for their numbers: one of each is enough to read.
    for (QString& text : unknown) text.replace(QRegularExpression(QStringLiteral("\\d[\\d.]*")), QStringLiteral("#"));
    unknown.removeDuplicates();
    QVERIFY2(unknown.isEmpty(),
             qPrintable(QStringLiteral("no template in core_text_table.cpp for:\n") + unknown.join(QLatin1Char('\n'))));
  }

  void numbersAndQuotedWordsSurvive() {
    static const QRegularExpression number(QStringLiteral("\\d+(\\.\\d+)?"));
    for (const std::string& text : m_texts) {
      const QString english = fromCore(text), chinese = coreText(text);
      auto numbers = number.globalMatch(english);
      while (numbers.hasNext()) {
        const QString found = numbers.next().captured();
        QVERIFY2(chinese.contains(found), qPrintable(english + QStringLiteral(" / ") + chinese));
      }
    }
  }

  void englishStaysAsItIs() {
    m_settings->setLanguage(QStringLiteral("en"));
    for (const std::string& text : m_texts) QCOMPARE(coreText(text), fromCore(text));
    const Error error{"layers.3", "shape [5]", "a positive number", "fetch it again"};
    QCOMPARE(errorText(error), fromCore(error.message()));
    m_settings->setLanguage(QStringLiteral("zh_CN"));
  }

  void errorsAreTranslatedPartByPart() {
    const auto missing = openModel("/absent/config.json");
    QVERIFY(!missing);
    const QString text = errorText(missing.error());
    QVERIFY2(text.startsWith(QStringLiteral("/absent/config.json: 发现")), qPrintable(text));
    QVERIFY2(text.contains(QStringLiteral("请先下载模型")), qPrintable(text));
  }
};

QTEST_MAIN(CoreTextTest)
#include "core_text_test.moc"
