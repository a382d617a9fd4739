// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/details_panel.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/models/memory_breakdown_model.h"
#include "ui/theme/format.h"
#include "ui/theme/headroom_color.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"
#include "ui/views/memory_bar.h"
#include "ui/views/verdict_badge.h"

#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QFontDatabase>
#include <QGridLayout>
#include <QGuiApplication>
#include <QHeaderView>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

QHBoxLayout* titleRow(QVBoxLayout* layout, QLabel* title, QWidget* action) {
  auto* row = new QHBoxLayout;
  row->addWidget(title, 1);
  if (action) row->addWidget(action);
  layout->addSpacing(8);
  layout->addLayout(row);
  return row;
}

// A long option may go on in the next line behind its separators.
QString breakable(const std::string& option) {
  QString text = fromCore(option).toHtmlEscaped();
  static const QRegularExpression places(QStringLiteral("([=,/:_-])(?=[^=,/:_ -])"));
  return text.replace(places, QStringLiteral("\\1&#8203;"));
}

}  // namespace

DetailsPanel::DetailsPanel(QWidget* parent) : QScrollArea(parent) {
  setObjectName(QStringLiteral("details"));
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setAutoFillBackground(false);
  build();
  retranslate();
}

void DetailsPanel::build() {
  m_content = new QWidget;
  m_content->setAutoFillBackground(false);
  auto* layout = new QVBoxLayout(m_content);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(6);
  m_title = makeTitle(m_content, 1.35);
  m_title->setObjectName(QStringLiteral("detailsTitle"));
  m_badge = new VerdictBadge(m_content);
  m_recommended = makeQuietLabel(m_content);
  m_start = new QPushButton(themedIcon(QStringLiteral("start")), QString(), m_content);
  m_start->setObjectName(QStringLiteral("startLayout"));
  m_obstacleLabel = makeQuietLabel(m_content);
  m_obstacleLabel->setObjectName(QStringLiteral("startObstacle"));
  layout->addWidget(m_title);
  layout->addWidget(m_badge);
  layout->addWidget(m_recommended);
  layout->addSpacing(2);
  layout->addWidget(m_start);
  layout->addWidget(m_obstacleLabel);
  m_reasonsTitle = makeTitle(m_content);
  m_reasons = makeTextLabel(m_content);
  m_reasons->setObjectName(QStringLiteral("reasons"));
  m_reasons->setTextFormat(Qt::RichText);
  titleRow(layout, m_reasonsTitle, nullptr);
  layout->addWidget(m_reasons);
  m_fixes = new QWidget(m_content);
  m_fixes->setObjectName(QStringLiteral("fixes"));
  m_fixesLayout = new QVBoxLayout(m_fixes);
  m_fixesLayout->setContentsMargins(0, 0, 0, 0);
  m_fixesLayout->setSpacing(4);
  layout->addWidget(m_fixes);
  buildMemory(layout);
  buildFacts(layout);
  m_wasteTitle = makeTitle(m_content);
  titleRow(layout, m_wasteTitle, nullptr);
  m_waste = makeTextLabel(m_content);
  m_waste->setObjectName(QStringLiteral("waste"));
  m_waste->setTextFormat(Qt::RichText);
  layout->addWidget(m_waste);
  buildCommand(layout);
  layout->addStretch(1);
  setWidget(m_content);
  m_content->setAutoFillBackground(false);
  connect(m_start, &QPushButton::clicked, this, &DetailsPanel::startRequested);
}

