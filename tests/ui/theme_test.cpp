// SPDX-License-Identifier: GPL-3.0-or-later
// Colours and numbers as plain functions: readable in both schemes, apart for red-green blind eyes, binary units.
#include "ui/theme/theme.h"
#include "ui/models/memory_breakdown_model.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/format.h"
#include "ui/theme/headroom_color.h"
#include "ui/theme/icons.h"
#include "ui/views/layout_cell_delegate.h"
#include "ui/views/memory_bar.h"

#include <QPixmap>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class ThemeTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral(".*")));
    QLocale::setDefault(QLocale::c());
  }

  void aCellsNumberNeverRunsOverItsSymbol() {
    for (const double line : {10.0, 15.0, 24.0, 40.0})
      for (const double lines : {3.25, 3.5, 4.0, 6.0})
        for (const bool two : {false, true}) {
          const QRectF box(2.5, 2.5, 80, line * lines - 5);
          const CellGeometry cell = cellGeometry(box, line, two);
          QVERIFY(!cell.symbol.intersects(cell.first) && !cell.star.intersects(cell.first));
          QVERIFY(!cell.first.intersects(cell.second));
          if (two) QVERIFY2(cell.second.bottom() <= box.bottom() + line * 0.2, qPrintable(QString::number(lines)));
        }
  }

  void everyShadeCarriesReadableText_data() {
    QTest::addColumn<int>("scheme");
    QTest::newRow("light") << static_cast<int>(ColorScheme::Light);
    QTest::newRow("dark") << static_cast<int>(ColorScheme::Dark);
  }
  void everyShadeCarriesReadableText() {
    QFETCH(int, scheme);
    for (int percent = -100; percent <= 100; percent += 5) {
      const HeadroomShade shade = headroomShade(Bytes(percent), Bytes(100), static_cast<ColorScheme>(scheme));
      QVERIFY2(contrastRatio(shade.fill, shade.text) >= 4.5, qPrintable(QString::number(percent)));
    }
    const QPalette palette = makePalette(static_cast<ColorScheme>(scheme));
    const auto contrast = [&](QPalette::ColorRole text, QPalette::ColorRole back) {
      return contrastRatio(palette.color(text), palette.color(back));
    };
    QVERIFY(contrast(QPalette::WindowText, QPalette::Window) >= 7);
    QVERIFY(contrast(QPalette::PlaceholderText, QPalette::Window) >= 4.5);
    QVERIFY(contrast(QPalette::PlaceholderText, QPalette::Base) >= 4.5);
    QVERIFY(contrast(QPalette::HighlightedText, QPalette::Highlight) >= 4.5);
    QVERIFY(contrastRatio(mutedText(palette), cardColor(palette)) >= 4.5);
    QCOMPARE(static_cast<int>(schemeOf(palette)), scheme);
  }

  void missingIsOrangeAndRoomIsBlue() {
    for (const ColorScheme scheme : {ColorScheme::Light, ColorScheme::Dark}) {
      const QColor missing = headroomShade(Bytes(-40), Bytes(100), scheme).fill,
                   room = headroomShade(Bytes(40), Bytes(100), scheme).fill;
      QVERIFY(missing.red() > missing.blue());
      QVERIFY(room.blue() > room.red());
      QCOMPARE(headroomShade(std::nullopt, Bytes(100), scheme).fill, headroomShade(Bytes(0), Bytes(100), scheme).fill);
    }
  }

  void numbersAreBinaryAndUnknownIsADash() {
    QCOMPARE(formatGib(80_GiB), QStringLiteral("80.0 GiB"));
    QCOMPARE(formatGib(512_MiB), QStringLiteral("0.50 GiB"));
    QCOMPARE(formatGib(20_MiB), QStringLiteral("20 MiB"));
    QCOMPARE(formatGib(std::nullopt), kUnknown);
    QCOMPARE(formatCompact(394112), QStringLiteral("394k"));
    QCOMPARE(formatCompact(20480), QStringLiteral("20.5k"));
    QCOMPARE(formatCompact(1234567), QStringLiteral("1.2M"));
    QCOMPARE(formatCompact(std::nullopt), kUnknown);
    QCOMPARE(formatParameters(72706203648), QStringLiteral("72.7 B"));
    QCOMPARE(formatDecimal(std::nullopt), kUnknown);
    QLocale::setDefault(QLocale(QLocale::German, QLocale::Germany));
    QCOMPARE(formatGib(1536_MiB), QStringLiteral("1,5 GiB"));
    QCOMPARE(formatCount(394112), QStringLiteral("394.112"));
  }

  void barGeometryScalesToWhatIsNeeded() {
    MemoryBarData bar;
    bar.total = 100_GiB;
    bar.segments = {{MemoryPart::Weights, 60_GiB}, {MemoryPart::Free, 40_GiB}};
    BarGeometry geometry = barGeometry(bar, 200);
    QCOMPARE(geometry.ends.at(0), 120.0);
    QCOMPARE(geometry.limit, 200.0);
    bar.segments = {{MemoryPart::Weights, 150_GiB}, {MemoryPart::KvCache, 50_GiB}};
    geometry = barGeometry(bar, 200);
    QCOMPARE(geometry.ends.at(0), 150.0);
    QCOMPARE(geometry.limit, 100.0);
    QVERIFY(barGeometry(MemoryBarData(), 200).ends.empty());
  }

  void iconsFollowThePalette() {
    QApplication::setPalette(makePalette(ColorScheme::Light));
    const QImage light = themedIcon(QStringLiteral("plan")).pixmap(32).toImage();
    QApplication::setPalette(makePalette(ColorScheme::Dark));
    const QImage dark = themedIcon(QStringLiteral("plan")).pixmap(32).toImage();
    QVERIFY(light != dark);
    QVERIFY(!applicationIcon().isNull());
  }

  void settingsAreKeptInTheirFolder() {
    QTemporaryDir folder;
    {
      AppSettings settings(folder.path());
      QSignalSpy themes(&settings, &AppSettings::themeChanged);
      settings.setTheme(ThemeChoice::Dark);
      settings.setTheme(ThemeChoice::Dark);
      QCOMPARE(themes.count(), 1);
      settings.setLanguage(QStringLiteral("zh_CN"));
      settings.setHostDevices({3, 2_GiB});
      for (int i = 0; i < 20; ++i) settings.addRecentModel(QString::number(i));
      settings.addRecentModel(QStringLiteral("15"));
    }
    const AppSettings settings(folder.path());
    QCOMPARE(settings.theme(), ThemeChoice::Dark);
    QCOMPARE(settings.language(), QStringLiteral("zh_CN"));
    QCOMPARE(settings.hostDevices().count, 3);
    QCOMPARE(settings.hostDevices().memoryEach->count(), (2_GiB).count());
    QCOMPARE(settings.recentModels().size(), AppSettings::kMostRecentModels);
    QCOMPARE(settings.recentModels().first(), QStringLiteral("15"));
    QCOMPARE(settings.recentModels().count(QStringLiteral("15")), 1);
  }
};

QTEST_MAIN(ThemeTest)
#include "theme_test.moc"
