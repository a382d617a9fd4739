// SPDX-License-Identifier: Apache-2.0
// Loads: lengths, datasets and arrivals, from seeds.
#include "app/engine/bench/bench_load.h"
#include "app/engine/bench/bench_client.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <fstream>
#include <numeric>

using namespace headroom;
using namespace headroom::app;

namespace {

std::string textOf(const PlannedRequest& request) { return std::get<std::string>(request.prompt); }

struct Moments {
  double mean = 0, deviation = 0;
};
Moments momentsOf(const std::vector<double>& values) {
  Moments m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

}  // namespace

class BenchLoadTest : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;
  std::filesystem::path write(const char* name, const std::string& text) {
    const std::filesystem::path path = m_folder.filePath(name).toStdString();
    std::ofstream(path) << text;
    return path;
  }

 private slots:
  void drawsLengthsWithinTheSpread() {
    RandomLoad load;
    load.inputLen = 100;
    load.outputLen = 20;
    load.rangeRatio = 0.5;
    TextSource ids;
    ids.tokenIds = {5, 6, 7};
    std::vector<double> lengths;
    int64_t least = 1000, most = 0;
    for (const PlannedRequest& request : randomLoad(4000, load, ids, 1)) {
      lengths.push_back(static_cast<double>(request.promptTokens));
      QCOMPARE(static_cast<int64_t>(std::get<std::vector<int32_t>>(request.prompt).size()), request.promptTokens);
      least = std::min(least, request.promptTokens);
      most = std::max(most, request.promptTokens);
      QVERIFY(request.outputTokens >= 10 && request.outputTokens <= 30);
    }
    QCOMPARE(least, int64_t(50));
    QCOMPARE(most, int64_t(150));
    QVERIFY(std::abs(momentsOf(lengths).mean - 100) < 2);
    load.distribution = LengthDistribution::Lognormal;
    lengths.clear();
    for (const PlannedRequest& request : randomLoad(20000, load, ids, 1))
      lengths.push_back(static_cast<double>(request.promptTokens));
    QVERIFY(std::abs(momentsOf(lengths).mean - 100) < 2);
    QVERIFY(std::abs(momentsOf(lengths).deviation - 50) < 3);
    load.rangeRatio = 0;
    QCOMPARE(randomLoad(3, load, ids, 1)[2].promptTokens, int64_t(100));
  }

  void repeatsWithItsSeed() {
    RandomLoad load;
    load.inputLen = 12;
    load.prefixLen = 5;
    const auto a = randomLoad(3, load, {}, 7), b = randomLoad(3, load, {}, 7), c = randomLoad(3, load, {}, 8);
    QCOMPARE(textOf(a[2]), textOf(b[2]));
    QVERIFY(textOf(a[2]) != textOf(c[2]));
    // 17 words, the first five the same in all.
    const QStringList first = QString::fromStdString(textOf(a[0])).split(' '),
                      second = QString::fromStdString(textOf(a[1])).split(' ');
    QCOMPARE(first.size(), 17);
    QCOMPARE(first.mid(0, 5), second.mid(0, 5));
    QVERIFY(first != second);
  }

  void makesTextsOfExactlySoManyTokens() {
    const auto tokenizer = engine::Tokenizer::open(HEADROOM_TEST_DATA "/models/chat");
    QVERIFY2(tokenizer.has_value(), tokenizer ? "" : tokenizer.error().message().c_str());
    TextSource source;
    source.tokenizer = tokenizer->get();
    RandomLoad load;
    load.inputLen = 40;
    load.rangeRatio = 0.3;
    load.prefixLen = 8;
    for (const PlannedRequest& request : randomLoad(20, load, source, 3))
      QCOMPARE(static_cast<int64_t>((*tokenizer)->encode(textOf(request), false).size()), request.promptTokens);
  }

  void spreadsArrivals() {
    const auto times = arrivalTimes(5000, 10, 1, 3);
    QVERIFY(std::is_sorted(times.begin(), times.end()));
    QVERIFY(std::abs(times.back() - 500) < 1e-6);
    std::vector<double> gaps{times[0]};
    for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
    // Of a Poisson process the gaps deviate by their mean; burstiness b makes it mean / sqrt(b).
    QVERIFY(std::abs(momentsOf(gaps).deviation - 0.1) < 0.006);
    const auto even = arrivalTimes(5000, 10, 100, 3);
    gaps.assign(1, even[0]);
    for (size_t i = 1; i < even.size(); ++i) gaps.push_back(even[i] - even[i - 1]);
    QVERIFY(std::abs(momentsOf(gaps).deviation - 0.01) < 0.001);
    QCOMPARE(arrivalTimes(5000, 10, 1, 3), times);
    QCOMPARE(arrivalTimes(3, INFINITY, 1, 0), (std::vector<double>{0, 0, 0}));
    QVERIFY(arrivalTimes(0, 1, 1, 0).empty());
  }

