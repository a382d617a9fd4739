// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/chat_page.h"

#include "ui/client/engine_client.h"
#include "ui/client/engine_session.h"
#include "ui/models/chat_model.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"
#include "ui/views/chat_message_view.h"
#include "ui/views/engine_text.h"
#include "ui/views/message_bar.h"

#include <QDoubleSpinBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTimer>
#include <QVBoxLayout>

namespace headroom::ui {

namespace {

constexpr int kRepaintMs = 40;
constexpr int kInputLines = 3;
constexpr int kIndent = 72;
constexpr int kMostCharacters = 130;  // longer lines are hard to read
constexpr double kDefaultTemperature = 0.7;
constexpr int kDefaultMaxTokens = 512;
constexpr int kFollowMargin = 24;  // closer to the end than this many pixels counts as reading the end

}  // namespace

class ChatPage::Private {
 public:
  Private(ChatPage& page, EngineSession& engine) : q(page), session(engine) {}

  void build();
  void retranslate();
  void refresh();
  void insertRows(int first, int last);
  void repaintDirty();
  void rebuild();
  void connectStream();
  void submitInput();
  void ended();

  ChatPage& q;
  EngineSession& session;
  ChatModel model;
  QPointer<ChatStream> stream;
  QLineEdit* systemEdit = nullptr;
  QLabel* systemLabel = nullptr;
  QDoubleSpinBox* temperature = nullptr;
  QLabel* temperatureLabel = nullptr;
  QSpinBox* maxTokens = nullptr;
  QLabel* maxTokensLabel = nullptr;
  QPushButton* clearButton = nullptr;
  MessageBar* notice = nullptr;
  QScrollArea* scroll = nullptr;
  QVBoxLayout* column = nullptr;
  QLabel* emptyLabel = nullptr;
  QList<ChatMessageView*> views;
  QPlainTextEdit* input = nullptr;
  QPushButton* sendButton = nullptr;
  QPushButton* stopButton = nullptr;
  QTimer repaintTimer;
  int firstDirty = -1, lastDirty = -1;
  bool follow = true;
};

void ChatPage::Private::build() {
  systemLabel = new QLabel(&q);
  systemEdit = new QLineEdit(&q);
  systemEdit->setObjectName(QStringLiteral("systemPrompt"));
  systemLabel->setBuddy(systemEdit);
  temperatureLabel = new QLabel(&q);
  temperature = new QDoubleSpinBox(&q);
  temperature->setObjectName(QStringLiteral("temperature"));
  temperature->setRange(0, 2);
  temperature->setSingleStep(0.1);
  temperature->setDecimals(2);
  temperature->setValue(kDefaultTemperature);
  temperatureLabel->setBuddy(temperature);
  maxTokensLabel = new QLabel(&q);
  maxTokens = new QSpinBox(&q);
  maxTokens->setObjectName(QStringLiteral("maxTokens"));
  maxTokens->setRange(1, 1 << 20);
  maxTokens->setValue(kDefaultMaxTokens);
  maxTokensLabel->setBuddy(maxTokens);
  clearButton = new QPushButton(&q);

  notice = new MessageBar(NoticeKind::Information, &q);
  notice->setObjectName(QStringLiteral("chatNotice"));
  auto* content = new QWidget;
  column = new QVBoxLayout(content);
  column->setContentsMargins(0, 0, kGap, 0);
  column->setSpacing(kGap);
  emptyLabel = makeQuietLabel(content);
  emptyLabel->setAlignment(Qt::AlignCenter);
  column->addWidget(emptyLabel, 1);
  column->addStretch(1);
  scroll = new QScrollArea(&q);
  scroll->setWidget(content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);

  input = new QPlainTextEdit(&q);
  input->setObjectName(QStringLiteral("chatInput"));
  input->setTabChangesFocus(true);
  input->setFixedHeight(input->fontMetrics().lineSpacing() * kInputLines + 2 * input->frameWidth() + 12);
  input->installEventFilter(&q);
  sendButton = new QPushButton(&q);
  sendButton->setObjectName(QStringLiteral("sendButton"));
  sendButton->setDefault(true);
  stopButton = new QPushButton(&q);
  stopButton->setObjectName(QStringLiteral("stopAnswerButton"));
  stopButton->setIcon(themedIcon(QStringLiteral("stop")));

  auto* options = new QHBoxLayout;
  options->addWidget(systemLabel);
  options->addWidget(systemEdit, 1);
  options->addSpacing(kGap);
  options->addWidget(temperatureLabel);
  options->addWidget(temperature);
  options->addSpacing(kGap);
  options->addWidget(maxTokensLabel);
  options->addWidget(maxTokens);
  options->addSpacing(kGap);
  options->addWidget(clearButton);
  auto* buttons = new QVBoxLayout;
  buttons->addWidget(sendButton);
  buttons->addWidget(stopButton);
  buttons->addStretch(1);
  auto* bottom = new QHBoxLayout;
  bottom->addWidget(input, 1);
  bottom->addLayout(buttons);
  // One column in the middle of the page, no wider than can be read.
  auto* middle = new QWidget(&q);
  middle->setMaximumWidth(q.fontMetrics().averageCharWidth() * kMostCharacters);
  auto* page = new QHBoxLayout(&q);
  page->setContentsMargins(kGap, kGap, kGap, kGap);
  page->addStretch(1);
  page->addWidget(middle, 1000);
  page->addStretch(1);
  auto* layout = new QVBoxLayout(middle);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(kGap);
  layout->addLayout(options);
  layout->addWidget(scroll, 1);
  layout->addWidget(notice);
  layout->addLayout(bottom);

  repaintTimer.setSingleShot(true);
  repaintTimer.setInterval(kRepaintMs);
  QObject::connect(&repaintTimer, &QTimer::timeout, &q, [this] { repaintDirty(); });
  QObject::connect(sendButton, &QPushButton::clicked, &q, [this] { submitInput(); });
  QObject::connect(stopButton, &QPushButton::clicked, &q, &ChatPage::stopAnswer);
  QObject::connect(clearButton, &QPushButton::clicked, &q, &ChatPage::clearConversation);
  QObject::connect(input, &QPlainTextEdit::textChanged, &q, [this] { refresh(); });
  QObject::connect(&session, &EngineSession::phaseChanged, &q, [this] { refresh(); });
  QObject::connect(&session, &EngineSession::failed, &q, [this] { refresh(); });
  QObject::connect(&model, &ChatModel::rowsInserted, &q,
                   [this](const QModelIndex&, int first, int last) { insertRows(first, last); });
  QObject::connect(&model, &ChatModel::modelReset, &q, [this] { rebuild(); });
  QObject::connect(&model, &ChatModel::dataChanged, &q, [this](const QModelIndex& first, const QModelIndex& last) {
    firstDirty = firstDirty < 0 ? first.row() : std::min(firstDirty, first.row());
    lastDirty = std::max(lastDirty, last.row());
    if (!repaintTimer.isActive()) repaintTimer.start();
  });
  QScrollBar* bar = scroll->verticalScrollBar();
  QObject::connect(bar, &QScrollBar::rangeChanged, &q, [this, bar] {
    if (follow) bar->setValue(bar->maximum());
  });
  QObject::connect(bar, &QScrollBar::valueChanged, &q,
                   [this, bar](int value) { follow = value >= bar->maximum() - kFollowMargin; });
}

void ChatPage::Private::retranslate() {
  systemLabel->setText(ChatPage::tr("S&ystem prompt"));
  systemEdit->setPlaceholderText(ChatPage::tr("None: the model's own default"));
  systemEdit->setAccessibleName(ChatPage::tr("System prompt"));
  temperatureLabel->setText(ChatPage::tr("Te&mperature"));
  temperature->setAccessibleName(ChatPage::tr("Temperature"));
  temperature->setToolTip(ChatPage::tr("0 always takes the likeliest token; higher values vary more"));
  maxTokensLabel->setText(ChatPage::tr("Ma&x. tokens"));
  maxTokens->setAccessibleName(ChatPage::tr("Most tokens of an answer"));
  clearButton->setText(ChatPage::tr("C&lear"));
  clearButton->setToolTip(ChatPage::tr("Forget the conversation"));
  scroll->setAccessibleName(ChatPage::tr("Conversation"));
  emptyLabel->setText(
      ChatPage::tr("Ask the model something. Each answer shows its tokens, its speed and its time to first token."));
  input->setPlaceholderText(ChatPage::tr("Message (Enter sends, Shift+Enter starts a new line)"));
  input->setAccessibleName(ChatPage::tr("Message to the model"));
  sendButton->setText(ChatPage::tr("Se&nd"));
  stopButton->setText(ChatPage::tr("St&op answer"));
  model.retranslate();
  refresh();
}

void ChatPage::Private::refresh() {
  const bool answering = model.isAnswering();
  const QString reason = notReadyText(session);
  notice->setText(reason);
  input->setEnabled(reason.isEmpty());
  sendButton->setEnabled(reason.isEmpty() && !answering && !input->toPlainText().trimmed().isEmpty());
  stopButton->setEnabled(answering);
  clearButton->setEnabled(model.rowCount() > 0);
  emptyLabel->setVisible(model.rowCount() == 0);
}

void ChatPage::Private::insertRows(int first, int last) {
  for (int row = first; row <= last; ++row) {
    auto* view = new ChatMessageView;
    view->setEntry(model.entry(row));
    auto* line = new QWidget;
    auto* layout = new QHBoxLayout(line);
    // Questions stand to the right of answers, as people expect of a conversation.
    layout->setContentsMargins(model.entry(row).fromUser ? kIndent : 0, 0, model.entry(row).fromUser ? 0 : kIndent, 0);
    layout->addWidget(view);
    views.insert(row, view);
    column->insertWidget(column->count() - 1, line);
  }
  follow = true;
  refresh();
}

void ChatPage::Private::repaintDirty() {
  for (int row = std::max(firstDirty, 0); row <= lastDirty && row < views.size(); ++row) views[row]->setEntry(model.entry(row));
  firstDirty = lastDirty = -1;
}

void ChatPage::Private::rebuild() {
  for (ChatMessageView* view : std::as_const(views)) delete view->parentWidget();
  views.clear();
  firstDirty = lastDirty = -1;
  if (model.rowCount() > 0) insertRows(0, model.rowCount() - 1);
  refresh();
}

void ChatPage::Private::submitInput() {
  if (!sendButton->isEnabled()) return;
  const QString text = input->toPlainText().trimmed();
  input->clear();
  q.sendMessage(text);
}

void ChatPage::Private::connectStream() {
  QObject::connect(stream, &ChatStream::textReceived, &q, [this](const QString& text) { model.appendToAnswer(text); });
  QObject::connect(stream, &ChatStream::finished, &q, [this](const ChatStats& stats) {
    model.finishAnswer(stats);
    ended();
  });
  QObject::connect(stream, &ChatStream::cancelled, &q, [this](const ChatStats& stats) {
    model.stopAnswer(stats);
    ended();
  });
  QObject::connect(stream, &ChatStream::failed, &q, [this](const QString& reason, const ChatStats& stats) {
    model.failAnswer(reason, stats);
    ended();
  });
}

void ChatPage::Private::ended() {
  stream.clear();
  repaintDirty();
  refresh();
  emit q.answerFinished();
}

ChatPage::ChatPage(EngineSession& session, QWidget* parent) : QWidget(parent), d(std::make_unique<Private>(*this, session)) {
  d->build();
  d->retranslate();
}

ChatPage::~ChatPage() {
  if (d->stream) {
    d->stream->disconnect(this);
    d->stream->cancel();
  }
  // The children go first: what they emit while they go must still find the private part.
  qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly));
}

ChatModel& ChatPage::model() { return d->model; }

bool ChatPage::isAnswering() const { return d->model.isAnswering(); }

void ChatPage::sendMessage(const QString& text) {
  if (text.trimmed().isEmpty() || isAnswering() || !d->session.isReady()) return;
  d->model.addQuestion(text);
  ChatRequest request;
  if (d->session.state()) request.model = QString::fromStdString(d->session.state()->model);
  request.messages = d->model.messages(d->systemEdit->text());
  request.temperature = d->temperature->value();
  request.maxTokens = d->maxTokens->value();
  d->model.beginAnswer();
  d->stream = d->session.client().startChat(request);
  d->connectStream();
  d->refresh();
}

void ChatPage::stopAnswer() {
  if (d->stream) d->stream->cancel();
}

void ChatPage::clearConversation() {
  stopAnswer();
  d->model.clear();
}

void ChatPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) d->retranslate();
}

bool ChatPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == d->input && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (enter && !(key->modifiers() & Qt::ShiftModifier)) {
      d->submitInput();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace headroom::ui
