// SPDX-License-Identifier: GPL-3.0-or-later
// One thread beside the window's that does jobs in turn and hands their results back. Jobs and results pass under a mutex of the
// standard library, so that tools that watch for races see every hand-over.
#pragma once

#include <QObject>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace headroom::ui {

class BackgroundWorker : public QObject {
  Q_OBJECT

 public:
  using Task = std::function<void()>;

  // `name` is the thread's, at most 15 characters; a debugger shows it.
  explicit BackgroundWorker(const char* name, QObject* parent = nullptr);
  // Waits for the job in progress; jobs and results that still wait are dropped.
  ~BackgroundWorker() override;

  // The job is done on the worker's thread, after those that were given before.
  void run(Task job);
  // Called by jobs: the task is done in the event loop of the thread this object lives on, in order.
  void deliver(Task task);

 private:
  void work();
  Q_INVOKABLE void takeDelivered();

  std::mutex m_mutex;
  std::condition_variable m_hasJob;
  std::deque<Task> m_jobs, m_delivered;  // under m_mutex
  bool m_ended = false;                  // under m_mutex
  std::thread m_thread;                  // last: begins when the rest is there
};

}  // namespace headroom::ui
