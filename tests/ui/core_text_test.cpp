// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of core in Chinese: every sentence that a plan of any model for any engine says is known to the table, nothing in it is
// lost, and English stays as core writes it.
#include "ui/models/core_text.h"
#include "app/desktop/appearance.h"
#include "core/diagnosis/failure_table.h"
#include "core/launch/plan_search.h"
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
        for (const EngineKind kind : ui::plannedEngines())
          for (const bool experts : {false, true}) {
            if (experts && !hasExperts) continue;
            PlanOptions options;
            options.engine.kind = kind;
            options.expertParallel = experts;
            options.concurrency = experts ? 64 : 1;
            if (gpus[0] == '3' && kind != EngineKind::LlamaCpp) {  // limits that are asked for stand in the command
              options.maxNumSeqs = 32;
              options.gpuMemoryUtilization = 0.8;
            }
            options.enforceEager = gpus[0] == '3';
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
    // What other processes hold of a card.
    auto held = *parseMachine("2xRTX 3090");
    const auto small = openModel("Qwen/Qwen2.5-0.5B-Instruct");
    for (const double share : {0.5, 0.95}) {
      held.gpus[1].usedByOthers = Bytes(static_cast<int64_t>(share * static_cast<double>(held.gpus[1].totalMemory.count())));
      for (const EngineKind kind : ui::plannedEngines()) {
        PlanOptions options;
        options.engine.kind = kind;
        if (const auto report = planModel(*small, held, options)) note(*report, "m");
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

  void everySentenceOfADiagnosisIsKnown() {
    static const QRegularExpression han(QStringLiteral("\\p{Han}"), QRegularExpression::UseUnicodePropertiesOption);
    QStringList unknown;
    const auto see = [&](const std::string& text) {
      if (isProse(text) && !han.match(coreText(text)).hasMatch()) unknown << fromCore(text);
    };
    for (const FailureRow& row : failureTable()) {
      see(row.title);
      see(row.why);
      for (const char* fix : row.fixes) see(fix);
    }
    // What is told with numbers, in every phase.
    const std::string oom = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0\n";
    for (const std::string& log :
         {std::string("Total number of attention heads (64) must be divisible by tensor parallel size (6).\n"),
          std::string("The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV "
                      "cache (57616).\n"),
          std::string("To serve one request with max seq len (65536), (2.45 GiB KV cache is needed, which is larger than the "
                      "available KV "
                      "cache memory (1.90 GiB). the estimated maximum model length is 50816.\n"),
          std::string("Free memory on device (20.71/23.65 GiB) on startup is less than desired GPU memory utilization (0.9, "
                      "21.28 GiB).\n"),
          std::string("World size (8) is larger than the number of available GPUs (4) in this node.\n"),
          std::string("151552 is not divisible by 6\n"),
          std::string("Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute "
                      "capability 7.5.\n"),
          std::string("failed to load GGUF split from model-00002-of-00003.gguf\n"),
          std::string("has invalid ggml type 39 (NONE)\n"), std::string("KeyError: 'layers.81.weird'\n"), oom,
          "Load weight end.\n" + oom, "Capturing CUDA graph\n" + oom, "Application startup complete\n" + oom}) {
      const LogDiagnosis diagnosis = diagnoseLog(log);
      QVERIFY2(!diagnosis.findings.empty() || diagnosis.unknown, log.c_str());
      for (const LogFinding& finding : diagnosis.findings) {
        see(finding.title);
        see(finding.why);
        for (const std::string& fix : finding.fixes) see(fix);
      }
      if (diagnosis.unknown) see(diagnosis.unknown->title);
    }
    QVERIFY2(unknown.isEmpty(),
             qPrintable(QStringLiteral("no template in core_text_diagnosis.cpp for:\n") + unknown.join(QLatin1Char('\n'))));
  }

  void everyReasonOfASearchIsKnown() {
    static const QRegularExpression han(QStringLiteral("\\p{Han}"), QRegularExpression::UseUnicodePropertiesOption);
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct");
    QVERIFY(model);
    PlanOptions options;
    options.engine.kind = EngineKind::Vllm;
    for (int kind = 0; kind < 4; ++kind) {
      Wish wish;
      wish.mostGpus = 4;
      if (kind == 1) wish.decodeTokensPerSecond = 1e6;
      if (kind == 2) wish.throughputTokensPerSecond = 1e6;
      if (kind == 3) wish.ttftMs = 0.1;
      const auto report = searchMachines(*model, options, wish, {"T4-16GB", "H100-80GB-SXM"});
      QVERIFY(report);
      QVERIFY(!report->refused.empty());
      for (const WishReport::Refused& card : report->refused)
        QVERIFY2(han.match(coreText(card.why)).hasMatch(), card.why.c_str());
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
