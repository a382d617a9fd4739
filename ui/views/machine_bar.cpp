// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/machine_bar.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/theme/format.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"
#include "ui/views/machine_dialog.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QRadioButton>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <utility>
#include <vector>

namespace headroom::ui {
namespace {

constexpr int kTypingPauseMs = 500;
const QString kLocal = QStringLiteral("local"), kHost = QStringLiteral("host");

}  // namespace

MachineBar::MachineBar(QWidget* parent) : QWidget(parent) {
  build();
  retranslate();
}

void MachineBar::build() {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(6);
  m_local = new QRadioButton(this);
  m_local->setObjectName(QStringLiteral("thisMachine"));
  m_local->setChecked(true);
  m_host = new QRadioButton(this);
  m_host->setObjectName(QStringLiteral("thisProcessor"));
  m_host->hide();
  m_whatIf = new QRadioButton(this);
  m_whatIf->setObjectName(QStringLiteral("whatIf"));
  layout->addWidget(m_local);
  layout->addWidget(m_host);
  layout->addWidget(m_whatIf);

  m_count = new QSpinBox(this);
  m_count->setRange(1, 4096);
  m_count->setValue(6);
  m_count->setObjectName(QStringLiteral("gpuCount"));
  m_card = new QComboBox(this);
  m_card->setObjectName(QStringLiteral("gpuCard"));
  m_card->setMaxVisibleItems(20);
  m_card->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  m_card->setMinimumContentsLength(8);
  for (const GpuSpec& spec : gpuCatalog()) m_card->addItem(fromCore(spec.name));
  m_edit = new QToolButton(this);
  m_edit->setObjectName(QStringLiteral("editMachine"));
  m_edit->setIcon(themedIcon(QStringLiteral("table")));
  auto* pickers = new QHBoxLayout;
  pickers->addWidget(m_count);
  pickers->addWidget(m_card, 1);
  pickers->addWidget(m_edit);
  layout->addLayout(pickers);

  m_text = new QLineEdit(this);
  m_text->setObjectName(QStringLiteral("machineText"));
  m_text->setPlaceholderText(QStringLiteral("2x24GiB,1x48GiB"));
  m_text->setClearButtonEnabled(false);
  layout->addWidget(m_text);

  m_problem = makeTextLabel(this);
  m_problem->setObjectName(QStringLiteral("machineProblem"));
  m_problem->hide();
  layout->addWidget(m_problem);
  m_summary = makeQuietLabel(this);
  m_summary->setObjectName(QStringLiteral("machineSummary"));
  layout->addWidget(m_summary);
  m_find = new QPushButton(themedIcon(QStringLiteral("catalog")), QString(), this);
  m_find->setObjectName(QStringLiteral("findGpus"));
  layout->addWidget(m_find);
  connect(m_find, &QPushButton::clicked, this, &MachineBar::wishRequested);

  m_typing = new QTimer(this);
  m_typing->setSingleShot(true);
  m_typing->setInterval(kTypingPauseMs);
  connect(m_typing, &QTimer::timeout, this, &MachineBar::requestWhatIf);
  connect(m_text, &QLineEdit::textEdited, this, [this] {
    m_whatIf->setChecked(true);
    m_typing->start();
  });
  connect(m_text, &QLineEdit::returnPressed, this, &MachineBar::requestWhatIf);
  for (const auto& [button, text] : {std::pair{m_local, kLocal}, std::pair{m_host, kHost}})
    connect(button, &QRadioButton::clicked, this, [this, text = text] {
      m_typing->stop();
      emit machineRequested(text);
    });
  connect(m_whatIf, &QRadioButton::clicked, this, [this] {
    if (m_text->text().trimmed().isEmpty() && m_card->currentIndex() >= 0)
      pick();
    else
      requestWhatIf();
  });
  connect(m_edit, &QToolButton::clicked, this, [this] {
    auto* dialog = new MachineDialog(m_machine, window());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &MachineDialog::machineChosen, this, [this](const QString& text) {
      m_text->setText(text);
      requestWhatIf();
    });
    dialog->open();
  });
  connect(m_card, &QComboBox::activated, this, &MachineBar::pick);
  connect(m_count, &QSpinBox::valueChanged, this, &MachineBar::pick);
}

