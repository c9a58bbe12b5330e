/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Fixed-point arithmetic of the policies: crates/algorithms/src/queue/integer/fixed.rs in C. The loader fills the tables.
 */
#ifndef SUIMON_QUEUE_FIXED_H
#define SUIMON_QUEUE_FIXED_H

#include "../arithmetic.h"

/* One, as a probability or a fraction. */
#define ONE (1ULL << 32)
#define TABLE_ENTRIES 257
#define STEP_MASK ((1ULL << 24) - 1)

struct tables {
	u64 log2[TABLE_ENTRIES];
	u64 exp2[TABLE_ENTRIES];
};

/* How often a number below 2^32, and not 0, can be doubled before it reaches 2^32. */
static __always_inline u64 doublings(u64 m)
{
	u64 n = 1;

	if (m < 1ULL << 16) {
		n += 16;
		m <<= 16;
	}
	if (m < 1ULL << 24) {
		n += 8;
		m <<= 8;
	}
	if (m < 1ULL << 28) {
		n += 4;
		m <<= 4;
	}
	if (m < 1ULL << 30) {
		n += 2;
		m <<= 2;
	}
	if (m < 1ULL << 31)
		n += 1;
	return n;
}

/* -log2(m) for m above 0 and up to ONE. */
static __always_inline u64 negative_log2(const volatile struct tables *t, u64 m)
{
	if (m >= ONE)
		return 0;
	m = max(m, 1);
	u64 shift = doublings(m);
	u64 fraction = ((m << shift) - ONE) & (ONE - 1);
	u32 at = (fraction >> 24) & 255;
	u64 rest = fraction & STEP_MASK;
	u64 low = t->log2[at], high = t->log2[at + 1];

	return (shift << 32) - (low + (((high - low) * rest) >> 24));
}

/* 2^-e. */
static __always_inline u64 power_of_half(const volatile struct tables *t, u64 e)
{
	u64 whole = e >> 32;

	if (whole >= 32)
		return 0;
	u64 fraction = e & (ONE - 1);
	u32 at = (fraction >> 24) & 255;
	u64 rest = fraction & STEP_MASK;
	u64 high = t->exp2[at], low = t->exp2[at + 1];

	return (high - (((high - low) * rest) >> 24)) >> whole;
}

/* SplitMix64, the upper half. */
static __always_inline u64 random_bits(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

/* Uniform from 0 to below the bound. */
static __always_inline u64 random_below(u64 *state, u64 bound)
{
	return (random_bits(state) * bound) >> 32;
}

static __always_inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#endif
