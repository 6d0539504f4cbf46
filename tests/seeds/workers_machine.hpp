// SPDX-License-Identifier: Apache-2.0
#pragma once

/// workers: a supervised worker, with the states in which it tries to reach what is desired.

#include "pawl/verify.hpp"

namespace seeds::workers {

enum class Worker { stopped, trying_to_start, running, degraded, trying_to_stop, removed };

struct Start {};
struct Started {};
struct Degraded {};
struct Recovered {};
struct Shutdown {};
struct Stopped {};

struct WorkerData {
  int starts = 0;
};

/// Every state reacts to a shutdown, and only a stopped worker is removed. Stopping is one-way: a worker that
/// tries to stop is started again from Stopped alone. A start that is half done is stopped, not forgotten.
inline constexpr auto worker =
    pawl::machine<Worker, WorkerData>("workers_worker")
        .initial(Worker::stopped)
        .on<Start>(Worker::stopped, Worker::trying_to_start)
        .on<Started>(Worker::trying_to_start, Worker::running, [](WorkerData& data) { ++data.starts; })
        .on<Degraded>(Worker::running, Worker::degraded)
        .on<Recovered>(Worker::degraded, Worker::running)
        .on<Shutdown>(pawl::from(Worker::trying_to_start, Worker::running, Worker::degraded),
                      Worker::trying_to_stop)
        .on<Stopped>(Worker::trying_to_stop, Worker::stopped)
        .on<Shutdown>(Worker::stopped, Worker::removed)
        .terminal(Worker::removed)
        .named(Worker::stopped, "Stopped")
        .named(Worker::trying_to_start, "TryingToStart")
        .named(Worker::running, "Running")
        .named(Worker::degraded, "Degraded")
        .named(Worker::trying_to_stop, "TryingToStop")
        .named(Worker::removed, "Removed");
static_assert(pawl::verified<worker>);

}  // namespace seeds::workers
