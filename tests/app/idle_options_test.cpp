// SPDX-License-Identifier: Apache-2.0
// An option that would do nothing beside what else is given is refused by name, with one line and status 2: its user expects
// something of it.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

namespace {
const QString kDense = QStringLiteral("Qwen/Qwen2.5-7B-Instruct");
}

class IdleOptionsTest : public QObject {
  Q_OBJECT
 private slots:
  void areRefusedByName_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("option");
    const auto row = [](const char* option, const QStringList& rest) {
      QTest::addRow("%s: %s", qPrintable(rest.join(QLatin1Char(' '))), option) << rest << QString::fromLatin1(option);
    };
    const QStringList plan{QStringLiteral("plan"), kDense};
    const auto with = [](QStringList list, std::initializer_list<const char*> more) {
      for (const char* word : more) list << QString::fromLatin1(word);
      return list;
    };
    // Parts of a wish without the wish.
    row("--price", with(plan, {"--price", "L40S=1"}));
    row("--no-prices", with(plan, {"--no-prices"}));
    row("--min-tokens-per-s", with(plan, {"--gpus", "2xL40S", "--min-tokens-per-s", "20"}));
    row("--min-throughput", with(plan, {"--min-throughput", "20"}));
    row("--max-ttft-ms", with(plan, {"--max-ttft-ms", "500"}));
    row("--max-gpus", with(plan, {"--max-gpus", "4"}));
    // What a wish does not look at.
    row("--device-memory", with(plan, {"--wish", "--device-memory", "4GiB"}));
    row("--compare", with(plan, {"--wish", "--compare"}));
    row("--compare-with", with(plan, {"--wish", "--compare-with", "vllm"}));
    row("--calibrate", with(plan, {"--wish", "--calibrate", "log"}));
    row("--no-calibration", with(plan, {"--wish", "--no-calibration"}));
    row("--price", with(plan, {"--wish", "--no-prices", "--price", "L40S=1"}));
    // GPUs have the memory of their kind.
    row("--device-memory", with(plan, {"--gpus", "2xL40S", "--device-memory", "4GiB"}));
    row("--device-memory", with(plan, {"--gpus", "2x24GiB", "--device-memory", "4GiB"}));
    row("--compare", with(plan, {"--gpus", "2xL40S", "--calibrate", "log", "--compare"}));
    row("--compare-with", with(plan, {"--gpus", "2xL40S", "--calibrate", "log", "--compare-with", "vllm"}));
    row("--no-calibration", with(plan, {"--gpus", "2xL40S", "--calibrate", "log", "--no-calibration"}));
    row("--compare-with", with(plan, {"--gpus", "2xL40S", "--compare", "--compare-with", "vllm"}));
    // What an engine has no use for; core/planner_test asks each engine about each option.
    row("--expert-parallel", with(plan, {"--gpus", "2xL40S", "--engine", "vllm", "--expert-parallel"}));
    row("--attention-data-parallel", with(plan, {"--gpus", "2xL40S", "--engine", "vllm", "--attention-data-parallel"}));
    row("--max-num-seqs", with(plan, {"--gpus", "2xL40S", "--engine", "llama.cpp", "--max-num-seqs", "4"}));
    const QStringList bench{QStringLiteral("bench"), QStringLiteral("http://127.0.0.1:1")};
    for (const char* option : {"--random-input-len", "--random-output-len", "--random-prefix-len"})
      row(option, with(bench, {"--dataset-name", "jsonl", "--dataset-path", "file", option, "5"}));
    row("--random-range-ratio",
        with(bench, {"--dataset-name", "jsonl", "--dataset-path", "file", "--random-range-ratio", "0.5"}));
    row("--random-distribution",
        with(bench, {"--dataset-name", "sharegpt", "--dataset-path", "file", "--random-distribution", "normal"}));
    row("--disable-shuffle", with(bench, {"--disable-shuffle"}));
    row("--sharegpt-output-len", with(bench, {"--sharegpt-output-len", "5"}));
    row("--custom-output-len", with(bench, {"--custom-output-len", "5"}));
    row("--dataset-path", with(bench, {"--dataset-path", "file"}));
    row("--burstiness", with(bench, {"--burstiness", "2"}));
    row("--save-detailed", with(bench, {"--save-detailed"}));
    row("--tp", with(bench, {"--tp", "2"}));
    row("--index", {"selftest", "--device", "cpu", "--index", "0"});
    row("--host-devices", {"devices", "--watch", "1", "--host-devices", "2"});
    row("--format", {"devices", "--watch", "1", "--format", "table"});
  }
  void areRefusedByName() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, option);
    const QTemporaryDir home;
    QProcess program;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("XDG_CONFIG_HOME"), home.path());
    program.setProcessEnvironment(environment);
    program.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"), arguments);
    QVERIFY(program.waitForFinished(60000));
    const QString line = QString::fromUtf8(program.readAllStandardError());
    QVERIFY2(program.exitStatus() == QProcess::NormalExit && program.exitCode() == 2, qPrintable(line));
    QVERIFY2(line.startsWith(QStringLiteral("headroom-engine: ") + option), qPrintable(line));
    QVERIFY2(line.contains(QStringLiteral("found ")) && line.contains(QStringLiteral("expected ")), qPrintable(line));
    QCOMPARE(line.count(QLatin1Char('\n')), 1);
    QVERIFY(program.readAllStandardOutput().isEmpty());
    QVERIFY(QDir(home.path()).isEmpty());  // no price was kept
  }

  void writtenPricesAreKeptForTheNextWish() {
    const QTemporaryDir home;
    const auto wish = [&](const QStringList& more) {
      QProcess program;
      QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
      environment.insert(QStringLiteral("XDG_CONFIG_HOME"), home.path());
      program.setProcessEnvironment(environment);
      program.start(
          QStringLiteral(HEADROOM_BIN_DIR "/headroom-engine"),
          QStringList{"plan", kDense, "--engine", "vllm", "--wish", "--max-model-len", "4096", "--gpus", "T4,L40S,H100-80GB"} +
              more);
      if (!program.waitForFinished(60000) || program.exitCode() != 0) return QString::fromUtf8(program.readAllStandardError());
      return QString::fromUtf8(program.readAllStandardOutput());
    };
    const auto first = [](const QString& table) { return table.section(QLatin1Char('\n'), 3, 3).simplified(); };
    // Fewest GPUs first, then the least memory: one L40S.
    const QString plain = wish({});
    QVERIFY2(first(plain).startsWith(QStringLiteral("1xL40S")), qPrintable(plain));
    QVERIFY2(plain.contains(QStringLiteral("knows no prices")), qPrintable(plain));
    const QString priced = wish({"--price", "H100-80GB=1.5,L40S=2"});
    QVERIFY2(first(priced).startsWith(QStringLiteral("1xH100")), qPrintable(priced));
    QCOMPARE(wish({}), priced);
    QCOMPARE(wish({"--no-prices"}), plain);
    QCOMPARE(wish({"--price", "H100-80GB=0,L40S=0"}), plain);
    QCOMPARE(wish({}), plain);
  }
};

QTEST_GUILESS_MAIN(IdleOptionsTest)
#include "idle_options_test.moc"
