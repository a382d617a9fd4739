// SPDX-License-Identifier: Apache-2.0
// Prices are kept as they were written, under the catalog's names; what is no price is refused by name.
#include "core/hardware/price_list.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

using namespace headroom;

class PriceListTest : public QObject {
  Q_OBJECT
 private slots:
  void isKeptAndReadAgain() {
    const QTemporaryDir folder;
    const std::filesystem::path file = std::filesystem::path(folder.path().toStdString()) / "new" / "prices.json";
    QVERIFY(readPrices(file).empty());
    const PriceList prices{{"H100-80GB-SXM", 2.5}, {"RTX 4090", 0.4}};
    QVERIFY(writePrices(file, prices));
    QVERIFY(readPrices(file) == prices);
    QVERIFY(writePrices(file, {}));
    QVERIFY(readPrices(file).empty());
  }

  void whatIsNoPriceIsLeftOut() {
    const QTemporaryDir folder;
    const std::filesystem::path file = std::filesystem::path(folder.path().toStdString()) / "prices.json";
    std::ofstream(file) << R"({"L40S-48GB": 0.9, "T4-16GB": -1, "A2-16GB": "much", "L4-24GB": 0})";
    QVERIFY(readPrices(file) == (PriceList{{"L40S-48GB", 0.9}}));
    std::ofstream(file) << "[1, 2";
    QVERIFY(readPrices(file).empty());
    const Status kept = writePrices(file, {{"T4-16GB", 1}});
    QVERIFY(!kept);
    QVERIFY2(kept.error().message().find("mend the file or move it away") != std::string::npos, kept.error().message().c_str());
  }

  void aPlaceThatCannotBeWrittenIsAnError() {
    const QTemporaryDir folder;
    const std::filesystem::path file = std::filesystem::path(folder.path().toStdString()) / "prices.json";
    std::ofstream(file) << "{}";
    QVERIFY(!writePrices(file / "prices.json", {{"T4-16GB", 1}}));
    QVERIFY(!writePrices({}, {{"T4-16GB", 1}}));
  }

  void pricesAreReadUnderTheCatalogsName() {
    const auto price = parsePrice("a100=1.25");
    QVERIFY2(price, price ? "" : price.error().message().c_str());
    QCOMPARE(price->first, std::string("A100-80GB-SXM"));
    QCOMPARE(price->second, 1.25);
    QCOMPARE(parsePrice("T4=0")->second, 0.0);
    for (const char* text : {"T4", "T4=", "=3", "T4=x", "T4=1x", "T4=-1", "T4=nan", "T4=inf", "T4=1e999", "no such card=1"}) {
      const auto wrong = parsePrice(text);
      QVERIFY2(!wrong, text);
      QVERIFY2(wrong.error().message().rfind("--price: found ", 0) == 0, wrong.error().message().c_str());
    }
  }
};

QTEST_GUILESS_MAIN(PriceListTest)
#include "price_list_test.moc"
