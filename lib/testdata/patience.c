/* patience.c: a process in which no thread can be created, as Go's C part meets it: it asks guest/threads.c 20 times. Says "ok". */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "../../guest/inside.h"

int __real_pthread_create(pthread_t* t, const pthread_attr_t* attr, void* (*run)(void*), void* arg) { return (void)t, (void)attr, (void)run, (void)arg, EAGAIN; }
int __real_pthread_attr_init(pthread_attr_t* attr) { return pthread_attr_init(attr); }
int __wrap_pthread_create(pthread_t* t, const pthread_attr_t* attr, void* (*run)(void*), void* arg);
uint64_t guest_block(void) { return 0; }
void guest_unblock(uint64_t before) { (void)before; }
void guest_thread_of_go(void) {}
int guest_room(char* text, size_t size) { return (void)text, (void)size, 0; }
void guest_no_thread(char* text, size_t size, int have, int want) { (void)text, (void)size, (void)have, (void)want; }

/* In place of libc's: nobody waits. */
static long long slept;
int nanosleep(const struct timespec* t, struct timespec* left) { return (void)left, slept += t->tv_sec * 1000000000ll + t->tv_nsec, 0; }

int main(void) {
  pthread_t t;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  for (int i = 0; i < 20; i++)
    if (__wrap_pthread_create(&t, &attr, NULL, NULL) != EAGAIN) return 1;
  /* docs/limits.md */
  printf(slept > 20000000000 && slept <= 30000000000 ? "ok\n" : "Go waits for a thread for %lld s\n", slept / 1000000000);
  return 0;
}
