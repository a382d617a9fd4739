// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/charts/time_chart.h"

#include "ui/charts/chart_geometry.h"
#include "ui/charts/chart_table_dialog.h"
#include "ui/charts/engine_charts.h"
#include "ui/models/layout_text.h"
#include "ui/theme/theme.h"

#include <QAccessible>
#include <QAction>
#include <QApplication>
#include <QAreaSeries>
#include <QCategoryAxis>
#include <QChart>
#include <QChartView>
#include <QClipboard>
#include <QDateTime>
#include <QEvent>
#include <QGraphicsLayout>
#include <QGraphicsLineItem>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineSeries>
#include <QMenu>
#include <QMouseEvent>
#include <QScatterSeries>
#include <QTimer>
#include <QToolButton>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

namespace headroom::ui {

namespace {

constexpr int kRedrawMs = 66;
constexpr int kPixelsPerTimeTick = 70;
constexpr int kPixelsPerValueTick = 34;
constexpr double kHeadOfScale = 1.01;  // a line at the very top would lie on the frame
constexpr qreal kBandOpacity = 0.82;
constexpr qreal kErrorOpacity = 0.14;  // of the shade around a prediction: lines and dots must stand out from it

// The value at a time: the nearest point not further away than a sample may be late.
std::optional<double> valueAt(const std::vector<MetricPoint>& points, double time, double tolerance) {
  const MetricPoint* best = nullptr;
  for (const MetricPoint& point : points)
    if (!best || std::abs(point.time - time) < std::abs(best->time - time)) best = &point;
  return best && std::abs(best->time - time) <= tolerance ? best->value : std::nullopt;
}

std::optional<double> latest(const std::vector<MetricPoint>& points) {
  return points.empty() ? std::nullopt : points.back().value;
}

// An empty series would keep its last drawing in the library's caches: what is unused is also hidden.
template <class Series>
void fill(Series* series, const std::vector<QPointF>& points) {
  series->replace(QList<QPointF>(points.begin(), points.end()));
  series->setVisible(!points.empty());
}

// A lone point has no length; half a sample makes it visible.
void widenLonePoint(std::vector<QPointF>& points) {
  if (points.size() == 1) points.insert(points.begin(), points.front() - QPointF(0.25, 0));
}

}  // namespace

class TimeChart::Private {
 public:
  explicit Private(TimeChart& chart) : q(chart) {}

  void build();
  void retranslate();
  void schedule();
  void redraw();
  void applyTheme();
  void drawAxes();
  void drawBands();
  void drawLines();
  void updateLegend();
  void hover(const QPoint& position);
  double plotTop(bool right) const;
  double maximum(bool right) const;
  double maxGap() const;

  QLineSeries* lineFromPool(std::size_t index, bool right);
  QAreaSeries* areaFromPool(std::size_t index, bool right);
  QScatterSeries* dotsFromPool(std::size_t index);
  void attach(QAbstractSeries* series, bool right);

