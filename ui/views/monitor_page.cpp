// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/monitor_page.h"

#include "ui/charts/engine_charts.h"
#include "ui/charts/time_chart.h"
#include "ui/client/engine_session.h"
#include "ui/client/gpu_watch.h"
#include "ui/models/core_text.h"
#include "ui/models/engine_history.h"
#include "ui/models/gpu_list_model.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"
#include "ui/views/engine_text.h"
#include "ui/views/message_bar.h"

#include <QComboBox>
#include <QDateTime>
#include <QElapsedTimer>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>
#include <array>

namespace headroom::ui {

namespace {

constexpr std::array kWindows{60, 300, 900, 3600};
constexpr int kScrollTickMs = 500;
constexpr int kCoalesceMs = 100;
constexpr int kMemoryPlotHeight = 140;
constexpr int kMostGpuRows = 8;

double wallClock() { return static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1000.0; }

// A name above a value.
struct Figure {
  QLabel* name = nullptr;
  QLabel* value = nullptr;
  void set(const QString& text) {
    if (value->text() == text) return;
    value->setText(text);
    value->setAccessibleName(QStringLiteral("%1: %2").arg(name->text(), text));
  }
};

}  // namespace

class MonitorPage::Private {
 public:
  enum FigureIndex { State, Layout, Running, Waiting, Generated, TtftMedian, TtftHigh, KvUsed, FigureCount };

  Private(MonitorPage& page, EngineSession& engine, AppSettings& appSettings) : q(page), session(engine), settings(appSettings) {}

  void build();
  Card* buildFigures();
  void retranslate();
  void schedule();
  void refresh();
  void refreshFigures(const ChartWindow& window);
  void rebuildMemoryCharts();
  void refreshContents(const ChartWindow& window);
  void refreshMemoryTexts();
  void phaseChanged(SessionPhase phase);
  ChartWindow window() const;

