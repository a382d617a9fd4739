// SPDX-License-Identifier: Apache-2.0
// This machine's GPUs: what "local" then means, how one program tells another of them, and the memory that other processes hold.
#include "core/hardware/local_gpus.h"
#include "core/launch/planner.h"
#include "core/layout/parallel_layout.h"
#include "core/memory/memory_plan.h"
#include "tests/core/sample_model.h"

#include <QtTest>

using namespace headroom;

namespace {

std::vector<MachineGpu> twoCards(std::optional<Bytes> usedByOthers = 1_GiB) {
  return {localGpu(0, "NVIDIA GeForce RTX 4090", 8.9, std::nullopt, Bytes(25'386'352'640), usedByOthers),
          localGpu(1, "NVIDIA GeForce RTX 4090", 8.9, 1008.1, Bytes(25'386'352'640), std::nullopt)};
}

}  // namespace

class LocalGpusTest : public QObject {
  Q_OBJECT

 private slots:
  void localIsTheGpusWhereThereAreAny() {
    const Machine local = *parseMachine(" Local ", {3, 1_GiB}, twoCards());
    QCOMPARE(local.size(), 2);
    QVERIFY(local.isLocal && !local.isHostOnly());
    QCOMPARE(local.description, std::string("2x NVIDIA GeForce RTX 4090"));
    QCOMPARE(local.gpus[1].totalMemory, Bytes(25'386'352'640));
    QVERIFY(parseMachine("local", {3, 1_GiB})->isHostOnly());
    const Machine host = *parseMachine("host", {3, 1_GiB}, twoCards());
    QCOMPARE(host.size(), 3);
    QVERIFY(host.isLocal && host.isHostOnly());
    QVERIFY(meansLocalGpus("local") && meansLocalGpus(" LOCAL") && !meansLocalGpus("host") && !meansLocalGpus("2xlocal"));
  }

  void theCatalogFillsWhatADeviceDoesNotTell() {
    const std::vector<MachineGpu> gpus = twoCards();
    const GpuSpec* known = findGpu("RTX 4090");
    QVERIFY(known && known->bandwidthGBs && known->bf16Tflops);
    QCOMPARE(gpus[0].spec.bandwidthGBs, known->bandwidthGBs);
    QCOMPARE(gpus[0].spec.bf16Tflops, known->bf16Tflops);
    QCOMPARE(gpus[1].spec.bandwidthGBs, std::optional(1008.1));  // its own word first
    const MachineGpu unknown = localGpu(0, "Somebody's GPU", std::nullopt, std::nullopt, 8_GiB, std::nullopt);
    QVERIFY(!unknown.spec.bandwidthGBs && !unknown.spec.bf16Tflops && !unknown.spec.computeCapability);
    QCOMPARE(unknown.spec.name, std::string("Somebody's GPU"));
  }

  void oneProgramTellsAnother() {
    nlohmann::json devices{{"schema", "headroom.devices/1"}, {"cuda", {{"available", true}, {"reason", nullptr}}}};
    for (const MachineGpu& gpu : twoCards()) devices["devices"].push_back(deviceToJson(gpu));
    for (const MachineGpu& gpu : hostMachine({2, 1_GiB}).gpus) devices["devices"].push_back(deviceToJson(gpu));
    const auto read = localGpusFromJson(nlohmann::json::parse(devices.dump()), "devices");
    QVERIFY(read);
    QCOMPARE(read->gpus.size(), size_t{2});
    QVERIFY(read->offReason.empty());
    for (size_t i = 0; i < 2; ++i) {
      const MachineGpu &told = read->gpus[i], own = twoCards()[i];
      QCOMPARE(told.index, own.index);
      QCOMPARE(told.spec.name, own.spec.name);
      QCOMPARE(told.spec.computeCapability, own.spec.computeCapability);
      QCOMPARE(told.spec.bandwidthGBs, own.spec.bandwidthGBs);
      QCOMPARE(told.totalMemory, own.totalMemory);
      QCOMPARE(told.usedByOthers, own.usedByOthers);
    }
    const auto off = localGpusFromJson(
        nlohmann::json::parse(R"({"devices": [], "cuda": {"available": false, "reason": "CUDA is off: no card."}})"), "devices");
    QVERIFY(off && off->gpus.empty());
    QCOMPARE(off->offReason, std::string("CUDA is off: no card."));
  }

  void brokenTellingIsOneError_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("nothing") << QByteArray();
    QTest::newRow("a list") << QByteArray("[1]");
    QTest::newRow("no devices") << QByteArray(R"({"cuda": 1})");
    QTest::newRow("devices of text") << QByteArray(R"({"devices": "cuda"})");
    QTest::newRow("no memory") << QByteArray(R"({"devices": [{"kind": "cuda", "index": 0}]})");
    QTest::newRow("no number") << QByteArray(R"({"devices": [{"kind": "cuda", "total_bytes": 5}]})");
    QTest::newRow("memory of text") << QByteArray(R"({"devices": [{"kind": "cuda", "index": 0, "total_bytes": "5"}]})");
    QTest::newRow("less than nothing") << QByteArray(R"({"devices": [{"kind": "cuda", "index": 0, "total_bytes": -5}]})");
  }
  void brokenTellingIsOneError() {
    QFETCH(QByteArray, text);
    const auto read = localGpusFromJson(nlohmann::json::parse(text.begin(), text.end(), nullptr, false), "devices");
    QVERIFY(!read);
    QCOMPARE(read.error().where, std::string("devices"));
  }

  void otherProcessesLeaveLess() {
    MachineGpu gpu = localGpu(0, "card", std::nullopt, std::nullopt, 10_GiB, 512_MiB);
    QCOMPARE(gpu.budget(0.5), 5_GiB);
    QCOMPARE(gpu.budget(0.99), 10_GiB - 512_MiB);
    QCOMPARE(gpu.leftByOthers(), 10_GiB - 512_MiB);
    gpu.usedByOthers.reset();
    QCOMPARE(gpu.budget(1), 10_GiB);
  }

  void aPlanStaysWithinWhatOthersLeave() {
    const ModelSource model = test::makeModel({});
    PlanOptions options;
    options.maxModelLen = 1024;
    std::vector<MachineGpu> gpus;
    for (int i = 0; i < 2; ++i) gpus.push_back(localGpu(i, "card", std::nullopt, std::nullopt, 4_GiB, std::nullopt));
    const auto kvOf = [&] {
      const auto report = planModel(model, gpuMachine(gpus), options);
      return report ? report->find(2, 1, 1)->kvCache->count() : -1;
    };
    const int64_t alone = kvOf();
    gpus[0].usedByOthers = 100_MiB;  // within what the share leaves free
    QCOMPARE(kvOf(), alone);
    gpus[0].usedByOthers = 1_GiB;
    const int64_t beside = kvOf();
    QVERIFY2(beside > 0 && beside < alone, qPrintable(QStringLiteral("%1 of %2").arg(beside).arg(alone)));
    // The first rank holds two of three KV heads and had 0.9 x 4 GiB; now it has 3. The second has as many blocks, half as large.
    const double lost = static_cast<double>(alone - beside), expected = 1.5 * 0.6 * 0x1p30;
    QVERIFY2(std::abs(lost - expected) < 0.01 * expected, qPrintable(QString::number(lost)));
  }

  // A plan and a start that are short of memory say whose doing it is.
  void whoTakesTheMemoryIsSaid_data() {
    QTest::addColumn<double>("share");
    QTest::addColumn<int>("othersMiB");  // -1: not known
    QTest::addColumn<QString>("start");
    QTest::addColumn<QString>("plan");
    QTest::newRow("share") << 0.5 << 100 << "(0.5 x 300.0 MiB)"
                           << "budget 0.29 GiB x 0.5";
    QTest::newRow("others") << 0.9 << 200 << "(what other processes leave of 300.0 MiB)"
                            << "budget 0.29 GiB - 0.20 of other processes";
    QTest::newRow("all of it") << 1.0 << -1 << "(1 x 300.0 MiB)"
                               << "budget 0.29 GiB x 1";
    QTest::newRow("all of it, nobody else") << 1.0 << 0 << "(1 x 300.0 MiB)"
                                            << "budget 0.29 GiB x 1";
  }
  void whoTakesTheMemoryIsSaid() {
    QFETCH(double, share);
    QFETCH(int, othersMiB);
    QFETCH(QString, start);
    QFETCH(QString, plan);
    const ModelSource model = test::makeModel({});
    const auto others = othersMiB < 0 ? std::nullopt : std::optional(Bytes(int64_t{othersMiB} << 20));
    const Machine machine = gpuMachine({localGpu(0, "card", std::nullopt, std::nullopt, 300_MiB, others)});
    PlanOptions options;
    options.maxModelLen = 1024;
    options.gpuMemoryUtilization = share;
    const auto report = planModel(model, machine, options);
    QVERIFY(report);
    const LayoutPlan& layout = *report->find(1, 1, 1);
    QVERIFY(layout.verdict == Verdict::DoesNotFit);
    QVERIFY2(layout.reasons.front().message.find(plan.toStdString()) != std::string::npos,
             layout.reasons.front().message.c_str());
    const auto memory =
        planEngineMemory(model, *makeHeadroomLayout(model, 1, 1, 1), machine, engineLimits(report->options), share);
    QVERIFY(!memory);
    QVERIFY2(memory.error().found.find(start.toStdString()) != std::string::npos, memory.error().found.c_str());
  }

  // vLLM does not start where less of a card is free than its share of the whole, however small the model.
  void vllmWantsItsShareFree() {
    const ModelSource model = test::makeModel({});
    const auto plan = [&](const char* engine, std::optional<Bytes> others, double share) {
      Machine machine = *parseMachine("1xRTX 3090");
      machine.gpus[0].usedByOthers = others;
      PlanOptions options;
      options.engine = *parseEngine(engine);
      options.maxModelLen = 1024;
      options.gpuMemoryUtilization = share;
      const auto report = planModel(model, machine, options);
      if (!report) qFatal("%s", report.error().message().c_str());
      return *report->find(1, 1, 1);
    };
    const double total = findGpu("RTX 3090")->memory.gib();
    const LayoutPlan refused = plan("vllm", 4_GiB, 0.9);
    QVERIFY(refused.verdict == Verdict::DoesNotFit && refused.headroom->count() < 0);
    QCOMPARE(refused.reasons.front().rule, std::string("vllm.free_memory"));
    const QString text = QString::fromStdString(refused.reasons.front().message),
                  fix = QString::fromStdString(refused.reasons.front().fix);
    QVERIFY2(text.contains("is less than desired GPU memory utilization (0.9, " + QString::number(0.9 * total, 'f', 2) + " GiB)"),
             qPrintable(text));
    // What is offered starts.
    const double share = std::floor((total - 4 - 0.51) / total * 100) / 100;
    QVERIFY2(fix.startsWith("--gpu-memory-utilization " + QString::number(share, 'f', 2)), qPrintable(fix));
    QVERIFY(plan("vllm", 4_GiB, share).verdict == Verdict::Fits);
    QVERIFY(plan("vllm", 1_GiB, 0.9).verdict == Verdict::Fits);
    // Not where nobody knows what others hold, nor before the check.
    QVERIFY(plan("vllm", std::nullopt, 0.99).verdict == Verdict::Fits);
    QVERIFY(plan("vllm@0.8.5", 4_GiB, 0.9).verdict == Verdict::Fits);
    QVERIFY(plan("sglang", 4_GiB, 0.9).verdict == Verdict::Fits);
    // A card that is nearly full: no share is left for the model.
    const LayoutPlan full = plan("vllm", Bytes(findGpu("RTX 3090")->memory.count() - (600 << 20)), 0.9);
    QCOMPARE(full.reasons.front().fix, std::string("end other programs on GPU 0"));
  }

  // SGLang compares what is free on its ranks' cards.
  void sgLangWantsEqualFreeMemory() {
    const ModelSource model = test::makeModel({});
    Machine machine = *parseMachine("2xRTX 3090");
    PlanOptions options;
    options.engine = *parseEngine("sglang");
    options.maxModelLen = 1024;
    const auto rule = [&] {
      const auto report = planModel(model, machine, options);
      if (!report) qFatal("%s", report.error().message().c_str());
      const LayoutPlan& plan = *report->find(1, 2, 1);
      return std::pair(plan.reasons.empty() ? std::string() : plan.reasons.front().rule,
                       report->find(2, 1, 1)->reasons.empty() ? std::string() : report->find(2, 1, 1)->reasons.front().rule);
    };
    QCOMPARE(rule().second == "sglang.memory_balance", false);
    machine.gpus[1].usedByOthers = 5_GiB;
    QCOMPARE(rule().second, std::string("sglang.memory_balance"));
    QVERIFY(rule().first.empty());
    machine.gpus[0].usedByOthers = 5_GiB;
    QCOMPARE(rule().second == "sglang.memory_balance", false);
  }

  void aFileSaysWhatSizesDoNot() {
    const ModelSource model = test::makeModel({});
    PlanOptions options;
    options.maxModelLen = 1024;
    std::vector<MachineGpu> gpus = twoCards(std::nullopt);
    auto report = planModel(model, gpuMachine(gpus), options);
    QVERIFY(report && !needsLayoutFile(*report, *report->find(1, 2, 1)));
    gpus[0].usedByOthers = 20_GiB;
    report = planModel(model, gpuMachine(gpus), options);
    QVERIFY(report && needsLayoutFile(*report, *report->find(1, 2, 1)) && !needsLayoutFile(*report, *report->find(2, 1, 1)));
    QVERIFY(launchCommand(*report, *report->find(1, 2, 1), "m")->text.find("--layout") != std::string::npos);
  }
};

QTEST_APPLESS_MAIN(LocalGpusTest)
#include "local_gpus_test.moc"