  void readsShareGpt() {
    const auto file = write("s.json", R"([
      {"id":"a","conversations":[{"from":"human","value":"one two three four"},{"from":"gpt","value":"an answer of some length"},{"from":"human","value":"more"}]},
      {"id":"b","conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"this prompt is too short"}]},
      {"id":"c","conversations":[{"from":"human","value":"only one turn, which has no answer"}]},
      {"id":"d","conversations":[{"from":"human","value":"five six seven eight"},{"from":"gpt","value":"twelve bytes, and more"}]}])");
    const auto load = shareGptLoad(file, 2, std::nullopt, nullptr, false, 0);
    QVERIFY(load.has_value());
    QCOMPARE(textOf((*load)[0]), std::string("one two three four"));
    QCOMPARE((*load)[0].outputTokens, int64_t(6));  // 24 bytes
    QCOMPARE(textOf((*load)[1]), std::string("five six seven eight"));
    // Used again where there are too few.
    const auto more = shareGptLoad(file, 5, 9, nullptr, true, 1);
    QCOMPARE(more->size(), size_t(5));
    QCOMPARE((*more)[4].outputTokens, int64_t(9));
    QCOMPARE(textOf((*more)[4]), textOf((*more)[0]));
    QVERIFY(!shareGptLoad(write("n.json", "[]"), 2, std::nullopt, nullptr, false, 0).has_value());
    QVERIFY(!shareGptLoad(write("x.json", "{"), 2, std::nullopt, nullptr, false, 0).has_value());
    QVERIFY(!shareGptLoad("/nonexistent", 2, std::nullopt, nullptr, false, 0).has_value());
  }

  void readsJsonLines() {
    const auto file = write("l.jsonl",
                            "{\"prompt\":\"a\",\"output_len\":3}\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\r\n{"
                            "\"prompt\":[1,2,3]}\n");
    const auto load = jsonLinesLoad(file, 4, 50, nullptr, false, 0);
    QVERIFY2(load.has_value(), load ? "" : load.error().message().c_str());
    QCOMPARE(textOf((*load)[0]), std::string("a"));
    QCOMPARE((*load)[0].outputTokens, int64_t(3));
    QCOMPARE((*load)[1].messages.dump(), std::string(R"([{"role":"user","content":"b"}])"));
    QCOMPARE((*load)[1].outputTokens, int64_t(50));
    QCOMPARE(std::get<std::vector<int32_t>>((*load)[2].prompt), (std::vector<int32_t>{1, 2, 3}));
    QCOMPARE((*load)[2].promptTokens, int64_t(3));
    QCOMPARE(textOf((*load)[3]), std::string("a"));
    const auto bad = jsonLinesLoad(write("b.jsonl", "{\"prompt\":\"a\"}\n{\"text\":\"b\"}\n"), 4, 50, nullptr, false, 0);
    QVERIFY(!bad.has_value());
    QVERIFY2(bad.error().message().find("line 2") != std::string::npos, bad.error().message().c_str());
    QVERIFY(!jsonLinesLoad(write("z.jsonl", "{\"prompt\":\"a\",\"output_len\":0}"), 4, 50, nullptr, false, 0).has_value());
  }

  void readsEndpoints_data() {
    QTest::addColumn<QString>("url");
    QTest::addColumn<QString>("expected");  // host port prefix; empty: refused
    QTest::newRow("plain") << "http://127.0.0.1:8000"
                           << "127.0.0.1 8000 ";
    QTest::newRow("v1") << "http://127.0.0.1:8000/v1"
                        << "127.0.0.1 8000 ";
    QTest::newRow("v1 slash") << "http://h/v1/"
                              << "h 80 ";
    QTest::newRow("prefix") << "http://h:1/openai/v1"
                            << "h 1 /openai";
    QTest::newRow("address 6") << "http://[::1]:9/v1"
                               << "::1 9 ";
    QTest::newRow("no scheme") << "127.0.0.1:8000"
                               << "";
    QTest::newRow("no host") << "http://:80"
                             << "";
    QTest::newRow("port") << "http://h:99999"
                          << "";
    QTest::newRow("no port") << "http://h:"
                             << "";
    QTest::newRow("query") << "http://h/?a=b"
                           << "";
    QTest::newRow("user") << "http://u:p@h/"
                          << "";
  }
  void readsEndpoints() {
    QFETCH(QString, url);
    QFETCH(QString, expected);
    const auto endpoint = readEndpoint(url.toStdString());
    QCOMPARE(endpoint.has_value(), !expected.isEmpty());
    if (endpoint) QCOMPARE(QString::fromStdString(endpoint->host + " " + endpoint->port + " " + endpoint->prefix), expected);
  }
};

QTEST_APPLESS_MAIN(BenchLoadTest)
#include "bench_load_test.moc"
