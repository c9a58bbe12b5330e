/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A trial of the queue (11): whether others fill it while the flow keeps no backlog there. */
#ifndef SUIMON_FS_AT_OPEN_TRIAL_H
#define SUIMON_FS_AT_OPEN_TRIAL_H

#include "rivals.h"

/* Losses before a trial; rounds of a trial, of which so many with a queue that is longer than the next, and than rtt_min over the one
 * after, tell of others; and the most segments whose square takes 64 bits. */
#define OPEN_LEAST_LOSSES 5
#define OPEN_TRIAL_ROUNDS 10
#define OPEN_ROUNDS_FILLED 3
#define OPEN_TRIAL_QUEUE 2000
#define OPEN_TRIAL_QUEUE_PART 16
#define OPEN_MOST_SEGMENTS (1ULL << 20)

/* (11): once a period, where more is lost than lets Reno have this window. */
static __always_inline int open_is_trial_due(const struct fs_at_open *f, u64 now, u64 mss)
{
	u64 segments = min(f->window / mss, OPEN_MOST_SEGMENTS);

	return f->trial.lost >= OPEN_LEAST_LOSSES && segments * segments >= share_of(f->trial.delivered / mss, 3, 2 * f->trial.lost) &&
	       less(now, f->trial.began) >= open_period(f);
}

/* The window keeps no backlog, while the queue is empty or should be. */
static __always_inline void open_begin_trial(struct fs_at_open *f, u64 now, u64 mss)
{
	u64 found = f->trial.found;

	__builtin_memset(&f->trial, 0, sizeof(f->trial));
	f->trial.began = now;
	f->trial.left = OPEN_TRIAL_ROUNDS;
	f->trial.found = found;
	f->window = min(f->window, max(f->rcv_bytes, 2 * mss));
}

/* A round of a trial. */
static __always_inline void open_end_trial_round(struct fs_at_open *f, const struct open_ack *a, u64 q, struct open_limits *l)
{
	int is_filled;

	f->longest[0] = max(f->longest[0], q);
	f->trial.left--;
	f->trial.filled += q > OPEN_TRIAL_QUEUE + open_rtt_min(&f->path) / OPEN_TRIAL_QUEUE_PART;
	is_filled = f->trial.filled >= OPEN_ROUNDS_FILLED;
	if (is_filled)
		open_begin_competition(f, a, l);
	if (is_filled || !f->trial.left) {
		f->trial.left = 0;
		f->trial.found = is_filled;
	}
}

#endif
