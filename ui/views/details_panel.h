// SPDX-License-Identifier: GPL-3.0-or-later
// DetailsPanel: everything about the selected layout: verdict, memory per GPU, capacity, predictions with their source,
// reasons with fixes, and the command that starts it. GUI thread only.
#pragma once

#include "core/launch/planner.h"
#include "ui/models/fix_action.h"

#include <QScrollArea>
#include <QStringList>
#include <array>
#include <memory>
#include <vector>

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTableView;
class QToolButton;
class QVBoxLayout;

namespace headroom::ui {

class MemoryBars;
class MemoryBreakdownModel;
class VerdictBadge;

class DetailsPanel : public QScrollArea {
  Q_OBJECT

 public:
  explicit DetailsPanel(QWidget* parent = nullptr);

  // A layout of the report; both null: nothing is selected.
  void setLayout(std::shared_ptr<const PlanReport> report, const LayoutPlan* layout, const QString& modelArgument);
  // Empty obstacle: Start is offered; else the button says why not.
  void setStartObstacle(const QString& obstacle);
  QString startObstacle() const { return m_obstacle; }
  QString commandText() const;
  QPushButton* startButton() const { return m_start; }

 signals:
  void startRequested();
  void fixRequested(const headroom::ui::FixAction& action);
  // Plans of this machine and engine shall be modelled again.
  void forgetRequested();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void buildMemory(QVBoxLayout* layout);
  void buildFacts(QVBoxLayout* layout);
  void buildCommand(QVBoxLayout* layout);
  void retranslate();
  void refresh();
  void showFacts();
  void showFactsSource();
  void showReasons();
  void showFixes();
  void showWaste();
  void showCommand();
  void fitTable();

  std::shared_ptr<const PlanReport> m_report;
  const LayoutPlan* m_layout = nullptr;  // inside m_report
  QString m_modelArgument;
  QString m_obstacle;

  QWidget* m_content = nullptr;
  QLabel* m_title = nullptr;
  VerdictBadge* m_badge = nullptr;
  QLabel* m_recommended = nullptr;
  QPushButton* m_start = nullptr;
  QLabel* m_obstacleLabel = nullptr;
  QLabel* m_reasonsTitle = nullptr;
  QLabel* m_reasons = nullptr;
  QWidget* m_fixes = nullptr;
  QVBoxLayout* m_fixesLayout = nullptr;
  QStringList m_fixLabels;
  std::vector<FixAction> m_actions;
  QLabel* m_wasteTitle = nullptr;
  QLabel* m_waste = nullptr;
  QLabel* m_memoryTitle = nullptr;
  QLabel* m_memorySource = nullptr;
  QPushButton* m_forget = nullptr;
  QToolButton* m_asTable = nullptr;
  MemoryBars* m_bars = nullptr;
  MemoryBreakdownModel* m_breakdown = nullptr;
  QTableView* m_table = nullptr;
  QLabel* m_factsTitle = nullptr;
  QWidget* m_facts = nullptr;
  // Every line there may be, in its place: what a plan does not tell is hidden, so that nothing is made anew while options are
  // dragged. A heading has a name alone.
  enum Fact {
    RoomHeading,
    KvTokens,
    RequestsAtOnce,
    LongestContext,
    MostRequests,
    SpeedHeading,
    DecodeOfOne,
    DecodeOfAll,
    TimeBetweenTokens,
    Prefill,
    FirstToken,
    FactCount
  };
  struct FactLine {
    QLabel *name = nullptr, *value = nullptr, *unit = nullptr, *band = nullptr;
  };
  std::array<FactLine, FactCount> m_factLines;
  QLabel* m_factsSource = nullptr;
  QLabel* m_commandTitle = nullptr;
  QPlainTextEdit* m_command = nullptr;
  QToolButton* m_copy = nullptr;
  QComboBox* m_form = nullptr;
  QStringList m_formNames;  // of the forms that m_form offers
  QLabel* m_explained = nullptr;
};

}  // namespace headroom::ui
