/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
#ifndef SUIMON_ARITHMETIC_H
#define SUIMON_ARITHMETIC_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline u64 min(u64 a, u64 b)
{
	asm volatile("" : "+r"(a), "+r"(b));
	return a < b ? a : b;
}

static __always_inline u64 max(u64 a, u64 b)
{
	asm volatile("" : "+r"(a), "+r"(b));
	return a > b ? a : b;
}

#endif
