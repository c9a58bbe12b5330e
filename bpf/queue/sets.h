/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Where tables keep a flow: crates/algorithms/src/queue/integer/sets.rs in C; the reasons stand there. */
#ifndef SUIMON_QUEUE_SETS_H
#define SUIMON_QUEUE_SETS_H

#define SETS 128
#define SETS_LOG2 7
#define WAYS 8

static __always_inline u32 set_number(u32 flow)
{
	/* The mask tells the verifier the bound. */
	return ((flow * 0x9e3779b9U) >> (32 - SETS_LOG2)) & (SETS - 1);
}

#endif
