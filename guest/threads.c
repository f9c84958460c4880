/* threads.c: Go ends the process when it cannot create a thread. So the threads that it may need are created before
 * it starts, when a failure can still be told, and wait here. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KEPT GUEST_THREADS
/* naps of 10 ms that a thread beyond the kept ones is waited for, by each of the 20 calls that Go makes for it */
#define PATIENCE 150

struct job {
  void* (*run)(void*);
  void* arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct job jobs[KEPT];        /* given out, and no thread has them yet. protected by lock, as the others are */
static int njobs, idle, alive, ends; /* idle: threads without a job, those given out are not */

static void* kept(void* none) {
  (void)none;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!njobs && !ends) pthread_cond_wait(&change, &lock);
    if (!njobs) break;
    struct job j = jobs[--njobs];
    pthread_mutex_unlock(&lock);
    guest_thread_of_go();
    j.run(j.arg);
    guest_block(); /* Go leaves a thread with all blocked; to be sure */
    pthread_mutex_lock(&lock);
    idle++;
  }
  alive--;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*),
  void* arg) __attribute__((weak));

/* A thread beyond those kept. */
static void* beyond(void* arg) {
  struct job j = *(struct job*)arg;
  free(arg);
  guest_thread_of_go();
  return j.run(j.arg);
}

static int create(pthread_t* thread, const pthread_attr_t* attr, struct job j) {
  struct job* copy = malloc(sizeof *copy);
  if (!copy) return EAGAIN;
  *copy = j;
  uint64_t before = guest_block();
  int rc = __real_pthread_create(thread, attr, beyond, copy);
  guest_unblock(before);
  if (rc) free(copy);
  return rc;
}

/* Gives the job to a kept thread. 0: none is idle. */
static int give(const pthread_attr_t* attr, struct job j) {
  size_t wanted = 0;
  pthread_attr_getstacksize(attr, &wanted);
  pthread_mutex_lock(&lock);
  int given = idle > 0 && wanted <= GUEST_STACK;
  if (given) {
    idle--;
    jobs[njobs++] = j;
    pthread_cond_signal(&change);
  }
  pthread_mutex_unlock(&lock);
  return given;
}

/* What Go's C part calls; the linker puts this before it. */
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  struct job j = {run, arg};
  for (int naps = 0;; naps++) {
    *thread = pthread_self(); /* Go does not look at it */
    if (give(attr, j)) return 0;
    int rc = create(thread, attr, j);
    if (rc != EAGAIN || naps == PATIENCE) return rc; /* Go ends the process */
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  }
}

/* What Go's C part begins the attributes of a thread with; the linker puts this before it. Go asks them how large
 * the stack is. */
int __real_pthread_attr_init(pthread_attr_t* attr) __attribute__((weak));
int __wrap_pthread_attr_init(pthread_attr_t* attr);
int __wrap_pthread_attr_init(pthread_attr_t* attr) {
  int rc = __real_pthread_attr_init(attr);
  return rc ? rc : pthread_attr_setstacksize(attr, GUEST_STACK);
}

/* Ends the kept threads, none of which has a job. With the lock held. */
static void end(void) {
  ends = 1;
  pthread_cond_broadcast(&change);
  while (alive) pthread_cond_wait(&change, &lock);
  ends = idle = 0;
}

int guest_keep_threads(char* text, size_t size) {
  pthread_attr_t attr;
  pthread_t t;
  int rc = 0;
  __wrap_pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  uint64_t before = guest_block();
  pthread_mutex_lock(&lock);
  while (alive < KEPT && !(rc = __real_pthread_create(&t, &attr, kept, NULL))) {
    alive++;
    idle++;
  }
  if (rc) guest_no_thread(text, size, alive, KEPT);
  else rc = guest_room(text, size); /* with the stacks taken */
  if (rc) end();
  pthread_mutex_unlock(&lock);
  guest_unblock(before);
  pthread_attr_destroy(&attr);
  return rc ? -1 : 0;
}
