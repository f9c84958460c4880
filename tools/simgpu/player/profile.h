// The counters and times of which a profiler plugin's kernel events are made, from 2.26 on.
#pragma once
#include "path.h"

namespace simgpu {
#ifdef MAX_PROFILER_EVENTS_PER_CHANNEL
class Profile {
 public:
  Profile(Block& b, int type, char* works, int n, size_t size) : b(b), type(type), works(works), n(n), size(size) { mark(b.comm->workStarted); }
  ~Profile() {
    mark(b.comm->workCompleted);
    b.channel->workCounter += (uint64_t)n;
  }

 private:
  Block& b;
  const int type;
  char* const works;
  const int n;
  const size_t size;

  bool wanted(int i) const {
    const char* w = works + (size_t)i * size;
    if (type == ncclDevWorkTypeP2p) return GET(*(ncclDevWorkP2p*)w, profilerEnabled);
    return (type == ncclDevWorkTypeColl || type == ncclDevWorkTypeCollReg) && GET(*(ncclDevWorkColl*)w, profilerEnabled);
  }

  template <typename A> void mark(A* counters) {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < n; i++) {
      if (!wanted(i)) continue;
      const uint64_t count = b.channel->workCounter + 1 + (uint64_t)i;
      auto& d = counters[b.number].data[count % MAX_PROFILER_EVENTS_PER_CHANNEL];
      d.timestamp = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
      __atomic_store_n(&d.counter, count, __ATOMIC_RELEASE);
    }
  }
};
#else
struct Profile {
  Profile(Block&, int, char*, int, size_t) {}
};
#endif
}  // namespace simgpu