void DetailsPanel::buildMemory(QVBoxLayout* layout) {
  m_memoryTitle = makeTitle(m_content);
  m_asTable = new QToolButton(m_content);
  m_asTable->setObjectName(QStringLiteral("memoryAsTable"));
  m_asTable->setIcon(themedIcon(QStringLiteral("table")));
  m_asTable->setCheckable(true);
  m_asTable->setAutoRaise(true);
  titleRow(layout, m_memoryTitle, m_asTable);
  m_memorySource = makeQuietLabel(m_content);
  layout->addWidget(m_memorySource);
  m_forget = new QPushButton(m_content);
  m_forget->setObjectName(QStringLiteral("forgetMeasured"));
  layout->addWidget(m_forget, 0, Qt::AlignLeading);
  connect(m_forget, &QPushButton::clicked, this, &DetailsPanel::forgetRequested);
  m_bars = new MemoryBars(m_content);
  layout->addWidget(m_bars);
  m_breakdown = new MemoryBreakdownModel(this);
  m_table = new QTableView(m_content);
  m_table->setObjectName(QStringLiteral("memoryTable"));
  m_table->setModel(m_breakdown);
  m_table->verticalHeader()->hide();
  m_table->setAlternatingRowColors(true);
  m_table->setShowGrid(false);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setTabKeyNavigation(false);
  m_table->hide();
  layout->addWidget(m_table);
  connect(m_asTable, &QToolButton::toggled, this, [this](bool table) {
    fitTable();
    m_table->setVisible(table);
    m_bars->setVisible(!table);
  });
}

void DetailsPanel::buildFacts(QVBoxLayout* layout) {
  m_factsTitle = makeTitle(m_content);
  titleRow(layout, m_factsTitle, nullptr);
  m_facts = new QWidget(m_content);
  auto* grid = new QGridLayout(m_facts);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setVerticalSpacing(3);
  grid->setColumnStretch(0, 1);
  for (int row = 0; row < FactCount; ++row) {
    FactLine& line = m_factLines[static_cast<size_t>(row)];
    if (row == RoomHeading || row == SpeedHeading) {
      line.name = makeQuietLabel(m_facts);
      grid->addWidget(line.name, row, 0, 1, 4);
      continue;
    }
    line.name = new QLabel(m_facts);
    line.name->setWordWrap(true);
    line.value = new QLabel(m_facts);
    QFont font = line.value->font();
    font.setWeight(QFont::DemiBold);
    line.value->setFont(font);
    line.value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    line.unit = new QLabel(m_facts);
    line.band = new QLabel(m_facts);
    line.band->setObjectName(QStringLiteral("band"));
    for (QLabel* quiet : {line.unit, line.band}) quiet->setForegroundRole(QPalette::PlaceholderText);
    grid->addWidget(line.name, row, 0);
    grid->addWidget(line.value, row, 1, Qt::AlignTrailing);
    grid->addWidget(line.unit, row, 2);
    grid->addWidget(line.band, row, 3, Qt::AlignTrailing);
  }
  layout->addWidget(m_facts);
  m_factsSource = makeQuietLabel(m_content);
  layout->addWidget(m_factsSource);
}

void DetailsPanel::buildCommand(QVBoxLayout* layout) {
  m_commandTitle = makeTitle(m_content);
  m_copy = new QToolButton(m_content);
  m_copy->setObjectName(QStringLiteral("copyCommand"));
  m_copy->setIcon(themedIcon(QStringLiteral("copy")));
  m_copy->setAutoRaise(true);
  m_form = new QComboBox(m_content);
  m_form->setObjectName(QStringLiteral("commandForm"));
  QHBoxLayout* commandRow = titleRow(layout, m_commandTitle, m_form);
  commandRow->addWidget(m_copy);
  connect(m_form, &QComboBox::activated, this, &DetailsPanel::showCommand);
  m_command = new QPlainTextEdit(m_content);
  m_command->setObjectName(QStringLiteral("command"));
  m_command->setReadOnly(true);
  m_command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_command->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  m_command->setTabChangesFocus(true);
  layout->addWidget(m_command);
  m_explained = makeTextLabel(m_content);
  m_explained->setTextFormat(Qt::RichText);
  layout->addWidget(m_explained);
  connect(m_copy, &QToolButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(m_command->toPlainText()); });
}

