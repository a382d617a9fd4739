// SPDX-License-Identifier: GPL-3.0-or-later
// LogPage: what the engine wrote, kept raw and bounded, with a filter, severities and a report to copy. GUI thread only.
#pragma once

#include <QWidget>
#include <memory>

namespace headroom::ui {

class EngineSession;

class LogPage : public QWidget {
  Q_OBJECT

 public:
  explicit LogPage(EngineSession& session, QWidget* parent = nullptr);
  ~LogPage() override;

  // Program, system, request, end and the last log lines as plain text, for a bug report. The user's home folder is written as ~.
  QString report() const;
  QString visibleText() const;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  class Private;
  std::unique_ptr<Private> d;
};

}  // namespace headroom::ui
