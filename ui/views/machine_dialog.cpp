// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/machine_dialog.h"

#include "ui/models/core_text.h"
#include "ui/models/layout_text.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QSpinBox>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

// Counts by spin box, cards from the catalog or written.
class RowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (index.column() == MachineRows::Card) {
      auto* box = new QComboBox(parent);
      box->setEditable(true);
      for (const GpuSpec& spec : gpuCatalog()) box->addItem(fromCore(spec.name));
      return box;
    }
    auto* editor = QStyledItemDelegate::createEditor(parent, option, index);
    if (auto* spin = qobject_cast<QSpinBox*>(editor)) spin->setRange(index.column() == MachineRows::Nodes ? 0 : 1, 4096);
    return editor;
  }
  void setEditorData(QWidget* editor, const QModelIndex& index) const override {
    if (auto* box = qobject_cast<QComboBox*>(editor)) return box->setCurrentText(index.data(Qt::EditRole).toString());
    QStyledItemDelegate::setEditorData(editor, index);
  }
  void setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const override {
    if (auto* box = qobject_cast<QComboBox*>(editor)) {
      model->setData(index, box->currentText(), Qt::EditRole);
      return;
    }
    QStyledItemDelegate::setModelData(editor, model, index);
  }
};

}  // namespace

MachineDialog::MachineDialog(const Machine& machine, QWidget* parent) : QDialog(parent), m_rows(new MachineRows(this)) {
  setObjectName(QStringLiteral("machineDialog"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_hint = makeQuietLabel(this);
  layout->addWidget(m_hint);
  m_table = new QTableView(this);
  m_table->setObjectName(QStringLiteral("machineTable"));
  m_table->setModel(m_rows);
  m_table->setItemDelegate(new RowDelegate(m_table));
  m_table->setEditTriggers(QAbstractItemView::AllEditTriggers);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setTabKeyNavigation(false);
  m_table->setShowGrid(false);
  m_table->verticalHeader()->hide();
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 2);
  m_table->horizontalHeader()->setSectionResizeMode(MachineRows::Card, QHeaderView::Stretch);
  layout->addWidget(m_table, 1);
  auto* row = new QHBoxLayout;
  m_add = new QPushButton(themedIcon(QStringLiteral("add")), QString(), this);
  m_add->setObjectName(QStringLiteral("addMachineRow"));
  m_remove = new QPushButton(themedIcon(QStringLiteral("close")), QString(), this);
  m_remove->setObjectName(QStringLiteral("removeMachineRow"));
  row->addWidget(m_add);
  row->addWidget(m_remove);
  row->addStretch(1);
  layout->addLayout(row);
  m_text = makeTextLabel(this);
  m_text->setObjectName(QStringLiteral("machineDialogText"));
  layout->addWidget(m_text);
  m_problem = makeTextLabel(this);
  m_problem->setObjectName(QStringLiteral("machineDialogProblem"));
  layout->addWidget(m_problem);
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, this);
  layout->addWidget(m_buttons);
  resize(fontMetrics().averageCharWidth() * 76, fontMetrics().height() * 24);

  std::vector<MachineRow> rows = machineRows(machine);
  if (rows.empty()) rows.push_back({0, 8, QStringLiteral("H100-80GB-SXM")});
  m_rows->setRows(std::move(rows));
  m_table->selectRow(0);
  connect(m_add, &QPushButton::clicked, this, [this] {
    const auto& known = m_rows->rows();
    m_rows->addRow(known.empty() ? MachineRow{0, 1, QStringLiteral("24GiB")} : known.back());
    m_table->selectRow(m_rows->rowCount() - 1);
  });
  connect(m_remove, &QPushButton::clicked, this, [this] {
    const int at = m_table->currentIndex().row();
    m_rows->removeRowAt(at);
    if (m_rows->rowCount() > 0) m_table->selectRow(std::min(at, m_rows->rowCount() - 1));
  });
  for (auto signal : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved})
    connect(m_rows, signal, this, &MachineDialog::check);
  connect(m_rows, &QAbstractItemModel::dataChanged, this, &MachineDialog::check);
  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_buttons, &QDialogButtonBox::accepted, this, [this] {
    emit machineChosen(text());
    accept();
  });
  retranslate();
}

QString MachineDialog::text() const { return machineText(m_rows->rows()); }

void MachineDialog::check() {
  m_text->setText(tr("As text: %1").arg(text()));
  const auto machine = parseMachine(text().toStdString());
  m_problem->setText(machine ? QString() : errorText(machine.error()));
  m_problem->setVisible(!machine);
  m_buttons->button(QDialogButtonBox::Ok)->setEnabled(machine.has_value());
  m_remove->setEnabled(m_rows->rowCount() > 1);
}

void MachineDialog::retranslate() {
  setWindowTitle(tr("What-if machine"));
  m_hint->setText(tr(
      "Each row is a kind of node. Nodes \"in one\" (0) stand together in a single machine. A card is a name of the catalog or "
      "a size such as 24GiB."));
  m_table->setAccessibleName(tr("Nodes and cards"));
  m_add->setText(tr("&Add row"));
  m_remove->setText(tr("&Remove row"));
  m_rows->retranslate();
  check();
}

void MachineDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
