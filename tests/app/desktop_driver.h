// SPDX-License-Identifier: GPL-3.0-or-later
// Drives the real window as a person would: types, chooses, waits for what is on the screen. Used by the story test and by the screenshots.
#pragma once

#include "app/desktop/main_window.h"
#include "ui/models/plan_session.h"
#include "ui/views/chat_page.h"
#include "ui/views/monitor_page.h"
#include "ui/views/plan_page.h"

#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QPushButton>
#include <QRadioButton>
#include <QSpinBox>
#include <QTest>

namespace headroom::app {

class DesktopDriver {
 public:
  explicit DesktopDriver(MainWindow& window) : m_window(window) {}

  template <class Condition>
  static bool waitFor(Condition condition, int milliseconds = 60000) {
    return QTest::qWaitFor(condition, milliseconds);
  }

  bool openModel(const QString& model, const QString& expectedName) {
    m_window.openModel(model);
    return waitFor([&] {
      return plan().model() && !plan().isOpening() && QString::fromStdString(plan().model()->config.name).contains(expectedName) && hasPlan();
    });
  }
  bool useMachine(const QString& text) {
    auto* field = m_window.findChild<QLineEdit*>(QStringLiteral("machineText"));
    field->setText(text);
    QTest::keyClick(field, Qt::Key_Return);
    return waitFor([&] { return hasPlan() && plan().machineText() == text && plan().report()->machine.size() == plan().machine().size(); });
  }
  bool useThisMachine() {
    m_window.findChild<QRadioButton*>(QStringLiteral("thisMachine"))->click();
    return waitFor([&] { return hasPlan() && plan().machine().isLocal && plan().report()->machine.isLocal; });
  }
  bool useEngine(EngineKind kind) {
    auto* box = m_window.findChild<QComboBox*>(QStringLiteral("engine"));
    box->setCurrentIndex(box->findData(static_cast<int>(kind)));
    return waitFor([&] { return hasPlan() && plan().report()->options.engine.kind == kind; });
  }
  bool startSelected() {
    m_window.startSelected();
    return waitFor([&] { return engine().isReady() || engine().phase() == ui::SessionPhase::Failed; }, 120000) && engine().isReady();
  }
  bool ask(const QString& question) {
    m_window.chatPage().sendMessage(question);
    return waitFor([&] { return !m_window.chatPage().isAnswering(); }, 120000);
  }
  bool hasPlan() const { return plan().report() && !plan().isPlanning(); }

  ui::PlanSession& plan() const { return m_window.workspace().plan(); }
  ui::EngineSession& engine() const { return m_window.workspace().engine(); }

 private:
  MainWindow& m_window;
};

}  // namespace headroom::app
