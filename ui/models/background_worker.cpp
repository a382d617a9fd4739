// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/background_worker.h"

#include <pthread.h>
#include <QPointer>

namespace headroom::ui {

BackgroundWorker::BackgroundWorker(const char* name, QObject* parent) : QObject(parent), m_thread([this] { work(); }) {
  ::pthread_setname_np(m_thread.native_handle(), name);
}

BackgroundWorker::~BackgroundWorker() {
  {
    const std::lock_guard lock(m_mutex);
    m_ended = true;
    m_jobs.clear();
    m_hasJob.notify_one();
  }
  m_thread.join();
}

void BackgroundWorker::run(Task job) {
  const std::lock_guard lock(m_mutex);
  m_jobs.push_back(std::move(job));
  m_hasJob.notify_one();
}

void BackgroundWorker::deliver(Task task) {
  bool first;
  {
    const std::lock_guard lock(m_mutex);
    first = m_delivered.empty();
    m_delivered.push_back(std::move(task));
  }
  // Called by name: a call by pointer would carry an object from one thread to the other.
  if (first) QMetaObject::invokeMethod(this, "takeDelivered", Qt::QueuedConnection);
}

void BackgroundWorker::work() {
  std::unique_lock lock(m_mutex);
  while (true) {
    m_hasJob.wait(lock, [this] { return m_ended || !m_jobs.empty(); });
    if (m_ended) return;
    {
      const Task job = std::move(m_jobs.front());
      m_jobs.pop_front();
      lock.unlock();
      job();
    }  // what the job held ends here, not under the mutex
    lock.lock();
  }
}

void BackgroundWorker::takeDelivered() {
  std::deque<Task> tasks;
  {
    const std::lock_guard lock(m_mutex);
    tasks.swap(m_delivered);
  }
  const QPointer<BackgroundWorker> self(this);
  for (const Task& task : tasks) {
    task();
    if (!self) return;  // a task may end the owner
  }
}

}  // namespace headroom::ui
