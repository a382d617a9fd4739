// SPDX-License-Identifier: Apache-2.0
// Links between stages: messages in order, bounded, of changing sizes; abort wakes both sides.
#include "engine/parallel/local_communicator.h"

#include <QtTest>

#include <atomic>
#include <thread>

using namespace headroom;
using namespace headroom::engine;

class PipelineLinkTest : public QObject {
  Q_OBJECT
  static constexpr int64_t kDepth = 2, kRows = 4, kColumns = 3;
  std::vector<float> m_slots = std::vector<float>(kDepth * kRows * kColumns);

  void give(LocalPipelineLink& link) { link.setSlots(TensorView::of(m_slots.data(), DType::F32, kDepth * kRows, kColumns)); }

 private slots:
  void keepsOrderAndSizes() {
    constexpr int kMessages = 500;
    for (bool spin : {false, true}) {
      LocalPipelineLink link(kDepth, spin);
      give(link);
      std::thread sender([&] {
        std::vector<float> message(kRows * kColumns);
        for (int i = 0; i < kMessages; ++i) {
          const int64_t rows = 1 + i % kRows;
          for (int64_t j = 0; j < rows * kColumns; ++j) message[j] = static_cast<float>(i * 100 + j);
          if (!link.send(TensorView::of(message.data(), DType::F32, rows, kColumns))) return;
        }
      });
      int right = 0;
      std::vector<float> message(kRows * kColumns);
      for (int i = 0; i < kMessages; ++i) {
        const int64_t rows = 1 + i % kRows;
        if (!link.receive(TensorView::of(message.data(), DType::F32, rows, kColumns))) break;
        bool same = true;
        for (int64_t j = 0; j < rows * kColumns; ++j) same = same && message[j] == static_cast<float>(i * 100 + j);
        right += same;
      }
      sender.join();
      QCOMPARE(right, kMessages);
    }
  }

  void senderWaitsOnlyWhenFull() {
    LocalPipelineLink link(kDepth, false);
    give(link);
    std::vector<float> message(kColumns, 1.0f), got(kColumns);
    std::atomic<int> sent{0};
    std::thread sender([&] {
      for (int i = 0; i < 3; ++i)
        if (link.send(TensorView::of(message.data(), DType::F32, 1, kColumns))) ++sent;
    });
    QTRY_COMPARE(sent.load(), 2);
    QTest::qWait(30);
    QCOMPARE(sent.load(), 2);  // the third waits
    QVERIFY(link.receive(TensorView::of(got.data(), DType::F32, 1, kColumns)).has_value());
    sender.join();
    QCOMPARE(sent.load(), 3);
  }

  void abortWakesReceiverAndSender() {
    for (bool spin : {false, true}) {
      LocalPipelineLink link(kDepth, spin);
      give(link);
      std::vector<float> message(kColumns);
      const TensorView view = TensorView::of(message.data(), DType::F32, 1, kColumns);
      Status receivedStatus;
      std::thread receiver([&] { receivedStatus = link.receive(view); });
      QTest::qWait(10);
      link.abort(Error{"rank 1", "a fault", {}, {}});
      receiver.join();
      QVERIFY(!receivedStatus.has_value());
      QCOMPARE(receivedStatus.error().message(), std::string("rank 1: found a fault"));
      QVERIFY(!link.receive(view).has_value());

      LocalPipelineLink full(kDepth, spin);
      give(full);
      for (int i = 0; i < kDepth; ++i) QVERIFY(full.send(view).has_value());
      Status sentStatus;
      std::thread sender([&] { sentStatus = full.send(view); });
      QTest::qWait(10);
      full.abort(Error{"rank 1", "a fault", {}, {}});
      sender.join();
      QVERIFY(!sentStatus.has_value());
    }
  }
};

QTEST_GUILESS_MAIN(PipelineLinkTest)
#include "pipeline_link_test.moc"
