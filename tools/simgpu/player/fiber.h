// The blocks of a launch, each a fiber: one thread plays them in turn, and a fiber that waits gives way to the next.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <ucontext.h>

namespace simgpu {
class Fibers {
 public:
  explicit Fibers(volatile uint32_t* abortFlag) : abortFlag(abortFlag) {}

  void spawn(std::function<void()> body) {
    auto f = std::make_unique<Fiber>();
    f->stack.reset(new char[kStack]);
    f->body = std::move(body);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.get();
    f->context.uc_stack.ss_size = kStack;
    f->context.uc_link = nullptr;
    makecontext(&f->context, enter, 0);
    all.push_back(std::move(f));
  }

  void yield() { swapcontext(&current->context, &home); }

  // Waits until ready() is true; false once the communicator was aborted.
  template <typename F> bool wait(F ready) {
    while (!ready()) {
      if (gone) return false;
      yield();
    }
    progress = true;
    return !gone;
  }

  bool aborted() const { return gone; }
  void moved() { progress = true; }

  // Plays all fibers to their ends.
  void run() {
    running = this;
    for (int idle = 0;;) {
      progress = false;
      if (!round()) break;
      idle = progress ? 0 : idle + 1;
      if (idle % 64 == 63 && abortFlag && *abortFlag) gone = true;
      rest(idle);
    }
    running = nullptr;
  }

 private:
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    bool done = false;
  };
  static constexpr size_t kStack = 128 << 10;
  static inline thread_local Fibers* running;

  ucontext_t home;
  std::vector<std::unique_ptr<Fiber>> all;
  Fiber* current = nullptr;
  volatile uint32_t* abortFlag;
  bool progress = false, gone = false;

  static void enter() {
    Fibers* self = running;
    self->current->body();
    self->current->done = self->progress = true;
    swapcontext(&self->current->context, &self->home);
  }

  bool round() {
    bool left = false;
    for (size_t i = 0; i < all.size(); i++) {
      if (all[i]->done) continue;
      left = true;
      current = all[i].get();
      swapcontext(&home, &current->context);
    }
    return left;
  }

  // Cores are shared with NCCL's proxies: a kernel that only waits must not keep one.
  static void rest(int idle) {
    if (idle < 16) return;
    if (idle < 2000) { sched_yield(); return; }
    const timespec t = {0, 50000};
    nanosleep(&t, nullptr);
  }
};
}  // namespace simgpu
