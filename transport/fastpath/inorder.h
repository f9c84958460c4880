/* inorder.h: what has arrived is put into the host's buffer in the order of its addresses. NCCL's protocols LL and
 * LL128 read a buffer while it is written: the last word of a line is its flag, and once that is there, so must be
 * the line. memcpy promises no order, and may write the first bytes last. */
#ifndef WEFT_INORDER_H
#define WEFT_INORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void wf_copy_inorder(void* to, const void* from, size_t n) {
	unsigned char* d = to;
	const unsigned char* s = from;
	for (; n && (uintptr_t)d % 8; n--) __atomic_store_n(d++, *s++, __ATOMIC_RELEASE);
	for (uint64_t v; n >= 8; d += 8, s += 8, n -= 8) {
		memcpy(&v, s, 8);
		if ((uintptr_t)d % 64 == 56) __atomic_store_n((uint64_t*)(void*)d, v, __ATOMIC_RELEASE);
		else __atomic_store_n((uint64_t*)(void*)d, v, __ATOMIC_RELAXED);
	}
	for (; n; n--) __atomic_store_n(d++, *s++, __ATOMIC_RELEASE);
}

#endif
