// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/chat_message_view.h"

#include "ui/theme/theme.h"
#include "ui/views/card.h"

#include <QEvent>
#include <QFontDatabase>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

namespace headroom::ui {

ChatMessageView::ChatMessageView(QWidget* parent) : QFrame(parent) {
  m_who = new QLabel(this);
  m_who->setTextFormat(Qt::PlainText);
  QFont bold = m_who->font();
  bold.setWeight(QFont::DemiBold);
  m_who->setFont(bold);
  m_error = makeTextLabel(this);
  m_error->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  m_stats = makeQuietLabel(this);
  m_body = new QVBoxLayout;
  m_body->setSpacing(8);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, 10, kPadding, 10);
  layout->setSpacing(6);
  layout->addWidget(m_who);
  layout->addLayout(m_body);
  layout->addWidget(m_error);
  layout->addWidget(m_stats);
  setFocusPolicy(Qt::StrongFocus);
}

void ChatMessageView::setEntry(const ChatEntry& entry) {
  m_entry = entry;
  m_who->setText(entry.fromUser ? tr("You") : tr("Model"));
  QList<ChatPart> parts = splitCodeBlocks(entry.text);
  if (entry.state == ChatEntry::State::Streaming && parts.isEmpty()) parts.append({false, QStringLiteral("…")});
  if (entry.state != ChatEntry::State::Streaming && !entry.fromUser && parts.isEmpty() && entry.error.isEmpty())
    parts.append({false, tr("(no text)")});
  setParts(parts);
  m_error->setText(entry.error.isEmpty() ? QString() : tr("Error: %1").arg(entry.error));
  m_error->setVisible(!entry.error.isEmpty());
  const QString stats = ChatModel::statsText(entry);
  m_stats->setText(stats);
  m_stats->setVisible(!stats.isEmpty());
  setAccessibleName(entry.fromUser ? tr("Your message") : tr("Answer of the model"));
  setAccessibleDescription(entry.error.isEmpty() ? entry.text : m_error->text());
}

void ChatMessageView::setParts(const QList<ChatPart>& parts) {
  while (m_labels.size() > parts.size()) delete m_labels.takeLast();
  for (qsizetype index = 0; index < parts.size(); ++index) {
    if (index >= m_labels.size()) {
      QLabel* label = makeTextLabel(this);
      label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
      m_body->addWidget(label);
      m_labels.append(label);
    }
    const bool restyle = index >= m_parts.size() || m_parts[index].code != parts[index].code;
    QLabel* label = m_labels[index];
    if (restyle) {
      label->setFont(parts[index].code ? QFontDatabase::systemFont(QFontDatabase::FixedFont) : font());
      label->setMargin(parts[index].code ? 8 : 0);
      label->setAutoFillBackground(parts[index].code);
    }
    if (label->text() != parts[index].text) label->setText(parts[index].text);
  }
  m_parts = parts;
  colorParts();
}

void ChatMessageView::colorParts() {
  QPalette code = palette();
  code.setColor(QPalette::Window, palette().color(schemeOf(palette()) == ColorScheme::Dark ? QPalette::Base : QPalette::Window));
  for (qsizetype index = 0; index < m_labels.size(); ++index)
    if (m_parts[index].code) m_labels[index]->setPalette(code);
  QPalette problem = palette();
  problem.setColor(QPalette::WindowText, noticeAccent(NoticeKind::Problem, schemeOf(palette())));
  m_error->setPalette(problem);
}

void ChatMessageView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorScheme scheme = schemeOf(palette());
  painter.setPen(hasFocus() ? QPen(palette().color(QPalette::Highlight), 1.5) : QPen(separatorColor(palette()), 1));
  painter.setBrush(m_entry.fromUser ? noticeColor(NoticeKind::Information, scheme) : cardColor(palette()));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75), 8, 8);
}

void ChatMessageView::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && m_stats) colorParts();
  if (event->type() == QEvent::LanguageChange) setEntry(m_entry);
}

}  // namespace headroom::ui
