/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A trial of the queue (11): whether others fill it while the flow keeps no backlog there, and whether the flow loses less then. In the
 * first case it competes, in the second it goes on without a backlog. Elsewhere the losses are a radio's. */
#ifndef SUIMON_FS_AT_OPEN_TRIAL_H
#define SUIMON_FS_AT_OPEN_TRIAL_H

#include "rivals.h"

/* Losses and marks before a trial; rounds of a trial, of which the last are judged, as a managed queue drops for a while after it was
 * left; so many with a queue tell of others. Such a queue is longer than rtt_min over the next and the time of so many segments of the
 * flow together. This time counts as one between the last two: flows that share a link know only their own rate. */
#define OPEN_LEAST_CONGESTIONS 5
#define OPEN_TRIAL_ROUNDS 20
#define OPEN_TRIAL_JUDGED 10
#define OPEN_ROUNDS_FILLED 3
#define OPEN_TRIAL_QUEUE_PART 16
#define OPEN_TRIAL_SEGMENTS 3
#define OPEN_MIN_QUEUE 2000
#define OPEN_MAX_QUEUE 6000
/* The most segments whose square takes 64 bits, and parts that a rate of loss is counted in. */
#define OPEN_MOST_SEGMENTS (1ULL << 20)
#define OPEN_WHOLE (1ULL << 20)
/* Where a trial goes on, a round with a queue takes 1 over this of the window. */
#define OPEN_GIVES_WAY 16
/* Where no more than 1 over this is left of the window that it began with, others fill the queue, however short they keep it. */
#define OPEN_LEFT_PART 4

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

/* Less than half of what was lost before: a radio loses the same without a backlog, a managed queue does not. */
static __always_inline int open_loses_less(const struct open_trial *t)
{
	return t->lost_bytes < share_of(t->delivered, t->loss_before, 2 * OPEN_WHOLE);
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
		open_begin_competition(f, a, l);
		/* The length of a managed queue tells of nobody: nothing but time tells when others have left. */
		open_put_off(&f->rivals, a->now + OPEN_COMPETE_ON * open_period(f));
		return;
	}
	f->window = min(f->window, max(f->rcv_bytes, 2 * a->mss));
	f->trial.window = f->window;
	f->trial.left = OPEN_TRIAL_ROUNDS;
	f->trial.found = found;
	f->trial.loss_before = loss_before;
	f->trial.low = OPEN_NONE;
}

/* How long a segment takes at the flow's own rate. */
static __always_inline u64 open_segment_time(const struct fs_at_open *f, u64 mss)
{
	return share_of(mss, open_rtt_min(&f->path), f->rcv_bytes);
}

/* The window of a trial that goes on, after a round: an empty queue tells of room, and any other is of others. */
static __always_inline void open_keep_empty(struct fs_at_open *f, u64 mss)
{
	u64 near = min(open_rtt_min(&f->path) / OPEN_NEAR, max(OPEN_MIN_QUEUE, open_segment_time(f, mss)));

	if (f->low <= f->trial.low + near)
		f->window += mss;
	else
		f->window = max(f->window - f->window / OPEN_GIVES_WAY, 2 * mss);
}

/* A round of a trial. */
static __always_inline void open_end_trial_round(struct fs_at_open *f, const struct open_ack *a, u64 q, struct open_limits *l)
{
	u64 segments = min(max(OPEN_TRIAL_SEGMENTS * open_segment_time(f, a->mss), OPEN_MIN_QUEUE), OPEN_MAX_QUEUE);
	int is_filled;

	f->longest[0] = max(f->longest[0], q);
	f->trial.low = min(f->trial.low, f->low);
	f->trial.left--;
	if (f->trial.left >= OPEN_TRIAL_JUDGED) {
		f->trial.delivered = 0;
		f->trial.lost_bytes = 0;
		return;
	}
	if (f->trial.goes_on)
		open_keep_empty(f, a->mss);
	f->trial.filled += q > segments + open_rtt_min(&f->path) / OPEN_TRIAL_QUEUE_PART;
	is_filled = (f->trial.goes_on && f->window <= f->trial.window / OPEN_LEFT_PART) || f->trial.filled >= OPEN_ROUNDS_FILLED;
	if (is_filled) {
		open_begin_competition(f, a, l);
	} else if (f->trial.left) {
		return;
	} else if (open_loses_less(&f->trial) && less(a->now, f->trial.began) < open_longest_wait(f)) {
		f->trial.left = OPEN_TRIAL_JUDGED;
		f->trial.filled = 0;
		f->trial.goes_on = 1;
		return;
	}
	f->trial.left = 0;
	f->trial.found = is_filled;
}

#endif
