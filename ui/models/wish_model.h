// SPDX-License-Identifier: GPL-3.0-or-later
// WishModel: the machines of the catalog that grant a wish, best first, and behind them the cards that cannot, with the reason. A
// row a card; prices of cards are written by the person and decide the order. GUI thread only.
#pragma once

#include "core/launch/plan_search.h"

#include <QAbstractTableModel>
#include <QString>
#include <map>
#include <vector>

namespace headroom::ui {

class WishModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { Gpus, Layout, Headroom, Each, Throughput, Ttft, Memory, CardPrice, Price, ColumnCount };

  explicit WishModel(QObject* parent = nullptr);
  void clear();
  void add(const WishReport& ofOneCard);
  // Of one card, in any unit; 0: none.
  void setPrice(const QString& card, double price);
  double priceOf(const QString& card) const;
  // Null where the row is a card that cannot grant the wish.
  const WishAnswer* answerAt(int row) const;
  int answers() const { return static_cast<int>(m_answers.size()); }
  // Everything about a row in a sentence: the speeds with their bands, or why the card cannot.
  QString sentence(int row) const;
  void retranslate();

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  void priceChanged(const QString& card, double price);

 private:
  QString cardOf(int row) const;
  QString cell(int row, int column) const;

  std::vector<WishAnswer> m_answers;
  std::vector<WishReport::Refused> m_refused;
  std::map<std::string, double> m_prices;
};

}  // namespace headroom::ui