  TimeChart& q;
  ChartContent content;
  QString title, emptyText;
  QLabel* titleLabel = nullptr;
  QLabel* summaryLabel = nullptr;
  QLabel* legendLabel = nullptr;
  QLabel* emptyLabel = nullptr;
  QToolButton* menuButton = nullptr;
  QAction* tableAction = nullptr;
  QAction* csvAction = nullptr;
  QChart* chart = nullptr;
  QChartView* view = nullptr;
  QCategoryAxis* timeAxis = nullptr;
  QCategoryAxis* leftAxis = nullptr;
  QCategoryAxis* rightAxis = nullptr;
  QGraphicsLineItem* cursor = nullptr;
  QTimer redrawTimer;
  std::vector<QAreaSeries*> leftAreas, rightAreas;
  std::vector<QLineSeries*> leftLines, rightLines;
  std::vector<QScatterSeries*> dots;
  AxisTicks leftTicks, rightTicks;
  QString axisKey;
  QString plainLegend;
  int drawnPoints = 0;
  bool dirty = false;
};

void TimeChart::Private::build() {
  titleLabel = new QLabel(&q);
  QFont bold = titleLabel->font();
  bold.setBold(true);
  titleLabel->setFont(bold);
  summaryLabel = new QLabel(&q);
  summaryLabel->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  summaryLabel->setTextInteractionFlags(Qt::TextSelectableByMouse);
  menuButton = new QToolButton(&q);
  menuButton->setText(QStringLiteral("⋯"));
  menuButton->setAutoRaise(true);
  menuButton->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(menuButton);
  tableAction = menu->addAction(QString(), &q, &TimeChart::showTable);
  csvAction = menu->addAction(QString(), &q, &TimeChart::copyCsv);
  menuButton->setMenu(menu);
  legendLabel = new QLabel(&q);
  legendLabel->setTextFormat(Qt::RichText);
  legendLabel->setWordWrap(true);

  chart = new QChart;
  chart->legend()->hide();
  chart->setMargins(QMargins(0, 8, 18, 0));  // half a label may stand over the corner
  chart->layout()->setContentsMargins(0, 0, 0, 0);
  chart->setBackgroundVisible(false);
  chart->setPlotAreaBackgroundVisible(false);
  chart->setAnimationOptions(QChart::NoAnimation);
  for (QCategoryAxis** axis : {&timeAxis, &leftAxis, &rightAxis}) {
    *axis = new QCategoryAxis(chart);
    (*axis)->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
    (*axis)->setStartValue(0);
  }
  chart->addAxis(timeAxis, Qt::AlignBottom);
  chart->addAxis(leftAxis, Qt::AlignLeft);
  chart->addAxis(rightAxis, Qt::AlignRight);
  rightAxis->setGridLineVisible(false);
  rightAxis->setVisible(false);

  view = new QChartView(chart, &q);
  view->setFrameShape(QFrame::NoFrame);
  view->setRenderHint(QPainter::Antialiasing);
  view->setFocusPolicy(Qt::NoFocus);
  view->setMinimumHeight(120);
  view->viewport()->setMouseTracking(true);
  view->viewport()->setAutoFillBackground(false);
  view->setBackgroundBrush(Qt::NoBrush);
  view->viewport()->installEventFilter(&q);
  cursor = new QGraphicsLineItem(chart);
  cursor->setZValue(20);
  cursor->hide();
  emptyLabel = new QLabel(view->viewport());
  emptyLabel->setAlignment(Qt::AlignCenter);
  emptyLabel->setWordWrap(true);
  emptyLabel->setAttribute(Qt::WA_TransparentForMouseEvents);

  auto* header = new QHBoxLayout;
  header->addWidget(titleLabel);
  header->addWidget(summaryLabel, 1);
  header->addWidget(menuButton);
  auto* layout = new QVBoxLayout(&q);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(2);
  layout->addLayout(header);
  layout->addWidget(legendLabel);
  layout->addWidget(view, 1);

  redrawTimer.setSingleShot(true);
  redrawTimer.setInterval(kRedrawMs);
  QObject::connect(&redrawTimer, &QTimer::timeout, &q, [this] { redraw(); });
  q.setContextMenuPolicy(Qt::ActionsContextMenu);
  q.addActions({tableAction, csvAction});
  retranslate();
  applyTheme();
}

void TimeChart::Private::retranslate() {
  tableAction->setText(TimeChart::tr("Show as &table…"));
  csvAction->setText(TimeChart::tr("&Copy as CSV"));
  menuButton->setToolTip(TimeChart::tr("Show as table, copy as CSV"));
  menuButton->setAccessibleName(title.isEmpty() ? TimeChart::tr("Chart menu")
                                                : TimeChart::tr("Menu of the chart “%1”").arg(title));
  axisKey.clear();
  schedule();
}

void TimeChart::Private::schedule() {
  dirty = true;
  if (q.isVisible() && !redrawTimer.isActive()) redrawTimer.start();
}

double TimeChart::Private::maxGap() const {
  // A down-sampled line has one point a bucket: the longest pause that is no gap grows with the window.
  return std::max(kMaxSampleGapSeconds, (content.to - content.from) / 50.0);
}

double TimeChart::Private::maximum(bool right) const {
  double top = 0;
  const auto add = [&](const std::vector<MetricPoint>& points) {
    for (const MetricPoint& point : points)
      if (point.value && point.time >= content.from && point.time <= content.to) top = std::max(top, *point.value);
  };
  for (const ChartLine& line : content.lines)
    if (line.rightAxis == right) add(line.points);
  for (const ChartLevel& level : content.levels)
    if (level.rightAxis == right && level.scales) top = std::max(top, level.most());
  if (right) return top;
  for (const ChartDots& each : content.dots) add(each.points);
  if (!content.bands.empty()) {
    for (std::size_t index = 0; index < content.bands.front().points.size(); ++index) {
      double sum = 0;
      for (const ChartBand& band : content.bands) sum += band.points[index].value.value_or(0);
      top = std::max(top, sum);
    }
  }
  return top;
}

void TimeChart::Private::attach(QAbstractSeries* series, bool right) {
  chart->addSeries(series);
  series->attachAxis(timeAxis);
  series->attachAxis(right ? rightAxis : leftAxis);
}

QLineSeries* TimeChart::Private::lineFromPool(std::size_t index, bool right) {
  auto& pool = right ? rightLines : leftLines;
  while (pool.size() <= index) {
    pool.push_back(new QLineSeries(chart));
    attach(pool.back(), right);
  }
  return pool[index];
}

QAreaSeries* TimeChart::Private::areaFromPool(std::size_t index, bool right) {
  auto& areas = right ? rightAreas : leftAreas;
  while (areas.size() <= index) {
    auto* upper = new QLineSeries;
    auto* lower = new QLineSeries;
    auto* area = new QAreaSeries(upper, lower);
    upper->setParent(area);
    lower->setParent(area);
    areas.push_back(area);
    attach(area, right);
  }
  return areas[index];
}

QScatterSeries* TimeChart::Private::dotsFromPool(std::size_t index) {
  while (dots.size() <= index) {
    dots.push_back(new QScatterSeries(chart));
    attach(dots.back(), false);
  }
  return dots[index];
}

void TimeChart::Private::drawAxes() {
  const int window = std::max(1, static_cast<int>(std::lround(content.to - content.from)));
  const bool hasRight =
      std::any_of(content.lines.begin(), content.lines.end(), [](const ChartLine& line) { return line.rightAxis; });
  const int valueSteps = std::clamp(view->height() / kPixelsPerValueTick, 1, 6);
  leftTicks = axisTicks(maximum(false) * kHeadOfScale, valueSteps, content.unit);
  rightTicks = axisTicks(maximum(true) * kHeadOfScale, valueSteps, content.unit);
  const std::vector<int> times = timeTicks(window, std::max(1, view->width() / kPixelsPerTimeTick));
  const QString key = QStringLiteral("%1 %2 %3 %4 %5 %6 %7")
                          .arg(window)
                          .arg(times.size())
                          .arg(leftTicks.step)
                          .arg(leftTicks.steps)
                          .arg(rightTicks.step)
                          .arg(rightTicks.steps)
                          .arg(hasRight);
  if (key == axisKey) return;
  axisKey = key;
  const auto clear = [](QCategoryAxis* axis) {
    for (const QString& label : axis->categoriesLabels()) axis->remove(label);
  };
  clear(timeAxis);
  timeAxis->setRange(-window, 0);
  timeAxis->setStartValue(-window - 1);
  for (int ago : times) timeAxis->append(timeTickLabel(ago, window), -ago);
  const auto scale = [&](QCategoryAxis* axis, const AxisTicks& ticks) {
    clear(axis);
    axis->setRange(0, ticks.top());
    axis->setStartValue(-1);
    for (int step = 0; step <= ticks.steps; ++step)
      axis->append(tickLabel(step * ticks.step, ticks, content.unit), step * ticks.step);
  };
  scale(leftAxis, leftTicks);
  if (hasRight) scale(rightAxis, rightTicks);
  rightAxis->setVisible(hasRight);
}

void TimeChart::Private::drawBands() {
  std::size_t usedLeft = 0, usedRight = 0;
  const auto next = [&](bool right, const QString& name, const QColor& color, qreal opacity, const QPen& edge,
                        const std::vector<QPointF>& lower, const std::vector<QPointF>& upper) {
    QAreaSeries* area = areaFromPool(right ? usedRight++ : usedLeft++, right);
    area->setName(name);
    QColor fillColor = color;
    fillColor.setAlphaF(static_cast<float>(opacity));
    area->setBrush(fillColor);
    area->setPen(edge);
    fill(area->lowerSeries(), lower);
    fill(area->upperSeries(), upper);
    area->setVisible(true);
  };
  const double window = content.to - content.from;
  for (const ChartLevel& level : content.levels) {
    if (!level.error || level.value > (level.rightAxis ? rightTicks : leftTicks).top()) continue;
    next(level.rightAxis, level.name, level.color, kErrorOpacity, Qt::NoPen, {{-window, level.least()}, {0, level.least()}},
         {{-window, level.most()}, {0, level.most()}});
  }
  std::vector<double> base(content.bands.empty() ? 0 : content.bands.front().points.size(), 0.0);
  for (const ChartBand& band : content.bands) {
    // Both edges of the band, cut at the same places.
    std::vector<MetricPoint> lower, upper;
    for (std::size_t index = 0; index < band.points.size(); ++index) {
      const MetricPoint& point = band.points[index];
      lower.push_back({point.time, point.value ? std::optional(base[index]) : std::nullopt});
      if (point.value) base[index] += *point.value;
      upper.push_back({point.time, point.value ? std::optional(base[index]) : std::nullopt});
    }
    auto lowerParts = segments(lower, content.to, maxGap());
    auto upperParts = segments(upper, content.to, maxGap());
    for (std::size_t part = 0; part < upperParts.size(); ++part) {
      widenLonePoint(lowerParts[part]);
      widenLonePoint(upperParts[part]);
      next(false, band.name, band.color, kBandOpacity, QPen(band.color, 1), lowerParts[part], upperParts[part]);
      drawnPoints += static_cast<int>(upperParts[part].size());
    }
  }
  for (; usedLeft < leftAreas.size(); ++usedLeft) leftAreas[usedLeft]->setVisible(false);
  for (; usedRight < rightAreas.size(); ++usedRight) rightAreas[usedRight]->setVisible(false);
}

void TimeChart::Private::drawLines() {
  std::size_t usedLeft = 0, usedRight = 0, usedDots = 0;
  const double window = content.to - content.from;
  const auto next = [&](bool right, const QString& name, const QPen& pen, const std::vector<QPointF>& points) {
    QLineSeries* series = lineFromPool(right ? usedRight++ : usedLeft++, right);
    series->setName(name);
    series->setPen(pen);
    fill(series, points);
  };
  for (const ChartLevel& level : content.levels) {
    const AxisTicks& ticks = level.rightAxis ? rightTicks : leftTicks;
    if (level.value > ticks.top()) continue;
    QPen pen(level.color, level.dashed ? 1.5 : 1.0, level.dashed ? Qt::DashLine : Qt::SolidLine);
    next(level.rightAxis, level.name, pen, {{-window, level.value}, {0, level.value}});
  }
  for (const ChartLine& line : content.lines) {
    for (auto& part : segments(line.points, content.to, maxGap())) {
      widenLonePoint(part);
      QPen pen(line.color, 2.0, line.dashed ? Qt::DashLine : Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
      next(line.rightAxis, line.name, pen, part);
      drawnPoints += static_cast<int>(part.size());
    }
  }
  for (const ChartDots& each : content.dots) {
    std::vector<QPointF> points;
    for (const MetricPoint& point : each.points)
      if (point.value) points.emplace_back(point.time - content.to, *point.value);
    QScatterSeries* series = dotsFromPool(usedDots++);
    series->setName(each.name);
    series->setMarkerSize(7);
    series->setColor(each.color);
    series->setBorderColor(each.color);
    series->setPen(Qt::NoPen);
    fill(series, points);
    drawnPoints += static_cast<int>(points.size());
  }
  for (; usedLeft < leftLines.size(); ++usedLeft) leftLines[usedLeft]->setVisible(false);
  for (; usedRight < rightLines.size(); ++usedRight) rightLines[usedRight]->setVisible(false);
  for (; usedDots < dots.size(); ++usedDots) dots[usedDots]->setVisible(false);
}

void TimeChart::Private::updateLegend() {
  QStringList rich, plain;
  // Shape as well as colour tells the kinds apart.
  const auto add = [&](const QString& symbol, const QColor& color, const QString& name, const QString& value) {
    rich.append(
        QStringLiteral("<span style=\"white-space:nowrap\"><span style=\"color:%1\">%2</span>&nbsp;%3&nbsp;<b>%4</b></span>")
            .arg(color.name(), symbol, name.toHtmlEscaped().replace(QLatin1Char(' '), QLatin1String("&nbsp;")),
                 value.toHtmlEscaped().replace(QLatin1Char(' '), QLatin1String("&nbsp;"))));
    plain.append(QStringLiteral("%1: %2").arg(name, value));
  };
  for (const ChartBand& band : content.bands)
    add(QStringLiteral("■"), band.color, band.name, formatValue(latest(band.points), content.unit));
  for (const ChartLine& line : content.lines)
    add(line.dashed ? QStringLiteral("╌") : QStringLiteral("━"), line.color, line.name,
        formatValue(line.told ? line.told : latest(line.points), content.unit));
  for (const ChartDots& each : content.dots)
    add(QStringLiteral("●"), each.color, each.name, formatValue(latest(each.points), content.unit));
  for (const ChartLevel& level : content.levels)
    add(level.dashed ? QStringLiteral("╌╌") : QStringLiteral("─"), level.color, level.name,
        level.error ? formatValue(level.value, content.unit) + QLatin1Char(' ') + bandText(level.error)
                    : formatValue(level.value, content.unit));
  legendLabel->setText(rich.join(QStringLiteral(" &nbsp; ")));
  const QString text = plain.join(QStringLiteral("; "));
  if (text == plainLegend) return;
  plainLegend = text;
  q.setAccessibleDescription(text);
  view->setAccessibleDescription(text);
}

void TimeChart::Private::redraw() {
  if (!q.isVisible()) return;
  dirty = false;
  drawnPoints = 0;
  drawAxes();
  drawBands();
  drawLines();
  updateLegend();
  const bool empty = headroom::ui::pointCount(content) == 0;
  emptyLabel->setVisible(empty && !emptyText.isEmpty());
  if (empty) cursor->hide();
}

void TimeChart::Private::applyTheme() {
  const QPalette palette = q.palette();
  const QColor muted = mutedText(palette), line = separatorColor(palette);
  for (QCategoryAxis* axis : {timeAxis, leftAxis, rightAxis}) {
    QFont font = q.font();
    font.setPointSizeF(std::max(6.0, font.pointSizeF() * 0.85));
    axis->setLabelsFont(font);
    axis->setLabelsColor(muted);
    axis->setGridLinePen(QPen(line, 0));
    axis->setLinePen(QPen(line, 0));
  }
  cursor->setPen(QPen(muted, 0, Qt::DashLine));
  for (QLabel* label : {summaryLabel, emptyLabel}) {
    QPalette quiet = palette;
    quiet.setColor(QPalette::WindowText, muted);
    label->setPalette(quiet);
  }
  axisKey.clear();
  schedule();
}

void TimeChart::Private::hover(const QPoint& position) {
  const QPointF point = chart->mapFromScene(view->mapToScene(position));
  const QRectF plot = chart->plotArea();
  if (!plot.contains(point) || headroom::ui::pointCount(content) == 0) {
    cursor->hide();
    return;
  }
  cursor->setLine(point.x(), plot.top(), point.x(), plot.bottom());
  cursor->show();
  const double window = content.to - content.from;
  const double time = content.from + window * (point.x() - plot.left()) / plot.width();
  const double tolerance = std::max(kMaxSampleGapSeconds, window / 100.0);
  QStringList lines{QDateTime::fromMSecsSinceEpoch(std::llround(time * 1000)).time().toString(Qt::ISODate)};
  const auto add = [&](const QString& name, const std::vector<MetricPoint>& points) {
    if (const auto value = valueAt(points, time, tolerance))
      lines.append(QStringLiteral("%1: %2").arg(name, formatValue(value, content.unit)));
  };
  for (auto band = content.bands.rbegin(); band != content.bands.rend(); ++band) add(band->name, band->points);
  for (const ChartLine& line : content.lines) add(line.name, line.points);
  for (const ChartDots& each : content.dots) add(each.name, each.points);
  QToolTip::showText(view->viewport()->mapToGlobal(position + QPoint(14, 10)), lines.join(QLatin1Char('\n')), view);
}

TimeChart::TimeChart(QWidget* parent) : QWidget(parent), d(std::make_unique<Private>(*this)) { d->build(); }

// The children go first: what they emit while they go must still find the private part.
TimeChart::~TimeChart() {
  d->view->viewport()->removeEventFilter(this);  // the view's own end sends events
  qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly));
}

