// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/log_page.h"

#include "ui/client/engine_session.h"
#include "ui/models/log_buffer.h"
#include "ui/theme/icons.h"
#include "ui/theme/theme.h"
#include "ui/views/card.h"
#include "ui/views/engine_text.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QEvent>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QSysInfo>
#include <QTextBlock>
#include <QTimer>
#include <QVBoxLayout>

namespace headroom::ui {

namespace {

constexpr int kMostLines = 20000;
constexpr std::size_t kReportLines = 400;
constexpr int kFlushMs = 50;

QString withoutHome(QString text) {
  const QString home = QDir::homePath();
  return home.size() > 1 ? text.replace(home, QStringLiteral("~")) : text;
}

// What follows --api-key is nobody's business.
QStringList withoutSecrets(QStringList arguments) {
  for (qsizetype index = 0; index < arguments.size(); ++index) {
    if (arguments[index] == QLatin1String("--api-key") && index + 1 < arguments.size())
      arguments[index + 1] = QStringLiteral("***");
    if (arguments[index].startsWith(QLatin1String("--api-key="))) arguments[index] = QStringLiteral("--api-key=***");
  }
  return arguments;
}

}  // namespace

class LogPage::Private {
 public:
  Private(LogPage& page, EngineSession& engine) : q(page), session(engine), buffer(kMostLines) {}

  void build();
  void retranslate();
  void rebuild();
  void flush();
  void add(const QString& line);
  void insert(const LogEntry& entry);
  void updateCount();
  LogFilter filter() const { return {filterEdit->text(), static_cast<LogSeverity>(severityBox->currentIndex())}; }

  LogPage& q;
  EngineSession& session;
  LogBuffer buffer;
  std::deque<LogEntry> pending;  // arrived, not yet on the screen
  int shown = 0;
  QLineEdit* filterEdit = nullptr;
  QComboBox* severityBox = nullptr;
  QCheckBox* followBox = nullptr;
  QPushButton* copyButton = nullptr;
  QPushButton* clearButton = nullptr;
  QPlainTextEdit* view = nullptr;
  QLabel* countLabel = nullptr;
  QTimer flushTimer;
};

void LogPage::Private::build() {
  filterEdit = new QLineEdit(&q);
  filterEdit->setObjectName(QStringLiteral("logFilter"));
  filterEdit->setClearButtonEnabled(true);
  severityBox = new QComboBox(&q);
  severityBox->setObjectName(QStringLiteral("logSeverity"));
  severityBox->addItems({QString(), QString(), QString()});
  followBox = new QCheckBox(&q);
  followBox->setObjectName(QStringLiteral("logFollow"));
  followBox->setChecked(true);
  copyButton = new QPushButton(&q);
  copyButton->setIcon(themedIcon(QStringLiteral("copy")));
  clearButton = new QPushButton(&q);
  view = new QPlainTextEdit(&q);
  view->setObjectName(QStringLiteral("logText"));
  view->setReadOnly(true);
  view->setUndoRedoEnabled(false);
  view->setLineWrapMode(QPlainTextEdit::NoWrap);
  view->setMaximumBlockCount(kMostLines);
  view->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  view->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  view->setTabChangesFocus(true);
  countLabel = makeQuietLabel(&q);

  auto* tools = new QHBoxLayout;
  tools->addWidget(filterEdit, 1);
  tools->addWidget(severityBox);
  tools->addWidget(followBox);
  tools->addWidget(copyButton);
  tools->addWidget(clearButton);
  auto* layout = new QVBoxLayout(&q);
  layout->setContentsMargins(kGap, kGap, kGap, kGap);
  layout->setSpacing(kGap);
  layout->addLayout(tools);
  layout->addWidget(view, 1);
  layout->addWidget(countLabel);

  flushTimer.setSingleShot(true);
  flushTimer.setInterval(kFlushMs);
  QObject::connect(&flushTimer, &QTimer::timeout, &q, [this] { flush(); });
  QObject::connect(filterEdit, &QLineEdit::textChanged, &q, [this] { rebuild(); });
  QObject::connect(severityBox, &QComboBox::currentIndexChanged, &q, [this] { rebuild(); });
  QObject::connect(followBox, &QCheckBox::toggled, &q, [this](bool follow) {
    if (follow) view->verticalScrollBar()->setValue(view->verticalScrollBar()->maximum());
  });
  QObject::connect(copyButton, &QPushButton::clicked, &q, [this] { QApplication::clipboard()->setText(q.report()); });
  QObject::connect(clearButton, &QPushButton::clicked, &q, [this] {
    buffer.clear();
    pending.clear();
    rebuild();
  });
  QObject::connect(&session, &EngineSession::logLine, &q, [this](const QString& line) { add(line); });
  QObject::connect(&session, &EngineSession::phaseChanged, &q, [this](SessionPhase phase) {
    if (phase != SessionPhase::Starting || !session.request()) return;
    const QStringList command = QStringList{QStringLiteral("headroom-engine")} + withoutSecrets(session.request()->arguments);
    add(QStringLiteral("$ %1").arg(command.join(QLatin1Char(' '))));
  });
  QObject::connect(&session, &EngineSession::failed, &q,
                   [this](const QString& reason) { add(LogPage::tr("Error: %1").arg(reason)); });
}

void LogPage::Private::retranslate() {
  filterEdit->setPlaceholderText(LogPage::tr("Filter lines"));
  filterEdit->setAccessibleName(LogPage::tr("Filter log lines"));
  severityBox->setItemText(0, LogPage::tr("All lines"));
  severityBox->setItemText(1, LogPage::tr("Warnings and errors"));
  severityBox->setItemText(2, LogPage::tr("Errors"));
  severityBox->setAccessibleName(LogPage::tr("Least severity shown"));
  followBox->setText(LogPage::tr("&Follow"));
  followBox->setToolTip(LogPage::tr("Keep the newest line in view"));
  copyButton->setText(LogPage::tr("Copy &report"));
  copyButton->setToolTip(LogPage::tr("Copy system, command, state and the last log lines for a bug report"));
  clearButton->setText(LogPage::tr("&Clear"));
  view->setAccessibleName(LogPage::tr("Log of the engine"));
  view->setPlaceholderText(LogPage::tr("What the engine writes appears here."));
  updateCount();
}

void LogPage::Private::add(const QString& line) {
  pending.push_back(buffer.add(line));
  while (pending.size() > static_cast<std::size_t>(kMostLines)) pending.pop_front();
  if (!flushTimer.isActive()) flushTimer.start();
}

void LogPage::Private::insert(const LogEntry& entry) {
  QTextCharFormat format;
  const ColorScheme scheme = schemeOf(q.palette());
  if (entry.severity == LogSeverity::Error) format.setForeground(noticeAccent(NoticeKind::Problem, scheme));
  if (entry.severity == LogSeverity::Warning) format.setForeground(noticeAccent(NoticeKind::Warning, scheme));
  if (entry.severity == LogSeverity::Error) format.setFontWeight(QFont::Bold);
  QTextCursor cursor(view->document());
  cursor.movePosition(QTextCursor::End);
  if (shown++ > 0) cursor.insertBlock();
  cursor.insertText(entry.line, format);
}

void LogPage::Private::flush() {
  if (pending.empty()) return;
  QScrollBar* bar = view->verticalScrollBar();
  const int position = bar->value();
  const LogFilter now = filter();
  for (const LogEntry& entry : pending)
    if (now.accepts(entry)) insert(entry);
  pending.clear();
  bar->setValue(followBox->isChecked() ? bar->maximum() : position);
  updateCount();
}

void LogPage::Private::rebuild() {
  pending.clear();
  view->clear();
  shown = 0;
  const LogFilter now = filter();
  for (const LogEntry& entry : buffer.entries())
    if (now.accepts(entry)) insert(entry);
  if (followBox->isChecked()) view->verticalScrollBar()->setValue(view->verticalScrollBar()->maximum());
  updateCount();
}

void LogPage::Private::updateCount() {
  const int kept = static_cast<int>(buffer.entries().size());
  QString text = LogPage::tr("%1 of %n line(s) shown", nullptr, kept).arg(std::min(shown, kMostLines));
  if (buffer.droppedLines() > 0)
    text = LogPage::tr("%1; %n older line(s) dropped", nullptr, static_cast<int>(buffer.droppedLines())).arg(text);
  countLabel->setText(text);
}

LogPage::LogPage(EngineSession& session, QWidget* parent) : QWidget(parent), d(std::make_unique<Private>(*this, session)) {
  d->build();
  d->retranslate();
}

// The children go first: what they emit while they go must still find the private part.
LogPage::~LogPage() { qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)); }

