// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/catalog_model.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"

namespace headroom::ui {
namespace {

// A number of the configuration, of its text part where the model has several.
std::optional<int64_t> numberOf(const nlohmann::json& config, const char* key) {
  if (!config.is_object()) return {};
  for (const nlohmann::json* part : {&config, config.contains("text_config") ? &config["text_config"] : nullptr}) {
    if (!part || !part->is_object()) continue;
    const auto found = part->find(key);
    if (found != part->end() && found->is_number_integer()) return found->get<int64_t>();
  }
  return {};
}

}  // namespace

CatalogTableModel::CatalogTableModel(QObject* parent) : QAbstractTableModel(parent) {
  for (const CatalogModel& model : modelCatalog()) {
    Row row{fromCore(model.name),
            fromCore(model.licence),
            numberOf(model.config, "num_hidden_layers"),
            numberOf(model.config, "num_attention_heads"),
            numberOf(model.config, "num_key_value_heads"),
            numberOf(model.config, "max_position_embeddings")};
    m_rows.push_back(std::move(row));
  }
}

QString CatalogTableModel::nameAt(int row) const { return m_rows.at(static_cast<size_t>(row)).name; }
int CatalogTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int CatalogTableModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant CatalogTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& row = m_rows[static_cast<size_t>(index.row())];
  const bool isText = index.column() == Name || index.column() == Licence;
  if (role == Qt::TextAlignmentRole) return static_cast<int>((isText ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
  const auto number = [&](const std::optional<int64_t>& value) -> QVariant {
    if (role == Qt::UserRole) return value ? QVariant(static_cast<qlonglong>(*value)) : QVariant();
    return formatCount(value);
  };
  if (role != Qt::DisplayRole && role != Qt::UserRole) return {};
  switch (index.column()) {
    case Name:
      return row.name;
    case Layers:
      return number(row.layers);
    case Heads:
      return number(row.heads);
    case KvHeads:
      return number(row.kvHeads);
    case Context:
      return number(row.context);
    case Licence:
      return row.licence.isEmpty() ? kUnknown : row.licence;
    default:
      return {};
  }
}

QVariant CatalogTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal)
    return static_cast<int>((section == Name || section == Licence ? Qt::AlignLeading : Qt::AlignTrailing) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  switch (section) {
    case Name:
      return tr("Model");
    case Layers:
      return tr("Layers");
    case Heads:
      return tr("Heads");
    case KvHeads:
      return tr("KV heads");
    case Context:
      return tr("Context");
    case Licence:
      return tr("Licence");
    default:
      return {};
  }
}

}  // namespace headroom::ui
