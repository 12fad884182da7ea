#pragma once

#include <ulexite/base/intrusive_list.hpp>
#include <ulexite/base/job.hpp>
#include <ulexite/runtime/task/task.hpp>

#include <source_location>

namespace ulexite::detail {

// Detached fibers that are made one by one and start together, or not at all.
class task_batch {
 public:
  task_batch(runtime_state& rt, spawn_place where) noexcept : runtime_(rt), where_(where) {}
  task_batch(const task_batch&) = delete;
  task_batch& operator=(const task_batch&) = delete;
  // Ends fibers that were not published, without running them.
  ~task_batch() {
    if (!made_.empty()) [[unlikely]]
      abandon();
  }

  // Adds a task of `rt` that has no handle. Throws as publish.
  void add(task& made) {
    made.where = where_;
    made.detach_at_birth();
    join_strand(made, initialise(made));
    made_.push(made);
  }
  // Makes all of them runnable.
  void publish() noexcept;

 private:
  void abandon() noexcept;

  runtime_state& runtime_;
  const spawn_place where_;
  intrusive_queue<job> made_;  // linked by their hooks for run queues, which are free until then
};

}  // namespace ulexite::detail
