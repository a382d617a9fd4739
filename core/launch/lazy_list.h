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
  LazyList(std::vector<T> items) : m_place(std::make_shared<Place>(std::move(items))) {}
  LazyList(std::initializer_list<T> items) : LazyList(std::vector<T>(items)) {}
  // `make` is called once at most, and must own what it reads.
  template <class Make>
  static LazyList madeBy(Make make) {
    LazyList list;
    const auto maker = std::make_shared<Maker<Make>>(std::move(make));
    list.m_place = std::shared_ptr<Place>(maker, &maker->place);
    return list;
  }

  // A place for a list inside the object that makes it: the lists of one object take one allocation. `make` is called once at
  // most, with the object.
  class Place {
   public:
    using Make = std::vector<T> (*)(const void* owner);
    explicit Place(std::vector<T> made) : m_items(std::move(made)) {}
    Place(const void* owner, Make make) : m_owner(owner), m_make(make) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    const std::vector<T>& read() {
      std::call_once(m_once, [this] {
        if (m_make) m_items = m_make(m_owner);
      });
      return m_items;
    }

   private:
    const void* m_owner = nullptr;
    Make m_make = nullptr;
    std::once_flag m_once;
    std::vector<T> m_items;
  };
  template <class Owner>
  static LazyList standingIn(const std::shared_ptr<Owner>& owner, Place Owner::*place) {
    LazyList list;
    list.m_place = std::shared_ptr<Place>(owner, &(owner.get()->*place));
    return list;
  }

  const std::vector<T>& all() const {
    static const std::vector<T> none;
    return m_place ? m_place->read() : none;
  }
  operator const std::vector<T>&() const { return all(); }
  const_iterator begin() const { return all().begin(); }
  const_iterator end() const { return all().end(); }
  size_t size() const { return all().size(); }
  bool empty() const { return !m_place || all().empty(); }
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
  template <class Make>
  struct Maker {
    explicit Maker(Make from) : source(std::move(from)) {}
    static std::vector<T> made(const void* maker) {
      auto& source = static_cast<const Maker*>(maker)->source;
      std::vector<T> items = (*source)();
      source.reset();
      return items;
    }
    mutable std::optional<Make> source;  // gone once the list is made
    Place place{this, &made};
  };
  std::shared_ptr<Place> m_place;
};

}  // namespace headroom
