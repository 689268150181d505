// A doubly linked list whose links are members of its elements: no allocation, removal in O(1).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::tp {

template <class T> struct Link {
    T *next = nullptr;
    T *prev = nullptr;
};

// The analyzer does not see that a removed element has left the list.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete)

// The list does not own its elements. An element is in at most one list per Link member.
template <class T, Link<T> T::*link> class List {
  public:
    bool empty() const { return !head_; }
    T *front() const { return head_; }
    static T *next(const T *item) { return (item->*link).next; }

    void push_back(T *item) {
        item->*link = {nullptr, tail_};
        (tail_ ? (tail_->*link).next : head_) = item;
        tail_ = item;
    }
    void remove(T *item) {
        const auto [next, prev] = item->*link;
        (prev ? (prev->*link).next : head_) = next;
        (next ? (next->*link).prev : tail_) = prev;
        item->*link = {};
    }
    T *pop_front() {
        T *item = head_;
        if (item) remove(item);
        return item;
    }

  private:
    T *head_ = nullptr;
    T *tail_ = nullptr;
};
// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

} // namespace dtrain::tp