void TimeChart::setTitle(const QString& title) {
  d->title = title;
  d->titleLabel->setText(title);
  setAccessibleName(title);
  d->view->setAccessibleName(title);
  d->retranslate();
}

void TimeChart::setSummary(const QString& summary) {
  if (d->summaryLabel->text() != summary) d->summaryLabel->setText(summary);
}

void TimeChart::setEmptyText(const QString& text) {
  d->emptyText = text;
  d->emptyLabel->setText(text);
  d->schedule();
}

void TimeChart::setPlotHeight(int pixels) { d->view->setFixedHeight(pixels); }

void TimeChart::setContent(ChartContent content) {
  d->content = std::move(content);
  d->schedule();
}

const ChartContent& TimeChart::content() const { return d->content; }

int TimeChart::pointCount() const { return headroom::ui::pointCount(d->content); }

int TimeChart::drawnPointCount() const { return d->drawnPoints; }

QString TimeChart::legendText() const { return d->plainLegend; }

QString TimeChart::csv() const { return toCsv(tableOf(d->content)); }

void TimeChart::copyCsv() { QApplication::clipboard()->setText(csv()); }

void TimeChart::showTable() {
  auto* dialog = new ChartTableDialog(d->title, tableOf(d->content), d->content.unit, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->show();
}

void TimeChart::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) d->retranslate();
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) d->applyTheme();
}

void TimeChart::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (d->dirty) d->redrawTimer.start(0);
  d->redrawTimer.setInterval(kRedrawMs);
}

void TimeChart::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  d->schedule();
}

bool TimeChart::eventFilter(QObject* watched, QEvent* event) {
  if (watched == d->view->viewport()) {
    if (event->type() == QEvent::MouseMove) d->hover(static_cast<QMouseEvent*>(event)->pos());
    if (event->type() == QEvent::Leave) d->cursor->hide();
    if (event->type() == QEvent::Resize) d->emptyLabel->setGeometry(d->view->viewport()->rect());
    if (event->type() == QEvent::Wheel) {  // the page scrolls, not the plot
      event->ignore();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace headroom::ui
