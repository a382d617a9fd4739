// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/layout_grid_view.h"

#include "ui/models/layout_grid_model.h"
#include "ui/theme/flat_style.h"
#include "ui/theme/headroom_color.h"
#include "ui/views/layout_cell_delegate.h"

#include <QEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>

namespace headroom::ui {

LayoutGridView::LayoutGridView(LayoutGridModel& model, QWidget* parent)
    : QTableView(parent), m_model(model), m_delegate(new LayoutCellDelegate(this)) {
  setObjectName(QStringLiteral("layoutGrid"));
  setModel(&model);
  setItemDelegate(m_delegate);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setSelectionBehavior(QAbstractItemView::SelectItems);
  setShowGrid(false);
  setProperty(kOwnSelection, true);
  setFrameShape(QFrame::NoFrame);
  setCornerButtonEnabled(false);
  setTabKeyNavigation(false);  // Tab leaves the grid
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  viewport()->setAutoFillBackground(false);
  for (QHeaderView* header : {horizontalHeader(), verticalHeader()}) {
    header->setSectionsClickable(false);
    header->setHighlightSections(false);
    header->setSectionResizeMode(QHeaderView::Stretch);
    header->setDefaultAlignment(Qt::AlignCenter);
  }
  horizontalHeader()->setObjectName(QStringLiteral("gridColumns"));
  updateCellSize();
  connect(this, &QTableView::doubleClicked, this, &LayoutGridView::layoutActivated);
}

void LayoutGridView::setFaded(bool faded) {
  m_delegate->setFaded(faded);
  viewport()->update();
}

void LayoutGridView::setEmptyText(const QString& text) {
  m_emptyText = text;
  viewport()->update();
}

void LayoutGridView::updateCellSize() {
  QStyleOptionViewItem option;
  initViewItemOption(&option);
  option.font = font();
  option.fontMetrics = fontMetrics();
  const QSize cell = m_delegate->sizeHint(option, {});
  horizontalHeader()->setMinimumSectionSize(cell.width());
  horizontalHeader()->setMaximumSectionSize(cell.width() * 2);
  verticalHeader()->setMinimumSectionSize(cell.height());
  verticalHeader()->setMaximumSectionSize(cell.height() * 3 / 2);
}

void LayoutGridView::changeEvent(QEvent* event) {
  QTableView::changeEvent(event);
  if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) updateCellSize();
}

void LayoutGridView::keyPressEvent(QKeyEvent* event) {
  if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && currentIndex().isValid()) {
    selectionModel()->select(currentIndex(), QItemSelectionModel::ClearAndSelect);
    emit layoutActivated(currentIndex());
    return;
  }
  QTableView::keyPressEvent(event);
}

// The chosen layout stays in sight when room is lost.
void LayoutGridView::resizeEvent(QResizeEvent* event) {
  const bool wasSeen = QRect(QPoint(), event->oldSize()).contains(visualRect(currentIndex()));
  QTableView::resizeEvent(event);
  if (wasSeen && currentIndex().isValid())
    QMetaObject::invokeMethod(
        this, [this] { scrollTo(currentIndex()); }, Qt::QueuedConnection);
}

void LayoutGridView::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
  QTableView::currentChanged(current, previous);
  emit layoutSelected(current);
  // Once more when scroll bars have come: they take room from the last cells.
  QMetaObject::invokeMethod(
      this, [this] { scrollTo(currentIndex()); }, Qt::QueuedConnection);
}

void LayoutGridView::paintEvent(QPaintEvent* event) {
  QTableView::paintEvent(event);
  if (m_model.rowCount() > 0 || m_emptyText.isEmpty()) return;
  QPainter painter(viewport());
  painter.setPen(mutedText(palette()));
  painter.drawText(viewport()->rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap, m_emptyText);
}

GridLegend::GridLegend(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  retranslate();
}

void GridLegend::retranslate() {
  setAccessibleName(tr("Legend"));
  setAccessibleDescription(
      tr("Blue: memory is left. Neutral: tight. Orange: memory is missing. Hatched: the engine refuses the layout. Star: "
         "recommended."));
  updateGeometry();
  update();
}

int GridLegend::place(int width, QPainter* painter) const {
  struct Entry {
    QString text;
    Verdict verdict;
    bool star;
  };
  const Entry entries[] = {{tr("fits"), Verdict::Fits, false},
                           {tr("tight"), Verdict::Tight, false},
                           {tr("does not fit"), Verdict::DoesNotFit, false},
                           {tr("not possible"), Verdict::Invalid, false},
                           {tr("recommended"), Verdict::Fits, true}};
  const QFontMetrics metrics = fontMetrics();
  const int swatch = metrics.height(), gap = metrics.height() / 3, line = metrics.height() + gap;
  const ColorScheme scheme = schemeOf(palette());
  int x = 0, y = 0;
  for (const Entry& entry : entries) {
    const int entryWidth = swatch + gap + metrics.horizontalAdvance(entry.text) + gap * 3;
    if (x > 0 && x + entryWidth > width) {
      x = 0;
      y += line;
    }
    if (painter) {
      const QRectF box(x + 0.5, y + 0.5, swatch - 1, swatch - 1);
      QPainterPath shape;
      shape.addRoundedRect(box, 3, 3);
      QColor ink = mutedText(palette());
      Symbol symbol = Symbol::Invalid;
      if (entry.star) {
        symbol = Symbol::Recommended;
        ink = palette().color(QPalette::Highlight);
      } else if (entry.verdict == Verdict::Invalid) {
        QColor hatch = palette().color(QPalette::Mid);
        painter->fillPath(shape, QBrush(hatch, Qt::BDiagPattern));
      } else {
        const Bytes memory(100);
        const Bytes left(entry.verdict == Verdict::Fits ? 35 : entry.verdict == Verdict::Tight ? 1 : -30);
        const HeadroomShade shade = headroomShade(left, memory, scheme);
        painter->fillPath(shape, shade.fill);
        ink = shade.text;
        symbol = entry.verdict == Verdict::Fits    ? Symbol::Fits
                 : entry.verdict == Verdict::Tight ? Symbol::Tight
                                                   : Symbol::DoesNotFit;
      }
      if (!entry.star) {
        painter->setPen(QPen(separatorColor(palette()), 1));
        painter->drawPath(shape);
      }
      const double inset = entry.star ? 0 : 3;
      paintSymbol(*painter, box.adjusted(inset, inset, -inset, -inset), symbol, ink);
      painter->setPen(mutedText(palette()));
      painter->drawText(QRect(x + swatch + gap, y, entryWidth, swatch), Qt::AlignLeading | Qt::AlignVCenter, entry.text);
    }
    x += entryWidth;
  }
  return y + line;
}

int GridLegend::heightForWidth(int width) const { return place(width, nullptr); }
QSize GridLegend::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 60, place(fontMetrics().averageCharWidth() * 60, nullptr)};
}
QSize GridLegend::minimumSizeHint() const { return {fontMetrics().averageCharWidth() * 24, fontMetrics().height()}; }

void GridLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  place(width(), &painter);
}

// The entries wrap with the width, and the height with them.
void GridLegend::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (heightForWidth(width()) != height()) updateGeometry();
}

void GridLegend::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
