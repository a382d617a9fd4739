// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/engine_text.h"

#include <QCoreApplication>

namespace headroom::ui {

namespace {

class EngineText {
  Q_DECLARE_TR_FUNCTIONS(headroom::ui::EngineText)

 public:
  static QString phase(SessionPhase phase) {
    switch (phase) {
      case SessionPhase::Idle:
        return tr("No engine is running");
      case SessionPhase::Starting:
        return tr("Starting");
      case SessionPhase::Loading:
        return tr("Loading weights");
      case SessionPhase::Ready:
        return tr("Serving");
      case SessionPhase::Stopping:
        return tr("Stopping");
      case SessionPhase::Failed:
        return tr("Failed");
    }
    return {};
  }

  static QString notReady(const EngineSession& session) {
    switch (session.phase()) {
      case SessionPhase::Idle:
        return tr("No engine is running. Choose a layout and start it; then the model can be asked here.");
      case SessionPhase::Starting:
        return tr("The engine is starting.");
      case SessionPhase::Loading:
        return tr("The engine is loading its weights.");
      case SessionPhase::Ready:
        return {};
      case SessionPhase::Stopping:
        return tr("The engine is stopping.");
      case SessionPhase::Failed:
        return session.failureReason();
    }
    return {};
  }
};

}  // namespace

QString phaseText(SessionPhase phase) { return EngineText::phase(phase); }

QString durationText(qint64 milliseconds) {
  const qint64 seconds = milliseconds / 1000;
  const auto two = [](qint64 number) { return QStringLiteral("%1").arg(number, 2, 10, QLatin1Char('0')); };
  if (seconds < 3600) return QStringLiteral("%1:%2").arg(QString::number(seconds / 60), two(seconds % 60));
  return QStringLiteral("%1:%2:%3").arg(QString::number(seconds / 3600), two(seconds / 60 % 60), two(seconds % 60));
}

QString layoutText(int tp, int pp, int dp) {
  QString text = QStringLiteral("TP%1 × PP%2").arg(QString::number(tp), QString::number(pp));
  if (dp > 1) text += QStringLiteral(" × DP%1").arg(QString::number(dp));
  return text;
}

QString notReadyText(const EngineSession& session) { return EngineText::notReady(session); }

}  // namespace headroom::ui