void DetailsPanel::setLayout(std::shared_ptr<const PlanReport> report, const LayoutPlan* layout, const QString& modelArgument) {
  m_layout = layout;
  m_report = std::move(report);
  m_modelArgument = modelArgument;
  refresh();
}

void DetailsPanel::setStartObstacle(const QString& obstacle) {
  m_obstacle = obstacle;
  m_start->setEnabled(obstacle.isEmpty());
  m_start->setDefault(obstacle.isEmpty());
  m_start->setAccessibleDescription(obstacle);
  m_start->setToolTip(obstacle);
  m_obstacleLabel->setText(obstacle);
  m_obstacleLabel->setVisible(!obstacle.isEmpty());
}

QString DetailsPanel::commandText() const { return m_command->toPlainText(); }

void DetailsPanel::refresh() {
  const bool shown = m_report && m_layout;
  for (QWidget* widget : {static_cast<QWidget*>(m_badge), static_cast<QWidget*>(m_start)}) widget->setVisible(shown);
  const bool planned = shown && !m_layout->ranks.empty();
  for (QWidget* widget :
       {static_cast<QWidget*>(m_memoryTitle), static_cast<QWidget*>(m_asTable), static_cast<QWidget*>(m_memorySource),
        static_cast<QWidget*>(m_factsTitle), m_facts, static_cast<QWidget*>(m_factsSource)})
    widget->setVisible(planned);
  m_bars->setVisible(planned && !m_asTable->isChecked());
  m_table->setVisible(planned && m_asTable->isChecked());
  m_forget->setVisible(planned && m_layout->memoryProvenance == Provenance::MeasuredHere);
  m_obstacleLabel->setVisible(!m_obstacle.isEmpty());
  m_breakdown->setLayout(shown ? m_report.get() : nullptr, shown ? m_layout : nullptr);
  m_bars->setBars(shown ? memoryBars(*m_report, *m_layout) : std::vector<MemoryBarData>());
  if (!shown) {
    m_title->setText(tr("No layout selected"));
    m_recommended->hide();
    for (QWidget* widget : {static_cast<QWidget*>(m_reasonsTitle), static_cast<QWidget*>(m_reasons), m_fixes}) widget->hide();
  } else {
    m_title->setText(layoutName(*m_layout));
    Bytes memory;
    const int gpu = m_layout->limitingGpu.value_or(0);
    if (gpu >= 0 && gpu < m_report->machine.size()) memory = m_report->machine.gpus[static_cast<size_t>(gpu)].totalMemory;
    m_badge->set(m_layout->verdict, m_layout->headroom, memory);
    const auto& recommended = m_report->recommended;
    const bool isRecommended =
        recommended && recommended->tp == m_layout->tp && recommended->pp == m_layout->pp && recommended->dp == m_layout->dp;
    m_recommended->setVisible(isRecommended);
    if (isRecommended) m_recommended->setText(tr("Recommended: %1").arg(coreText(recommended->why)));
    showReasons();
    showFacts();
    fitTable();
  }
  showWaste();
  showCommand();
}

void DetailsPanel::fitTable() {
  // A hidden table costs nothing while options are dragged.
  if (!m_asTable->isChecked()) return;
  m_table->resizeColumnsToContents();
  const int rows = std::min(m_breakdown->rowCount(), 8);
  m_table->setFixedHeight(m_table->horizontalHeader()->sizeHint().height() +
                          rows * m_table->verticalHeader()->defaultSectionSize() + m_table->fontMetrics().height() * 3 / 2);
}

