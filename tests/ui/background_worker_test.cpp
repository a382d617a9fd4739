// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/background_worker.h"

#include <QTest>
#include <QThread>
#include <atomic>
#include <memory>
#include <vector>

using headroom::ui::BackgroundWorker;

class BackgroundWorkerTest : public QObject {
  Q_OBJECT

 private slots:
  void jobsRunInTurnElsewhereAndResultsComeBackInTurn() {
    BackgroundWorker worker("worker test");
    std::vector<int> results;
    const QThread* window = QThread::currentThread();
    for (int i = 0; i < 100; ++i) {
      worker.run([&, i] {
        const bool elsewhere = QThread::currentThread() != window;
        auto result = std::make_shared<int>(elsewhere ? i : -1);
        worker.deliver([&, result] {
          if (QThread::currentThread() != window) *result = -2;
          results.push_back(*result);
        });
      });
    }
    QTRY_COMPARE(results.size(), size_t{100});
    for (int i = 0; i < 100; ++i) QCOMPARE(results[i], i);
  }

  void whatAJobHoldsEndsWithTheJob() {
    BackgroundWorker worker("worker test");
    auto held = std::make_shared<int>(1);
    std::atomic<bool> done = false;
    worker.run([held] {});
    worker.run([&] { done = true; });
    QTRY_VERIFY(done);
    QCOMPARE(held.use_count(), 1L);
  }

  void waitingJobsAndResultsAreDroppedAtTheEnd() {
    std::atomic<bool> began = false, go = false;
    std::atomic<int> ran = 0;
    bool delivered = false;
    auto worker = std::make_unique<BackgroundWorker>("worker test");
    worker->run([&, self = worker.get()] {
      began = true;
      while (!go) std::this_thread::yield();
      ++ran;
      self->deliver([&] { delivered = true; });
    });
    for (int i = 0; i < 10; ++i) worker->run([&] { ++ran; });
    QTRY_VERIFY(began);
    std::thread release([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      go = true;
    });
    worker.reset();
    release.join();
    QCOMPARE(ran.load(), 1);
    QCoreApplication::processEvents();
    QVERIFY(!delivered);
  }

  void aResultMayEndTheWorker() {
    auto worker = std::make_unique<BackgroundWorker>("worker test");
    int delivered = 0;
    worker->run([&, self = worker.get()] {
      self->deliver([&] {
        ++delivered;
        worker.reset();
      });
      self->deliver([&] { ++delivered; });
    });
    QTRY_VERIFY(!worker);
    QCOMPARE(delivered, 1);
  }
};

QTEST_GUILESS_MAIN(BackgroundWorkerTest)
#include "background_worker_test.moc"
