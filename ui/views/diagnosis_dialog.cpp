// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/diagnosis_dialog.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QEvent>
#include <QGuiApplication>
#include <QPushButton>
#include <QTextBrowser>
#include <QVBoxLayout>

namespace headroom::ui {

DiagnosisDialog::DiagnosisDialog(LogReading reading, std::vector<FixAction> actions, QWidget* parent)
    : QDialog(parent), m_reading(std::move(reading)), m_actions(std::move(actions)) {
  setObjectName(QStringLiteral("diagnosisDialog"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_title = makeTitle(this);
  m_title->setObjectName(QStringLiteral("diagnosisTitle"));
  m_title->setWordWrap(true);
  layout->addWidget(m_title);
  m_where = makeQuietLabel(this);
  layout->addWidget(m_where);
  m_text = new QTextBrowser(this);
  m_text->setObjectName(QStringLiteral("diagnosisText"));
  m_text->setOpenLinks(false);
  m_text->setTabChangesFocus(true);
  layout->addWidget(m_text, 1);
  for (const FixAction& action : m_actions) {
    auto* button = new QPushButton(this);
    button->setObjectName(QStringLiteral("diagnosisFix%1").arg(m_fixes.size()));
    layout->addWidget(button, 0, Qt::AlignLeading);
    connect(button, &QPushButton::clicked, this, [this, action] {
      emit fixRequested(action);
      accept();
    });
    m_fixes.push_back(button);
  }
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  m_copy = m_buttons->addButton(QString(), QDialogButtonBox::ActionRole);
  m_copy->setObjectName(QStringLiteral("copyDiagnosis"));
  m_copy->setIcon(themedIcon(QStringLiteral("copy")));
  m_measured = m_buttons->addButton(QString(), QDialogButtonBox::ActionRole);
  m_measured->setObjectName(QStringLiteral("showMeasured"));
  m_measured->setVisible(m_reading.calibration.has_value());
  layout->addWidget(m_buttons);
  m_copy->setAutoDefault(false);
  m_measured->setAutoDefault(false);
  m_buttons->button(QDialogButtonBox::Close)->setDefault(true);
  resize(fontMetrics().averageCharWidth() * 110, fontMetrics().height() * 32);
  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(text()); });
  connect(m_measured, &QPushButton::clicked, this, [this] {
    emit calibrationRequested(*m_reading.calibration);
    accept();
  });
  retranslate();
}

QString DiagnosisDialog::html() const {
  const LogDiagnosis& diagnosis = m_reading.diagnosis;
  std::vector<LogFinding> findings = diagnosis.findings;
  if (findings.empty() && diagnosis.unknown) findings.push_back(*diagnosis.unknown);
  QString html;
  for (size_t i = 0; i < findings.size(); ++i) {
    const LogFinding& finding = findings[i];
    if (i > 0)
      html += QStringLiteral("<hr><p><b>%1</b></p>").arg(tr("Also found: %1").arg(coreText(finding.title)).toHtmlEscaped());
    if (!finding.why.empty()) html += QStringLiteral("<p>%1</p>").arg(coreText(finding.why).toHtmlEscaped());
    if (!finding.fixes.empty()) {
      html += QStringLiteral("<p style=\"margin-bottom:0\"><b>%1</b></p><ol style=\"margin-top:0\">")
                  .arg(tr("What to do:").toHtmlEscaped());
      for (const std::string& fix : finding.fixes) html += QStringLiteral("<li>%1</li>").arg(coreText(fix).toHtmlEscaped());
      html += QStringLiteral("</ol>");
    }
    const QString phase = phaseText(finding.phase);
    const QString where = phase.isEmpty() ? tr("Line %1:").arg(QLocale().toString(finding.line))
                                          : tr("Line %1, %2:").arg(QLocale().toString(finding.line), phase);
    html += QStringLiteral("<p>%1<br><code>%2</code></p>").arg(where.toHtmlEscaped(), fromCore(finding.text).toHtmlEscaped());
  }
  return html;
}

QString DiagnosisDialog::text() const {
  return m_title->text() + QLatin1Char('\n') + m_where->text() + QLatin1Char('\n') + m_text->toPlainText() + QLatin1Char('\n');
}

void DiagnosisDialog::retranslate() {
  setWindowTitle(tr("What the log tells"));
  const LogDiagnosis& diagnosis = m_reading.diagnosis;
  const QString title = diagnosis.findings.empty()
                            ? diagnosis.unknown ? coreText(diagnosis.unknown->title) : tr("No error was found.")
                            : coreText(diagnosis.findings.front().title);
  m_title->setText(title.left(1).toUpper() + title.mid(1));
  const QString engine = diagnosedEngine(diagnosis);
  m_where->setText(engine.isEmpty() ? tr("%1, %n line(s)", nullptr, diagnosis.lines).arg(m_reading.name)
                                    : tr("%1, a log of %2, %n line(s)", nullptr, diagnosis.lines).arg(m_reading.name, engine));
  m_text->setHtml(html());
  m_text->setAccessibleName(tr("Cause and what to do"));
  for (size_t i = 0; i < m_fixes.size(); ++i) {
    m_fixes[i]->setText(m_actions[i].label());
    m_fixes[i]->setAccessibleDescription(tr("Does what is advised above"));
  }
  m_copy->setText(tr("&Copy"));
  m_measured->setText(tr("Predicted and &measured…"));
}

void DiagnosisDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
