// SPDX-License-Identifier: GPL-3.0-or-later
// TimeChart: draws a ChartContent with title, legend with the latest values, hover read-out, table and CSV. The only class that
// touches the chart library. Redraws at most fifteen times a second and only while visible. GUI thread only.
#pragma once

#include "ui/charts/chart_content.h"

#include <QWidget>
#include <memory>

namespace headroom::ui {

class TimeChart : public QWidget {
  Q_OBJECT

 public:
  explicit TimeChart(QWidget* parent = nullptr);
  ~TimeChart() override;

  void setTitle(const QString& title);      // also the accessible name
  void setSummary(const QString& summary);  // one line at the right of the title
  void setEmptyText(const QString& text);   // shown while there is no point
  void setPlotHeight(int pixels);
  void setContent(ChartContent content);
  const ChartContent& content() const;

  int pointCount() const;       // of the content
  int drawnPointCount() const;  // what the plot really holds now
  QString legendText() const;   // plain, with latest values
  QString csv() const;

 public slots:
  void copyCsv();
  void showTable();

 protected:
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  class Private;
  std::unique_ptr<Private> d;
};

}  // namespace headroom::ui
