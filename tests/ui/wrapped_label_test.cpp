// SPDX-License-Identifier: GPL-3.0-or-later
// WrappedLabel answers for its height as QLabel does, which it keeps in place of laying out anew.
#include "ui/views/wrapped_label.h"

#include <QtTest>

using headroom::ui::WrappedLabel;

class WrappedLabelTest : public QObject {
  Q_OBJECT

  static int ownHeight(const WrappedLabel& label, int width) { return label.QLabel::heightForWidth(width); }

 private slots:
  void isAsHighAsQtsLabel_data() {
    QTest::addColumn<QString>("html");
    QTest::addColumn<bool>("rich");
    QTest::newRow("words") << QStringLiteral("64 query heads do not divide by 6, and what to do instead is a long sentence.") << false;
    QTest::newRow("lines") << QStringLiteral("Weights: exact.\nStages of 14, 14 layers would have room for 12,345 tokens, 3 % more.") << false;
    QTest::newRow("paragraphs") << QStringLiteral(
        "<p style=\"margin-top:0;margin-bottom:6px\">GPU 0: 12 GiB too much<br><b>What to do:</b> lower the length</p>"
        "<p style=\"margin-top:0;margin-bottom:6px\">and another one that is longer than the narrow label is wide</p>")
                              << true;
    QTest::newRow("table") << QStringLiteral(
        "<table><tr><td style=\"padding-right:8px\"><code>--max-&#8203;model-&#8203;len 16384</code></td><td>tokens of one "
        "request, prompt and answer</td></tr><tr><td align=\"right\"><b>1.2&nbsp;GiB</b></td><td>idle</td></tr></table>")
                         << true;
    QTest::newRow("Chinese") << QStringLiteral("<p>预算 <b>12</b> GiB，超出 3 GiB。</p>") << true;
  }
  void isAsHighAsQtsLabel() {
    QFETCH(QString, html);
    QFETCH(bool, rich);
    WrappedLabel label;
    label.setTextFormat(rich ? Qt::RichText : Qt::PlainText);
    label.setText(html);
    for (const int width : {90, 160, 161, 320, 640, 90, 2000}) QCOMPARE(label.heightForWidth(width), ownHeight(label, width));
    QFont font = label.font();
    font.setPointSizeF(font.pointSizeF() * 1.7);
    const int before = label.heightForWidth(320);
    label.setFont(font);
    QVERIFY(label.heightForWidth(320) > before);
    for (const int width : {90, 320, 640}) QCOMPARE(label.heightForWidth(width), ownHeight(label, width));
    label.setMargin(7);
    label.setContentsMargins(1, 2, 3, 4);
    label.setText(html + QStringLiteral("<p>more</p>"));
    for (const int width : {90, 320, 640}) QCOMPARE(label.heightForWidth(width), ownHeight(label, width));
  }

  void nothingTakesNoMoreThanALabel() {
    WrappedLabel label;
    QCOMPARE(label.heightForWidth(100), ownHeight(label, 100));
    label.setText(QStringLiteral("text"));
    QVERIFY(label.heightForWidth(100) > 0);
    label.setText(QString());
    QCOMPARE(label.heightForWidth(100), ownHeight(label, 100));
  }
};

QTEST_MAIN(WrappedLabelTest)
#include "wrapped_label_test.moc"
