// SPDX-License-Identifier: GPL-3.0-or-later
// What a drag of the context slider costs the window's thread: processor time from a move of the slider to the painted plan, of
// the whole window, offscreen. Planning itself is done by another thread and does not count.
// usage: slider_benchmark [MOVES] [--context: the tab with the chart of memory against context]
#include "app/desktop/appearance.h"
#include "app/desktop/main_window.h"
#include "ui/models/plan_session.h"
#include "ui/settings/app_settings.h"
#include "ui/views/plan_page.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QSlider>
#include <QTemporaryDir>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

constexpr int kPlanTimeoutMs = 60000;

double threadMs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// Until a plan is there and painted; false when none comes.
bool settle(headroom::ui::PlanSession& plan) {
  QElapsedTimer clock;
  clock.start();
  while (plan.isOpening() || plan.isPlanning()) {
    if (clock.elapsed() > kPlanTimeoutMs) return false;
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  }
  for (int i = 0; i < 3; ++i) QCoreApplication::processEvents();  // what follows from it: layouts, then what is painted
  return plan.report() != nullptr;
}

bool measure(headroom::app::MainWindow& window, const char* model, const char* machine, int moves) {
  auto& plan = window.workspace().plan();
  if (!plan.setMachine(QString::fromLatin1(machine))) return false;
  window.openModel(QString::fromLatin1(model));
  if (!settle(plan)) return false;
  auto* slider = window.findChild<QSlider*>(QStringLiteral("contextSlider"));
  if (!slider || slider->maximum() <= slider->minimum()) return false;
  slider->setSliderDown(true);
  const int steps = slider->maximum() - slider->minimum();
  std::vector<double> times;
  for (int move = 0; move < moves; ++move) {
    const int along = move % (2 * steps);  // to the end and back
    const int position = slider->minimum() + (along < steps ? along : 2 * steps - along);
    const bool changes = position != slider->value();
    const double begin = threadMs();
    slider->setSliderPosition(position);
    if (!settle(plan)) return false;
    if (changes) times.push_back(threadMs() - begin);
  }
  slider->setSliderDown(false);
  if (times.empty()) return false;
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) { return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))]; };
  std::printf("%-36s %-14s %4zu moves  median %6.2f  p99 %6.2f  worst %6.2f ms\n", model, machine, times.size(), at(0.5),
              at(0.99), times.back());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  using namespace headroom;
  int moves = 200;
  bool context = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--context") == 0)
      context = true;
    else
      moves = std::atoi(argv[i]);
  }
  const QTemporaryDir folder;
  ui::AppSettings settings(folder.path());
  settings.setLanguage(QStringLiteral("en"));
  const app::Appearance appearance(*qApp, settings);
  app::MainWindow window(settings);
  window.resize(1440, 900);
  window.show();
  if (context) window.planPage().showTab(ui::PlanPage::ContextTab);
  const struct {
    const char *model, *machine;
  } cases[] = {{"HuggingFaceTB/SmolLM2-135M-Instruct", "local"},
               {"Qwen/Qwen2.5-72B-Instruct", "6xA800-80GB"},
               {"Qwen/Qwen2.5-72B-Instruct", "16n8xH100-80GB"}};
  for (const auto& test : cases) {
    if (!measure(window, test.model, test.machine, moves))
      return std::fprintf(stderr, "%s on %s: found no plan, expected one\n", test.model, test.machine), 1;
  }
  return 0;
}
