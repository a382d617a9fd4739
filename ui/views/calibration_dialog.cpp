// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/calibration_dialog.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"

#include <QDialogButtonBox>
#include <QEvent>
#include <QHeaderView>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

QString amount(const std::optional<double>& value, const std::string& unit) {
  if (!value) return kUnknown;
  if (unit == "bytes") return formatGib(Bytes(static_cast<int64_t>(*value)));
  if (unit == "tokens") return formatCount(static_cast<int64_t>(*value));
  return formatDecimal(value);
}

}  // namespace

CalibrationDialog::CalibrationDialog(Calibration calibration, QWidget* parent)
    : QDialog(parent), m_calibration(std::move(calibration)) {
  setObjectName(QStringLiteral("calibrationDialog"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_title = makeTitle(this);
  layout->addWidget(m_title);
  m_table = new QTableWidget(static_cast<int>(m_calibration.terms.size()), 4, this);
  m_table->setObjectName(QStringLiteral("calibrationTable"));
  m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setShowGrid(false);
  m_table->setTabKeyNavigation(false);
  m_table->verticalHeader()->hide();
  m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  layout->addWidget(m_table, 1);
  m_hint = makeQuietLabel(this);
  layout->addWidget(m_hint);
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  m_keep = m_buttons->addButton(QString(), QDialogButtonBox::AcceptRole);
  m_keep->setObjectName(QStringLiteral("keepCalibration"));
  m_keep->setEnabled(m_calibration.correction.has_value());
  m_showProblems = m_buttons->addButton(QString(), QDialogButtonBox::ActionRole);
  m_showProblems->setObjectName(QStringLiteral("showProblems"));
  m_showProblems->hide();
  connect(m_showProblems, &QPushButton::clicked, this, [this] {
    emit problemsRequested();
    accept();
  });
  layout->addWidget(m_buttons);
  resize(fontMetrics().averageCharWidth() * 84, fontMetrics().height() * 24);
  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_buttons, &QDialogButtonBox::accepted, this, [this] {
    emit kept(m_calibration);
    accept();
  });
  retranslate();
}

void CalibrationDialog::setProblems(int count) {
  m_problems = count;
  m_showProblems->setVisible(count > 0);
  retranslate();
}

void CalibrationDialog::retranslate() {
  setWindowTitle(tr("Start-up log"));
  const StartLog& log = m_calibration.log;
  m_title->setText(tr("%1 %2, %3: predicted and measured")
                       .arg(engineTitle(log.engine.kind), fromCore(log.engine.version),
                            layoutName(m_calibration.tp, m_calibration.pp, m_calibration.dp)));
  const auto name = [this](const std::string& term) {
    if (term == "weights") return tr("Weights");
    if (term == "activations") return tr("Activations");
    if (term == "runtime") return tr("Runtime");
    if (term == "graphs") return tr("Graphs");
    if (term == "kv_cache") return tr("KV cache");
    if (term == "kv_tokens") return tr("Tokens of the KV cache");
    if (term == "max_concurrency") return tr("Requests of full length");
    return fromCore(term);
  };
  m_table->setHorizontalHeaderLabels({tr("Term"), tr("Predicted"), tr("Measured"), tr("Difference")});
  for (int row = 0; row < m_table->rowCount(); ++row) {
    const MeasuredTerm& term = m_calibration.terms[static_cast<size_t>(row)];
    const bool both = term.predicted && term.measured && *term.measured != 0;
    const QString texts[] = {
        name(term.name), amount(term.predicted, term.unit), amount(term.measured, term.unit),
        both ? QStringLiteral("%1 %").arg(QLocale().toString((*term.predicted / *term.measured - 1) * 100, 'f', 1)) : kUnknown};
    for (int column = 0; column < 4; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      item->setTextAlignment((column == 0 ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
      if (texts[column] == kUnknown) item->setData(Qt::AccessibleTextRole, tr("unknown"));
      m_table->setItem(row, column, item);
    }
  }
  m_table->setAccessibleName(tr("Terms of memory, predicted and measured"));
  m_hint->setText(m_calibration.correction
                      ? tr("Plans of this machine and engine can add what was measured here to what is modelled.")
                      : tr("The log tells too little to correct plans by."));
  m_keep->setText(tr("&Plan with what was measured"));
  m_showProblems->setText(tr("%n problem(s) in the log…", nullptr, m_problems));
}

void CalibrationDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
