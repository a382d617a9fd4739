// SPDX-License-Identifier: GPL-3.0-or-later
// TimeRing: the last points of something measured over time, in a ring of fixed size. MetricPoint: one value, or a gap.
// Unknown is a gap, never 0. Plain data; any one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace headroom::ui {

struct MetricPoint {
  double time = 0;  // seconds since the epoch
  std::optional<double> value;
  friend bool operator==(const MetricPoint&, const MetricPoint&) = default;
};

// Point needs a member `time`. Points come in order of time; one that is older than the last by more than a second means the
// clock was set back and starts the ring anew, one that is only a little older is dropped.
template <class Point>
class TimeRing {
 public:
  explicit TimeRing(std::size_t capacity) : m_capacity(std::max<std::size_t>(capacity, 1)) {}

  void add(const Point& point) {
    if (!m_points.empty()) {
      const double last = (*this)[size() - 1].time;
      if (point.time < last - 1.0)
        clear();
      else if (point.time < last)
        return;
    }
    if (m_points.size() < m_capacity) {
      m_points.push_back(point);
    } else {
      m_points[m_begin] = point;
      m_begin = (m_begin + 1) % m_capacity;
    }
  }

  std::size_t size() const { return m_points.size(); }
  std::size_t capacity() const { return m_capacity; }
  bool empty() const { return m_points.empty(); }
  const Point& operator[](std::size_t index) const { return m_points[(m_begin + index) % m_points.size()]; }
  const Point& back() const { return (*this)[size() - 1]; }
  void clear() {
    m_points.clear();
    m_begin = 0;
  }

  // The points with from <= time <= to, and with neighbours the one before and the one after, so that lines reach the edges.
  std::vector<Point> between(double from, double to, bool neighbours = false) const {
    std::size_t first = lowerBound(from), last = first;
    while (last < size() && (*this)[last].time <= to) ++last;
    if (neighbours && first > 0) --first;
    if (neighbours && last < size()) ++last;
    std::vector<Point> points;
    points.reserve(last - first);
    for (std::size_t index = first; index < last; ++index) points.push_back((*this)[index]);
    return points;
  }

 private:
  std::size_t lowerBound(double time) const {
    std::size_t low = 0, high = size();
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if ((*this)[middle].time < time)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  std::size_t m_capacity;
  std::size_t m_begin = 0;
  std::vector<Point> m_points;
};

using MetricSeries = TimeRing<MetricPoint>;

}  // namespace headroom::ui
