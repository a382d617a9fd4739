// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/notice_area.h"

#include "ui/theme/icons.h"
#include "ui/views/card.h"

#include <QAccessible>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

namespace headroom::ui {

class NoticeArea::Notice : public QFrame {
 public:
  Notice(const QString& topic, NoticeArea* parent) : QFrame(parent), m_topic(topic) {
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(kPadding, 6, 6, 6);
    m_text = makeTextLabel(this);
    m_close = new QToolButton(this);
    m_close->setAutoRaise(true);
    m_close->setIcon(themedIcon(QStringLiteral("close")));
    layout->addWidget(m_text, 1);
    layout->addWidget(m_close, 0, Qt::AlignTop);
    // The button lives in the notice, which goes when its click is done.
    connect(
        m_close, &QToolButton::clicked, parent, [this, parent] { parent->clear(m_topic); }, Qt::QueuedConnection);
    retranslate();
  }

  void retranslate() {
    m_close->setAccessibleName(NoticeArea::tr("Dismiss this message"));
    m_close->setToolTip(NoticeArea::tr("Dismiss"));
  }

  void set(NoticeKind kind, const QString& text) {
    m_kind = kind;
    m_text->setText(text);
    setAccessibleName(text);
    update();
    QAccessibleEvent event(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&event);
  }

  QString topic() const { return m_topic; }
  QString text() const { return m_text->text(); }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const ColorScheme scheme = schemeOf(palette());
    painter.setPen(Qt::NoPen);
    painter.setBrush(noticeColor(m_kind, scheme));
    painter.drawRoundedRect(rect(), 6, 6);
    painter.setBrush(noticeAccent(m_kind, scheme));
    painter.drawRoundedRect(QRect(0, 0, 4, height()), 2, 2);
  }

 private:
  QString m_topic;
  NoticeKind m_kind = NoticeKind::Problem;
  QLabel* m_text;
  QToolButton* m_close;
};

NoticeArea::NoticeArea(QWidget* parent) : QWidget(parent), m_layout(new QVBoxLayout(this)) {
  m_layout->setContentsMargins(0, 0, 0, 0);
  m_layout->setSpacing(6);
  updateVisibility();
}

// An empty area takes no room, not even its distance to its neighbours.
void NoticeArea::updateVisibility() { setVisible(m_layout->count() > 0); }

NoticeArea::Notice* NoticeArea::find(const QString& topic) const {
  for (int i = 0; i < m_layout->count(); ++i)
    if (auto* notice = static_cast<Notice*>(m_layout->itemAt(i)->widget()); notice && notice->topic() == topic) return notice;
  return nullptr;
}

void NoticeArea::show(const QString& topic, NoticeKind kind, const QString& text) {
  Notice* notice = find(topic);
  if (!notice) {
    notice = new Notice(topic, this);
    m_layout->addWidget(notice);
  }
  notice->set(kind, text);
  notice->setVisible(true);
  updateVisibility();
}

void NoticeArea::clear(const QString& topic) {
  if (Notice* notice = find(topic)) {
    m_layout->removeWidget(notice);
    notice->hide();
    notice->deleteLater();
    updateVisibility();
  }
}

QString NoticeArea::text(const QString& topic) const {
  const Notice* notice = find(topic);
  return notice ? notice->text() : QString();
}

void NoticeArea::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange)
    for (int i = 0; i < m_layout->count(); ++i) static_cast<Notice*>(m_layout->itemAt(i)->widget())->retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
