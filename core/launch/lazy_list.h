// SPDX-License-Identifier: Apache-2.0
// A list that is made when it is first read. A grid has thousands of layouts and a person looks at a few: ranks and texts are
// made for those. Reads like a const std::vector; copies share what was made, and may be read from several threads.
#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace headroom {

template <class T>
class LazyList {
 public:
  using const_iterator = typename std::vector<T>::const_iterator;
  using iterator = const_iterator;
  using value_type = T;

  LazyList() = default;
  LazyList(std::vector<T> items) : m_state(std::make_shared<State>(std::move(items))) {}
  LazyList(std::initializer_list<T> items) : LazyList(std::vector<T>(items)) {}
  // `make` is called once at most, and must own what it reads.
  template <class Make>
  static LazyList madeBy(Make make) {
    LazyList list;
    list.m_state = std::make_shared<Maker<Make>>(std::move(make));
    return list;
  }

  const std::vector<T>& all() const {
    static const std::vector<T> none;
    return m_state ? m_state->read() : none;
  }
  operator const std::vector<T>&() const { return all(); }
  const_iterator begin() const { return all().begin(); }
  const_iterator end() const { return all().end(); }
  size_t size() const { return all().size(); }
  bool empty() const { return !m_state || all().empty(); }
  const T& front() const { return all().front(); }
  const T& back() const { return all().back(); }
  const T& operator[](size_t index) const { return all()[index]; }
  // Copies that were made before keep what they had.
  void push_back(T item) {
    std::vector<T> items = all();
    items.push_back(std::move(item));
    *this = LazyList(std::move(items));
  }

 private:
  struct State {
    State() = default;
    explicit State(std::vector<T> made) : items(std::move(made)) {}
    virtual ~State() = default;
    virtual void make() {}
    const std::vector<T>& read() {
      std::call_once(once, [this] { make(); });
      return items;
    }
    std::once_flag once;
    std::vector<T> items;
  };
  // What is needed to make the list stands beside it: one allocation a list.
  template <class Make>
  struct Maker final : State {
    explicit Maker(Make from) : source(std::move(from)) {}
    void make() override {
      this->items = (*source)();
      source.reset();
    }
    std::optional<Make> source;
  };
  std::shared_ptr<State> m_state;
};

}  // namespace headroom