  MonitorPage& q;
  EngineSession& session;
  AppSettings& settings;
  EngineHistory history;
  QString launchKey;
  QElapsedTimer sinceSample;
  std::array<Figure, FigureCount> figures;
  QComboBox* windowBox = nullptr;
  QLabel* windowLabel = nullptr;
  MessageBar* hint = nullptr;
  QLabel* memoryTitle = nullptr;
  QScrollArea* memoryScroll = nullptr;
  QVBoxLayout* memoryColumn = nullptr;
  std::vector<TimeChart*> memoryCharts;
  QLabel* memoryEmpty = nullptr;
  TimeChart* throughput = nullptr;
  TimeChart* ttft = nullptr;
  QTimer coalesce, tick;
  GpuWatch watch;
  GpuListModel gpus;
  Card* gpuCard = nullptr;
  QLabel* gpuTitle = nullptr;
  QLabel* gpuReason = nullptr;
  QTableView* gpuTable = nullptr;
  void buildGpus();
  void refreshGpus();
};

void MonitorPage::Private::buildGpus() {
  gpuCard = new Card(&q);
  auto* layout = new QVBoxLayout(gpuCard);
  layout->setContentsMargins(kPadding, 8, kPadding, 8);
  layout->setSpacing(4);
  auto* row = new QHBoxLayout;
  gpuTitle = makeTitle(gpuCard);
  gpuReason = makeQuietLabel(gpuCard);
  gpuReason->setObjectName(QStringLiteral("gpuReason"));
  row->addWidget(gpuTitle);
  row->addWidget(gpuReason, 1);
  layout->addLayout(row);
  gpuTable = new QTableView(gpuCard);
  gpuTable->setObjectName(QStringLiteral("gpuTable"));
  gpuTable->setModel(&gpus);
  gpuTable->setFrameShape(QFrame::NoFrame);
  gpuTable->setShowGrid(false);
  gpuTable->setTabKeyNavigation(false);
  gpuTable->setEditTriggers(QAbstractItemView::NoEditTriggers);
  gpuTable->setSelectionBehavior(QAbstractItemView::SelectRows);
  gpuTable->verticalHeader()->hide();
  gpuTable->verticalHeader()->setDefaultSectionSize(q.fontMetrics().height() * 3 / 2);
  gpuTable->horizontalHeader()->setStretchLastSection(true);
  gpuTable->viewport()->setAutoFillBackground(false);
  layout->addWidget(gpuTable);
  QObject::connect(&watch, &GpuWatch::changed, &q, [this] { refreshGpus(); });
}

void MonitorPage::Private::refreshGpus() {
  const bool sized = gpus.rowCount() == static_cast<int>(watch.readings().size());
  gpus.setReadings(watch.readings());
  gpuTable->setVisible(gpus.rowCount() > 0);
  gpuReason->setText(coreText(watch.reason().toStdString()));
  gpuCard->setVisible(gpus.rowCount() > 0 || !watch.reason().isEmpty());
  if (sized || gpus.rowCount() == 0) return;
  gpuTable->resizeColumnsToContents();
  gpuTable->setFixedHeight(gpuTable->horizontalHeader()->sizeHint().height() +
                           std::min(gpus.rowCount(), kMostGpuRows) * gpuTable->verticalHeader()->defaultSectionSize() + 4);
}

Card* MonitorPage::Private::buildFigures() {
  auto* card = new Card(&q);
  auto* row = new QHBoxLayout(card);
  row->setContentsMargins(kPadding, 8, kPadding, 8);
  row->setSpacing(kGap * 2);
  for (Figure& figure : figures) {
    figure.name = makeQuietLabel(card);
    figure.name->setWordWrap(false);
    figure.value = makeTitle(card, 1.25);
    figure.value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* column = new QVBoxLayout;
    column->setSpacing(1);
    column->addWidget(figure.name);
    column->addWidget(figure.value);
    row->addLayout(column);
  }
  row->addStretch(1);
  auto* column = new QVBoxLayout;
  column->setSpacing(1);
  windowLabel = makeQuietLabel(card);
  windowLabel->setWordWrap(false);
  windowBox = new QComboBox(card);
  windowBox->setObjectName(QStringLiteral("chartWindow"));
  for (int seconds : kWindows) windowBox->addItem(QString(), seconds);
  windowLabel->setBuddy(windowBox);
  column->addWidget(windowLabel);
  column->addWidget(windowBox);
  row->addLayout(column);
  return card;
}

void MonitorPage::Private::build() {
  Card* header = buildFigures();
  hint = new MessageBar(NoticeKind::Information, &q);
  hint->setObjectName(QStringLiteral("monitorHint"));

  auto* memoryCard = new Card(&q);
  auto* memoryContent = new QWidget;
  memoryColumn = new QVBoxLayout(memoryContent);
  memoryColumn->setContentsMargins(0, 0, kGap, 0);
  memoryColumn->setSpacing(kGap * 2);
  memoryColumn->addStretch(1);
  memoryScroll = new QScrollArea(memoryCard);
  memoryScroll->setObjectName(QStringLiteral("memoryScroll"));
  memoryScroll->setWidget(memoryContent);
  memoryScroll->setWidgetResizable(true);
  memoryScroll->setFrameShape(QFrame::NoFrame);
  memoryScroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  memoryScroll->viewport()->setAutoFillBackground(false);
  memoryContent->setAutoFillBackground(false);
  memoryTitle = makeTitle(memoryCard);
  memoryEmpty = makeQuietLabel(memoryCard);
  memoryEmpty->setAlignment(Qt::AlignCenter);
  auto* memoryLayout = new QVBoxLayout(memoryCard);
  memoryLayout->setContentsMargins(kPadding, kPadding, kGap / 2, kPadding);
  memoryLayout->addWidget(memoryTitle);
  memoryLayout->addWidget(memoryEmpty, 1);
  memoryLayout->addWidget(memoryScroll, 1);

  auto* right = new QWidget(&q);
  auto* rightLayout = new QVBoxLayout(right);
  rightLayout->setContentsMargins(0, 0, 0, 0);
  rightLayout->setSpacing(kGap);
  for (TimeChart** chart : {&throughput, &ttft}) {
    auto* card = new Card(right);
    *chart = new TimeChart(card);
    auto* layout = new QVBoxLayout(card);
    layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
    layout->addWidget(*chart);
    rightLayout->addWidget(card, 1);
  }
  throughput->setObjectName(QStringLiteral("throughputChart"));
  ttft->setObjectName(QStringLiteral("ttftChart"));

  auto* splitter = new QSplitter(Qt::Horizontal, &q);
  splitter->setChildrenCollapsible(false);
  splitter->setHandleWidth(kGap);
  splitter->addWidget(memoryCard);
  splitter->addWidget(right);
  splitter->setSizes({500, 500});
  auto* layout = new QVBoxLayout(&q);
  layout->setContentsMargins(kGap, kGap, kGap, kGap);
  layout->setSpacing(kGap);
  layout->addWidget(header);
  layout->addWidget(hint);
  buildGpus();
  layout->addWidget(gpuCard);
  layout->addWidget(splitter, 1);

  coalesce.setSingleShot(true);
  coalesce.setInterval(kCoalesceMs);
  tick.setInterval(kScrollTickMs);
  QObject::connect(&coalesce, &QTimer::timeout, &q, [this] { refresh(); });
  QObject::connect(&tick, &QTimer::timeout, &q, [this] { schedule(); });
  QObject::connect(windowBox, &QComboBox::activated, &q, [this] { q.setWindowSeconds(windowBox->currentData().toInt()); });
  QObject::connect(&settings, &AppSettings::chartWindowChanged, &q, [this](int seconds) { q.setWindowSeconds(seconds); });
  QObject::connect(&session, &EngineSession::phaseChanged, &q, [this](SessionPhase phase) { phaseChanged(phase); });
  QObject::connect(&session, &EngineSession::failed, &q, [this] { schedule(); });
  QObject::connect(&session, &EngineSession::stateUpdated, &q, [this](const EngineState& state) {
    history.applyState(state);
    schedule();
  });
  QObject::connect(&session, &EngineSession::metricsUpdated, &q, [this](const MetricsSample& sample) {
    history.addSample(sample);
    sinceSample.start();
    schedule();
  });
  windowBox->setCurrentIndex(std::max(0, windowBox->findData(settings.chartWindowSeconds())));
  if (session.state() && session.isRunning()) history.applyState(*session.state());
}

void MonitorPage::Private::phaseChanged(SessionPhase phase) {
  if (phase == SessionPhase::Starting && session.request()) {
    // A restart continues the picture, another model or layout starts a new one.
    const QString key = session.request()->arguments.join(QLatin1Char('\n'));
    if (key != launchKey) history.clear();
    launchKey = key;
    history.addGap(wallClock());
    tick.start();
  }
  if (phase == SessionPhase::Idle || phase == SessionPhase::Failed) {
    history.addGap(wallClock());
    tick.stop();
  }
  schedule();
}

void MonitorPage::Private::retranslate() {
  const std::array<QString, FigureCount> names{
      MonitorPage::tr("State"),    MonitorPage::tr("Layout"),   MonitorPage::tr("Running"),  MonitorPage::tr("Waiting"),
      MonitorPage::tr("Tokens/s"), MonitorPage::tr("TTFT p50"), MonitorPage::tr("TTFT p95"), MonitorPage::tr("KV cache")};
  for (std::size_t index = 0; index < figures.size(); ++index) figures[index].name->setText(names[index]);
  figures[Running].value->setToolTip(MonitorPage::tr("Requests that are being answered"));
  figures[Waiting].value->setToolTip(MonitorPage::tr("Requests that wait for room"));
  figures[Generated].value->setToolTip(MonitorPage::tr("Tokens generated per second, all requests together"));
  figures[TtftMedian].value->setToolTip(MonitorPage::tr("Time to first token: half of the requests in the window were faster"));
  figures[TtftHigh].value->setToolTip(MonitorPage::tr("Time to first token: 95 % of the requests in the window were faster"));
  figures[KvUsed].value->setToolTip(MonitorPage::tr("Share of the KV cache's blocks in use"));
  windowLabel->setText(MonitorPage::tr("&Window"));
  windowBox->setAccessibleName(MonitorPage::tr("Time window of the charts"));
  for (int index = 0; index < windowBox->count(); ++index)
    windowBox->setItemText(index, MonitorPage::tr("%n minute(s)", nullptr, windowBox->itemData(index).toInt() / 60));
  memoryTitle->setText(MonitorPage::tr("Memory by device"));
  memoryEmpty->setText(
      MonitorPage::tr("Each device of a running engine gets a chart here: weights, KV cache and activations against the plan."));
  throughput->setTitle(MonitorPage::tr("Tokens per second"));
  throughput->setEmptyText(MonitorPage::tr("No measurement in this window"));
  ttft->setTitle(MonitorPage::tr("Time to first token"));
  ttft->setEmptyText(MonitorPage::tr("No request in this window"));
  gpuTitle->setText(MonitorPage::tr("GPUs of this machine"));
  gpuTable->setAccessibleName(MonitorPage::tr("GPUs of this machine"));
  gpus.retranslate();
  refreshGpus();
  refresh();
}

void MonitorPage::Private::schedule() {
  if (q.isVisible() && !coalesce.isActive()) coalesce.start();
}

ChartWindow MonitorPage::Private::window() const {
  ChartWindow window;
  double now = wallClock();
  if (const auto last = history.lastTime()) {
    // The engine's clock, carried on while it runs: when samples stay away, the lines stop and time goes on.
    now = *last + (sinceSample.isValid() && session.isRunning() ? static_cast<double>(sinceSample.elapsed()) / 1000.0 : 0.0);
  } else if (!session.isRunning() && !history.throughput().empty()) {
    now = history.throughput().back().time;
  }
  window.to = now;
  window.from = now - q.windowSeconds();
  return window;
}

void MonitorPage::Private::refresh() {
  const ChartWindow now = window();
  refreshFigures(now);
  refreshContents(now);
  const SessionPhase phase = session.phase();
  if (phase == SessionPhase::Failed)
    hint->setText(MonitorPage::tr("The engine ended unasked. The charts show its last figures."));
  else if (!session.isRunning())
    hint->setText(history.throughput().empty()
                      ? MonitorPage::tr("No engine is running. Choose a layout and start it; its figures appear here.")
                      : MonitorPage::tr("The engine was stopped. The charts show its last figures."));
  else
    hint->setText(session.connectionProblem());
}

void MonitorPage::Private::refreshFigures(const ChartWindow& now) {
  const bool running = session.isRunning();
  const auto& sample = history.lastSample();
  const auto& state = session.state();
  figures[State].set(phaseText(session.phase()));
  figures[Layout].set(running && state ? layoutText(state->tp, state->pp, state->dp) : kUnknown);
  const auto count = [&](std::optional<int64_t> number) { return running ? formatCount(number) : kUnknown; };
  figures[Running].set(count(sample ? std::optional(sample->requestsRunning) : std::nullopt));
  figures[Waiting].set(count(sample ? std::optional(sample->requestsWaiting) : std::nullopt));
  figures[Generated].set(running && sample ? formatDecimal(sample->generatedTokensPerSecond) : kUnknown);
  figures[TtftMedian].set(formatValue(ttftPercentile(history, now, 0.50), ValueUnit::Milliseconds));
  figures[TtftHigh].set(formatValue(ttftPercentile(history, now, 0.95), ValueUnit::Milliseconds));
  QString used = kUnknown;
  if (running && sample && sample->kvBlocksTotal > 0) {
    const double share = 1.0 - static_cast<double>(sample->kvBlocksFree) / static_cast<double>(sample->kvBlocksTotal);
    used = MonitorPage::tr("%1 %").arg(formatDecimal(share * 100.0));
  }
  figures[KvUsed].set(used);
}

void MonitorPage::Private::rebuildMemoryCharts() {
  const std::size_t devices = history.devices().size();
  memoryEmpty->setVisible(devices == 0);
  memoryScroll->setVisible(devices > 0);
  if (memoryCharts.size() == devices) return;
  while (memoryCharts.size() > devices) {
    delete memoryCharts.back();
    memoryCharts.pop_back();
  }
  while (memoryCharts.size() < devices) {
    auto* chart = new TimeChart(memoryScroll->widget());
    chart->setObjectName(QStringLiteral("memoryChart%1").arg(memoryCharts.size()));
    chart->setPlotHeight(kMemoryPlotHeight);
    memoryColumn->insertWidget(memoryColumn->count() - 1, chart);
    memoryCharts.push_back(chart);
  }
}

void MonitorPage::Private::refreshMemoryTexts() {
  for (std::size_t index = 0; index < memoryCharts.size(); ++index) {
    const DeviceHistory& device = history.devices()[index];
    const RankState& rank = device.ranks.front();
    const QString name = device.device.empty() ? kUnknown : QString::fromStdString(device.device);
    QString title;
    if (device.ranks.size() > 1)
      title = MonitorPage::tr("%1 · %n rank(s)", nullptr, static_cast<int>(device.ranks.size())).arg(name);
    else if (rank.layers.empty())
      title = MonitorPage::tr("%1 · rank %2").arg(name, QString::number(rank.rank));
    else
      title =
          MonitorPage::tr("%1 · rank %2 · layers %3–%4")
              .arg(name, QString::number(rank.rank), QString::number(rank.layers.begin), QString::number(rank.layers.end - 1));
    if (memoryCharts[index]->accessibleName() != title) memoryCharts[index]->setTitle(title);
    const auto bytes = [](std::optional<double> value) { return formatValue(value, ValueUnit::Bytes); };
    memoryCharts[index]->setSummary(
        device.totalBytes ? MonitorPage::tr("%1 of %2").arg(bytes(device.allocatedBytes()), bytes(device.totalBytes))
                          : bytes(device.allocatedBytes()));
    memoryCharts[index]->setEmptyText(MonitorPage::tr("No measurement in this window"));
  }
}

void MonitorPage::Private::refreshContents(const ChartWindow& now) {
  rebuildMemoryCharts();
  refreshMemoryTexts();
  const ColorScheme scheme = schemeOf(q.palette());
  for (std::size_t index = 0; index < memoryCharts.size(); ++index)
    memoryCharts[index]->setContent(memoryContent(history.devices()[index], now, scheme));
  std::optional<PredictedFigure> generated, prompt, first;
  if (const auto& request = session.request()) {
    generated = request->predictedTokensPerSecond;
    prompt = request->predictedPromptTokensPerSecond;
    first = request->predictedTtftMs;
  }
  throughput->setContent(throughputContent(history, now, scheme, generated, prompt));
  ttft->setContent(ttftContent(history, now, scheme, first));
}

MonitorPage::MonitorPage(EngineSession& session, AppSettings& settings, QWidget* parent)
    : QWidget(parent), d(std::make_unique<Private>(*this, session, settings)) {
  d->build();
  d->retranslate();
}

// The children go first: what they emit while they go must still find the private part.
MonitorPage::~MonitorPage() { qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)); }

