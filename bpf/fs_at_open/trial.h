/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A trial of the queue (11): whether others fill it while the flow keeps no backlog there, and whether it loses less then. */
#ifndef SUIMON_FS_AT_OPEN_TRIAL_H
#define SUIMON_FS_AT_OPEN_TRIAL_H

#include "rivals.h"

/* Losses and marks before a trial; rounds of a trial, of which the last are judged, as a managed queue drops for a while after it was
 * left; so many with a queue that is longer than the next, and than rtt_min over the one after, tell of others. */
#define OPEN_LEAST_CONGESTIONS 5
#define OPEN_TRIAL_ROUNDS 20
#define OPEN_TRIAL_JUDGED 10
#define OPEN_ROUNDS_FILLED 3
#define OPEN_TRIAL_QUEUE 2000
#define OPEN_TRIAL_QUEUE_PART 16
/* The most segments whose square takes 64 bits, parts that a rate of loss is counted in, and standard deviations that are no chance. */
#define OPEN_MOST_SEGMENTS (1ULL << 20)
#define OPEN_WHOLE (1ULL << 20)
#define OPEN_DEVIATIONS 3

/* (11): once a period, where more is lost than lets Reno have this window. */
static __always_inline int open_is_trial_due(const struct fs_at_open *f, u64 now, u64 mss)
{
	u64 segments = min(f->window / mss, OPEN_MOST_SEGMENTS), congestions = f->trial.congestions;

	return congestions >= OPEN_LEAST_CONGESTIONS && segments * segments >= share_of(f->trial.delivered / mss, 3, 2 * congestions) &&
	       less(now, f->trial.began) >= open_period(f);
}

/* Most of what told of congestion were marks, which no radio sets: the queue is managed, and no trial needs to tell. */
static __always_inline int open_is_marked(const struct open_trial *t)
{
	return t->congestions >= OPEN_LEAST_CONGESTIONS && 2 * t->marks > t->congestions;
}

/* Less than half of what was lost before, and not by chance. */
static __always_inline int open_loses_less(const struct open_trial *t, u64 mss)
{
	u64 expected = min(share_of(t->delivered, t->loss_before, OPEN_WHOLE) / mss, OPEN_MOST_SEGMENTS);
	u64 fewer = less(expected, t->lost_bytes / mss);

	return 2 * fewer > expected && fewer * fewer > OPEN_DEVIATIONS * OPEN_DEVIATIONS * expected;
}

/* Competition in a queue whose length tells of nobody: nothing but time tells when others have left. */
static __always_inline void open_compete_in_managed(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	open_begin_competition(f, a, l);
	open_put_off(&f->rivals, a->now + OPEN_COMPETE_ON * open_period(f));
}

/* The window keeps no backlog, while the queue is empty or should be. A queue that marks needs no trial. */
static __always_inline void open_begin_trial(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 loss_before = min(share_of(f->trial.lost_bytes, OPEN_WHOLE, f->trial.delivered), OPEN_WHOLE);
	u64 found = f->trial.found;
	int is_marked = open_is_marked(&f->trial);

	__builtin_memset(&f->trial, 0, sizeof(f->trial));
	f->trial.began = a->now;
	if (is_marked) {
		open_compete_in_managed(f, a, l);
		return;
	}
	f->trial.left = OPEN_TRIAL_ROUNDS;
	f->trial.found = found;
	f->trial.loss_before = loss_before;
	f->window = min(f->window, max(f->rcv_bytes, 2 * a->mss));
}

/* A round of a trial. */
static __always_inline void open_end_trial_round(struct fs_at_open *f, const struct open_ack *a, u64 q, struct open_limits *l)
{
	int is_filled, loses_less;

	f->longest[0] = max(f->longest[0], q);
	f->trial.left--;
	if (f->trial.left >= OPEN_TRIAL_JUDGED) {
		f->trial.delivered = 0;
		f->trial.lost_bytes = 0;
		return;
	}
	f->trial.filled += q > OPEN_TRIAL_QUEUE + open_rtt_min(&f->path) / OPEN_TRIAL_QUEUE_PART;
	is_filled = f->trial.filled >= OPEN_ROUNDS_FILLED;
	loses_less = !f->trial.left && open_loses_less(&f->trial, a->mss);
	if (loses_less)
		open_compete_in_managed(f, a, l);
	else if (is_filled)
		open_begin_competition(f, a, l);
	if (is_filled || !f->trial.left) {
		f->trial.left = 0;
		f->trial.found = is_filled || loses_less;
	}
}

#endif