QString LogPage::report() const {
  // The report is read by developers: it stays in English whatever the language of the window.
  QStringList lines;
  lines << QStringLiteral("Headroom %1").arg(QApplication::applicationVersion());
  lines << QStringLiteral("System: %1, kernel %2, %3")
               .arg(QSysInfo::prettyProductName(), QSysInfo::kernelVersion(), QSysInfo::currentCpuArchitecture());
  lines << QStringLiteral("Qt: %1 (%2)").arg(QString::fromLatin1(qVersion()), QApplication::platformName());
  if (const auto& request = d->session.request()) {
    lines << QStringLiteral("Model: %1").arg(request->modelName);
    lines << QStringLiteral("Layout: %1").arg(layoutText(request->tp, request->pp, request->dp));
    lines << QStringLiteral("Command: headroom-engine %1").arg(withoutSecrets(request->arguments).join(QLatin1Char(' ')));
    lines << QStringLiteral("Ran for: %1").arg(durationText(d->session.elapsedMs()));
  }
  if (const auto& state = d->session.state())
    lines << QStringLiteral("State: %1")
                 .arg(QString::fromStdString(toJson(*state).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  if (!d->session.failureReason().isEmpty()) lines << QStringLiteral("End: %1").arg(d->session.failureReason());
  const auto& entries = d->buffer.entries();
  const std::size_t first = entries.size() > kReportLines ? entries.size() - kReportLines : 0;
  lines
      << QString()
      << QStringLiteral("Log (last %1 of %2 lines):").arg(entries.size() - first).arg(entries.size() + d->buffer.droppedLines());
  for (std::size_t index = first; index < entries.size(); ++index) lines << entries[index].line;
  return withoutHome(lines.join(QLatin1Char('\n'))) + QLatin1Char('\n');
}

QString LogPage::visibleText() const { return d->view->toPlainText(); }

void LogPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) d->retranslate();
  if (event->type() == QEvent::PaletteChange) d->rebuild();
}

}  // namespace headroom::ui