int MonitorPage::windowSeconds() const { return d->windowBox->currentData().toInt(); }

void MonitorPage::setWindowSeconds(int seconds) {
  const int index = d->windowBox->findData(seconds);
  if (index < 0) return;
  d->windowBox->setCurrentIndex(index);
  if (d->settings.chartWindowSeconds() != seconds) d->settings.setChartWindowSeconds(seconds);
  d->refresh();
}

int MonitorPage::memoryPointCount() const {
  d->refreshContents(d->window());
  int count = 0;
  for (const TimeChart* chart : d->memoryCharts) count += chart->pointCount();
  return count;
}

int MonitorPage::throughputPointCount() const {
  d->refreshContents(d->window());
  return d->throughput->pointCount();
}

int MonitorPage::ttftPointCount() const {
  d->refreshContents(d->window());
  return d->ttft->pointCount();
}

void MonitorPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) d->retranslate();
  if (event->type() == QEvent::PaletteChange) d->refresh();  // nothing else comes when no engine runs
}

void MonitorPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  d->watch.start();
  d->refresh();
}

void MonitorPage::hideEvent(QHideEvent* event) {
  d->watch.stop();
  QWidget::hideEvent(event);
}

GpuWatch& MonitorPage::gpuWatch() { return d->watch; }

}  // namespace headroom::ui
