/* inorder.c: arrived bytes are written in the order of their addresses. The page in the middle of a buffer cannot be
 * written at first: where the copy meets it, all before it must be there, and nothing behind it.  inorder */
#include "../inorder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, BUFFER = 3 * PAGE };

static unsigned char *buffer, source[BUFFER];
static size_t from, len; /* of the copy under test */
static int met;

static void die(const char* what) {
	fprintf(stderr, "inorder: %s: %zu bytes from %zu on\n", what, len, from);
	_Exit(1);
}

static unsigned char expected(size_t i) { return source[i - from]; }

static void meet(int sig) {
	met++;
	for (size_t i = from; i < PAGE; i++)
		if (buffer[i] != expected(i)) die("a byte before the page is not there yet");
	if (mprotect(buffer + PAGE, PAGE, PROT_READ | PROT_WRITE)) die("mprotect");
	for (size_t i = PAGE; i < from + len; i++)
		if (buffer[i]) die("a byte behind is there already");
	(void)sig;
}

static void copy(size_t at, size_t n) {
	from = at;
	len = n;
	met = 0;
	memset(buffer, 0, BUFFER);
	if (mprotect(buffer + PAGE, PAGE, PROT_NONE)) die("mprotect");
	wf_copy_inorder(buffer + at, source, n);
	if (met != 1) die("the page was not met once");
	if (memcmp(buffer + at, source, n)) die("the copy is wrong");
}

int main(void) {
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED) return 2;
	for (size_t i = 0; i < BUFFER; i++) source[i] = (unsigned char)(i * 7 | 1);
	signal(SIGSEGV, meet);
	for (size_t before = 1; before <= 200; before += 1 + before / 16)
		for (size_t behind = 1; behind < PAGE; behind += 1 + behind / 8) copy(PAGE - before, before + behind);
	copy(0, BUFFER);
	copy(3, BUFFER - 3);
	return 0;
}