void DetailsPanel::showFixes() {
  const std::vector<FixAction> actions = fixActions(*m_report, *m_layout);
  QStringList labels;
  for (const FixAction& action : actions) labels << action.label();
  m_fixes->setVisible(!actions.empty());
  m_actions = actions;
  if (labels == m_fixLabels) return;  // buttons under a finger stay
  m_fixLabels = labels;
  while (QLayoutItem* item = m_fixesLayout->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  for (qsizetype i = 0; i < labels.size(); ++i) {
    auto* button = new QPushButton(labels[i], m_fixes);
    button->setObjectName(QStringLiteral("fix%1").arg(i));
    button->setAccessibleDescription(tr("Does what is advised above"));
    m_fixesLayout->addWidget(button, 0, Qt::AlignLeading);
    connect(button, &QPushButton::clicked, this, [this, i] {
      if (i < static_cast<qsizetype>(m_actions.size())) emit fixRequested(FixAction(m_actions[static_cast<size_t>(i)]));
    });
  }
}

void DetailsPanel::showWaste() {
  const bool shown = m_report && m_layout && !m_layout->waste.empty();
  m_waste->setVisible(shown);
  m_wasteTitle->setVisible(shown);
  if (!shown) return;
  QStringList rows;
  for (const WasteItem& item : m_layout->waste)
    rows << QStringLiteral("<tr><td style=\"padding-right:8px\" align=\"right\"><b>%1</b></td><td>%2</td></tr>")
                .arg(formatGib(item.bytes).toHtmlEscaped().replace(QLatin1Char(' '), QStringLiteral("&nbsp;")),
                     coreText(item.why).toHtmlEscaped());
  m_waste->setText(QStringLiteral("<table>%1</table>").arg(rows.join(QString())));
}

void DetailsPanel::showReasons() {
  QStringList paragraphs;
  std::vector<Reason> shown = m_layout->reasons;
  shown.insert(shown.end(), m_layout->warnings.begin(), m_layout->warnings.end());
  for (const Reason& reason : shown) {
    QString paragraph = coreText(reason.message).toHtmlEscaped();
    if (!reason.fix.empty())
      paragraph +=
          QStringLiteral("<br><b>%1</b> %2").arg(tr("What to do:").toHtmlEscaped(), coreText(reason.fix).toHtmlEscaped());
    paragraphs << QStringLiteral("<p style=\"margin-top:0;margin-bottom:6px\">%1</p>").arg(paragraph);
  }
  m_reasons->setText(paragraphs.join(QString()));
  m_reasons->setVisible(!paragraphs.isEmpty());
  m_reasonsTitle->setVisible(!paragraphs.isEmpty());
  m_reasonsTitle->setText(m_layout->verdict == Verdict::Fits ? tr("Notes") : tr("Why"));
  showFixes();
}

void DetailsPanel::showFacts() {
  const auto hide = [&](Fact fact) {
    const FactLine& line = m_factLines[fact];
    for (QLabel* label : {line.name, line.value, line.unit, line.band})
      if (label) label->hide();
  };
  // Under which of the three kinds of number the figures below come.
  const auto heading = [&](Fact fact, const QString& text) {
    m_factLines[fact].name->setText(text);
    m_factLines[fact].name->show();
  };
  const auto show = [&](Fact fact, const QString& name, const QString& value, const QString& unit, const QString& band = {}) {
    const FactLine& line = m_factLines[fact];
    line.name->setText(name);
    line.value->setText(value);
    line.unit->setText(unit);
    line.band->setText(band);
    line.value->setAccessibleName(QStringList{name, value, unit, band}.join(QLatin1Char(' ')).simplified());
    for (QLabel* label : {line.name, line.value, line.unit}) label->show();
    line.band->setVisible(!band.isEmpty());
  };
  const Prediction& predicted = m_layout->predicted;
  const ResolvedOptions& options = m_report->options;
  heading(RoomHeading, tr("Room: %1").arg(provenanceText(m_layout->memoryProvenance)));
  show(KvTokens, tr("KV cache of a replica"), formatCount(m_layout->kvTokens), tr("tokens"));
  show(RequestsAtOnce, tr("Requests of %1 tokens at once").arg(formatCount(options.maxModelLen)),
       formatDecimal(m_layout->maxConcurrency), QString());
  if (!m_layout->answers.empty()) {
    const LayoutAnswers& answers = m_layout->answers.front();
    show(LongestContext, tr("Longest context that fits"),
         answers.longestContext ? formatCount(answers.longestContext) : tr("unknown"),
         answers.longestContext ? tr("tokens") : QString());
    show(MostRequests, tr("Most requests of this length"),
         answers.mostRequests ? formatCount(answers.mostRequests) : tr("unknown"), QString());
  } else {
    hide(LongestContext);
    hide(MostRequests);
  }
  // The line beneath says where a speed comes from, or why it is not known. Rates follow from the time between tokens, or of a
  // prompt.
  const QString tokenBand = bandText(predicted.itlError), promptBand = bandText(predicted.ttftError);
  const auto speed = [&](Fact fact, const QString& name, const std::optional<double>& value, const QString& unit,
                         const QString& band) {
    show(fact, name, value ? formatDecimal(value) : tr("unknown"), value ? unit : QString(), value ? band : QString());
  };
  if (predicted.itlMs)
    heading(SpeedHeading, tr("Speed: modelled; nine of ten timed cases of this kind lie within ±"));
  else
    hide(SpeedHeading);
  speed(DecodeOfOne, tr("Decode, one request"), predicted.decodeTokensPerSecond, tr("tokens/s"), tokenBand);
  if (options.concurrency > 1)
    speed(DecodeOfAll, tr("Decode, %n request(s)", nullptr, static_cast<int>(options.concurrency)),
          predicted.throughputTokensPerSecond, tr("tokens/s"), tokenBand);
  else
    hide(DecodeOfAll);
  speed(TimeBetweenTokens, tr("Time between tokens"), predicted.itlMs, tr("ms"), tokenBand);
  speed(Prefill, tr("Prefill"), predicted.prefillTokensPerSecond, tr("tokens/s"), promptBand);
  speed(FirstToken,
        options.inputLen > 0 ? tr("Time to first token, prompt of %1").arg(formatCount(options.inputLen))
                             : tr("Time to first token"),
        predicted.ttftMs, tr("ms"), promptBand);
  showFactsSource();
}

void DetailsPanel::showFactsSource() {
  const Prediction& predicted = m_layout->predicted;
  QString source = predicted.source.empty() ? tr("Speed: unknown") : coreText(predicted.source);
  if (!m_layout->partition.empty()) {
    const PartitionAdvice& advice = m_layout->partition.front();
    QStringList layers;
    for (const int64_t count : advice.layers) layers << QString::number(count);
    source += QLatin1Char('\n') + (advice.gain > 0 ? tr("Stages of %1 layers would have room for %2 tokens, %3 % more.")
                                                         .arg(layers.join(QStringLiteral(", ")), formatCount(advice.kvTokens),
                                                              formatDecimal(advice.gain * 100))
                                                   : tr("Stages of %1 layers would have room for %2 tokens.")
                                                         .arg(layers.join(QStringLiteral(", ")), formatCount(advice.kvTokens)));
  }
  m_factsSource->setText(source);
  QString memorySource = tr("Weights: %1. Other memory: %2.")
                             .arg(provenanceText(m_layout->weightsProvenance), provenanceText(m_layout->memoryProvenance));
  if (m_layout->memoryProvenance == Provenance::MeasuredHere)
    for (const MemoryCorrection& correction : m_report->options.corrections)
      if (correction.severalRanks == (m_layout->tp > 1) && !correction.source.empty())
        memorySource += QLatin1Char('\n') + coreText(correction.source);
  m_memorySource->setText(memorySource);
}

void DetailsPanel::showCommand() {
  const auto command = m_report && m_layout && m_layout->verdict != Verdict::Invalid
                           ? launchCommand(*m_report, *m_layout, m_modelArgument.toStdString())
                           : std::nullopt;
  for (QWidget* widget : {static_cast<QWidget*>(m_commandTitle), static_cast<QWidget*>(m_copy), static_cast<QWidget*>(m_command),
                          static_cast<QWidget*>(m_explained), static_cast<QWidget*>(m_form)})
    widget->setVisible(command.has_value());
  if (!command) {
    m_command->clear();
    return;
  }
  // The forms that there are for this engine; the chosen one stays where it exists.
  QStringList names{tr("Terminal")}, forms{QStringLiteral("terminal")};
  if (!command->docker.empty()) {
    names << tr("Docker");
    forms << QStringLiteral("docker");
  }
  for (const LaunchCommand::OnNode& on : command->nodes) {
    names << tr("Node %1").arg(on.node);
    forms << QStringLiteral("node %1").arg(on.node);
  }
  if (names != m_formNames) {
    const QString wanted = m_form->currentData().toString();
    m_formNames = names;
    m_form->clear();
    for (qsizetype i = 0; i < names.size(); ++i) m_form->addItem(names[i], forms[i]);
    m_form->setCurrentIndex(std::max(0, m_form->findData(wanted)));
  }
  m_form->setVisible(m_form->count() > 1);
  const QString form = m_form->currentData().toString();
  const bool docker = form == QLatin1String("docker");
  QString text = fromCore(docker ? command->docker : command->text);
  for (const LaunchCommand::OnNode& on : command->nodes)
    if (form == QStringLiteral("node %1").arg(on.node)) text = fromCore(on.text);
  m_command->setPlainText(text);
  const QFontMetrics metrics(m_command->font());
  const int perLine = std::max(20, width() / std::max(1, metrics.averageCharWidth()) - 8);
  int lines = 0;
  for (const QString& line : text.split(QLatin1Char('\n'))) lines += 1 + static_cast<int>(line.size()) / perLine;
  m_command->setFixedHeight(metrics.lineSpacing() * std::min(lines + 1, 12) + 12);
  QStringList rows;
  std::vector<LaunchCommand::Option> explained = docker ? command->dockerExplained : std::vector<LaunchCommand::Option>();
  for (const LaunchCommand::Option& option : command->explained)
    if (!docker || option.option.rfind("CUDA_VISIBLE_DEVICES=", 0) != 0) explained.push_back(option);  // --gpus says it there
  for (const auto& option : explained)
    rows << QStringLiteral("<tr><td style=\"padding-right:8px\"><code>%1</code></td><td>%2</td></tr>")
                .arg(breakable(option.option), coreText(option.why).toHtmlEscaped());
  m_explained->setText(rows.isEmpty() ? QString() : QStringLiteral("<table>%1</table>").arg(rows.join(QString())));
}

void DetailsPanel::retranslate() {
  m_start->setText(tr("Start this layout"));
  m_memoryTitle->setText(tr("Memory per GPU"));
  m_asTable->setAccessibleName(tr("Show memory as a table"));
  m_asTable->setToolTip(tr("Show memory as a table"));
  m_table->setAccessibleName(tr("Memory of each GPU"));
  m_forget->setText(tr("&Forget what was measured"));
  m_forget->setToolTip(tr("Plan this machine and engine by the model again"));
  m_factsTitle->setText(tr("Capacity and speed"));
  m_commandTitle->setText(tr("Command"));
  m_wasteTitle->setText(tr("Memory that serves nothing"));
  m_form->setAccessibleName(tr("Form of the command"));
  m_fixLabels.clear();
  m_command->setAccessibleName(tr("Command that starts this layout"));
  m_copy->setAccessibleName(tr("Copy the command"));
  m_copy->setToolTip(tr("Copy the command"));
  m_breakdown->retranslate();
  refresh();
}

void DetailsPanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QScrollArea::changeEvent(event);
}

}  // namespace headroom::ui