void MachineBar::pick() {
  m_whatIf->setChecked(true);
  m_text->setText(QStringLiteral("%1x%2").arg(m_count->value()).arg(m_card->currentText()));
  requestWhatIf();
}

void MachineBar::requestWhatIf() {
  m_typing->stop();
  m_whatIf->setChecked(true);
  emit machineRequested(m_text->text().trimmed());
}

void MachineBar::setMachine(const QString& text, const Machine& machine) {
  m_machine = machine;
  setProblem({});
  if (machine.isLocal) {
    (machine.isHostOnly() && !m_gpus.gpus.empty() ? m_host : m_local)->setChecked(true);
  } else {
    m_whatIf->setChecked(true);
    if (m_text->text().trimmed() != text) m_text->setText(text);
    // The pickers follow a machine of one kind of card.
    const QString first = machine.gpus.empty() ? QString() : fromCore(machine.gpus.front().spec.name);
    bool same = !machine.gpus.empty();
    for (const MachineGpu& gpu : machine.gpus) same = same && gpu.spec.name == machine.gpus.front().spec.name;
    // Of several kinds there is no card to show, and no number of it to change.
    const QSignalBlocker block(m_count);
    m_card->setCurrentIndex(same ? m_card->findText(first) : -1);
    m_count->setValue(machine.size());
    m_count->setEnabled(m_card->currentIndex() >= 0);
  }
  m_summary->setText(summary());
}

void MachineBar::setLocalGpus(const LocalGpus& gpus) {
  m_gpus = gpus;
  m_host->setVisible(!gpus.gpus.empty());
  retranslate();
}

void MachineBar::setProblem(const QString& problem) {
  m_problem->setText(problem);
  m_problem->setVisible(!problem.isEmpty());
}

QString MachineBar::problem() const { return m_problem->text(); }

QString MachineBar::summary() const {
  if (m_machine.gpus.empty()) return {};
  // Alike devices are one line.
  std::vector<std::pair<QString, int>> kinds;
  for (const MachineGpu& gpu : m_machine.gpus) {
    const QString kind = gpu.spec.hostDevice ? tr("host devices of %1 each").arg(formatGib(gpu.totalMemory))
                                             : tr("%1 with %2").arg(fromCore(gpu.spec.name), formatGib(gpu.totalMemory));
    if (!kinds.empty() && kinds.back().first == kind)
      ++kinds.back().second;
    else
      kinds.emplace_back(kind, 1);
  }
  QStringList lines;
  for (const auto& [kind, count] : kinds) lines << QStringLiteral("%1 × %2").arg(QLocale().toString(count), kind);
  if (m_machine.isLocal && m_gpus.gpus.empty() && !m_gpus.offReason.empty()) lines << coreText(m_gpus.offReason);
  if (m_machine.nodes > 1) lines << tr("%n node(s)", nullptr, m_machine.nodes);
  return lines.join(QLatin1Char('\n'));
}

void MachineBar::retranslate() {
  m_local->setText(m_gpus.gpus.empty() ? tr("&This machine") : tr("&This machine's GPUs"));
  m_host->setText(tr("This machine's &processor"));
  m_whatIf->setText(tr("&What-if GPUs"));
  m_count->setAccessibleName(tr("Number of GPUs"));
  m_count->setToolTip(tr("Number of GPUs"));
  m_card->setAccessibleName(tr("GPU model"));
  m_card->setToolTip(tr("GPU model"));
  m_card->setPlaceholderText(tr("Several kinds"));
  m_edit->setAccessibleName(tr("Edit nodes and mixed cards"));
  m_edit->setToolTip(tr("Edit nodes and mixed cards"));
  m_text->setAccessibleName(tr("GPUs as text"));
  m_text->setToolTip(tr("For example 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB for two nodes of eight"));
  m_find->setText(tr("Find GPUs…"));
  m_find->setToolTip(tr("The fewest or cheapest GPUs for a length, requests and speeds"));
  m_summary->setText(summary());
}

void MachineBar::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
