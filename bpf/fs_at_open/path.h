/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The measurements: the path's smallest round trip, a step of it, and a round. */
#ifndef SUIMON_FS_AT_OPEN_PATH_H
#define SUIMON_FS_AT_OPEN_PATH_H

#include "state.h"

/* Round trips up to 1/32 above the smallest count as that, and so many in a row further below it tell of a shorter queue. */
#define OPEN_NEAR 32
#define OPEN_SHORTER 2
/* Where the queue is seldom empty, the path is remembered for so many times as long. */
#define OPEN_PERIODS_LONG 24
/* Where a flow is alone, and for so many periods no round trip was close to rtt_min, the path may be another. */
#define OPEN_PERIODS_FAR 3
/* Where a round loses more than 1 over this of its bytes, the queue is full. */
#define OPEN_FULL_LOSES 16
/* (9): a step is longer than this, and than rtt_min over the next; round trips that differ by no more than 1 over the last stay. */
#define OPEN_STEP 10000
#define OPEN_STEP_PART 4
#define OPEN_SAME 64

static __always_inline u64 open_rtt_min(const struct open_path *p)
{
	/* Without a sample, 0 becomes the largest number by this. */
	u64 least = min(p->periods[0] - 1, p->periods[1] - 1);

	return min(least, p->periods[2] - 1) + 1;
}

static __always_inline u64 open_queueing(const struct open_path *p, u64 rtt)
{
	return less(rtt, open_rtt_min(p));
}

static __always_inline int open_is_near_min(const struct open_path *p, u64 rtt)
{
	return open_queueing(p, rtt) <= open_rtt_min(p) / OPEN_NEAR;
}

/* (5) */
static __always_inline void open_sample_path(struct open_path *p, u64 now, u64 rtt, u64 period)
{
	if (!p->first)
		p->first = rtt;
	if (!p->shorter)
		p->least_before = open_rtt_min(p);
	p->shorter = rtt < p->least_before - p->least_before / OPEN_NEAR ? p->shorter + 1 : 0;
	if (less(now, p->began) > period && p->periods[0]) {
		p->periods[2] = p->periods[1];
		p->periods[1] = p->periods[0];
		p->periods[0] = 0;
		p->began = now;
	}
	p->periods[0] = p->periods[0] ? min(p->periods[0], rtt) : rtt;
	if (open_is_near_min(p, rtt))
		p->renewed = now;
}

/* Whether the first round trip is taken to have had a queue in it, since a shorter one came later. */
static __always_inline int open_began_in_queue(const struct open_path *p)
{
	return open_rtt_min(p) < p->first - p->first / OPEN_NEAR;
}

/* Whether the queue has just become shorter than it was known to be: others leave it. */
static __always_inline int open_has_become_shorter(struct open_path *p)
{
	if (p->shorter != OPEN_SHORTER)
		return 0;
	p->shorter = 0;
	return 1;
}

/* The time of an acknowledgement that came at `now`, had it not waited (13). */
static __always_inline u64 open_unwaited(const struct fs_at_open *f, u64 now)
{
	return less(now, f->way_back.wait);
}

static __always_inline void open_clear_round(struct open_round *r)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->low = OPEN_NONE;
}

static __always_inline void open_begin_round(struct fs_at_open *f, const struct open_ack *a)
{
	struct open_round *r = &f->round;

	open_clear_round(r);
	r->began = open_unwaited(f, a->now);
	r->end = a->snd_nxt;
	r->flight_size = a->flight_size;
}

static __always_inline int open_is_over(const struct open_round *r, const struct open_ack *a)
{
	return a->snd_una >= r->end || r->delivered + r->lost >= r->flight_size;
}

static __always_inline void open_count(struct open_round *r, const struct open_ack *a)
{
	u64 left = less(a->prior_flight_size, a->flight_size);

	r->delivered += a->delivered;
	/* What left the flight and was not confirmed is lost. */
	r->lost += less(left, a->delivered);
	r->app_limited |= a->app_limited;
}

/* More than 1 over `part` of its bytes were lost, and more than two segments. */
static __always_inline int open_loses(const struct open_round *r, u64 part, u64 mss)
{
	return r->lost > 2 * mss && r->lost > share_of(r->delivered + r->lost, 1, part);
}

/* The question of (9) ends: the step was a queue. */
static __always_inline void open_end_step(struct open_step *s)
{
	s->half = 0;
	s->stays = 0;
	s->window = 0;
}

/* (9), once a round: true where another path is the cause of a step, since the window has come down to half and the round trip is
 * the same. */
static __always_inline int open_is_path(struct fs_at_open *f, u64 low, u64 mss)
{
	u64 last = f->low, more = max(OPEN_STEP, open_rtt_min(&f->path) / OPEN_STEP_PART);
	struct open_step *s = &f->step;

	f->low = low;
	if (open_loses(&f->round, OPEN_FULL_LOSES, mss)) {
		/* A full queue stays the same too. */
		open_end_step(s);
		return 0;
	}
	if (open_is_near_min(&f->path, low))
		s->queue = 0;
	else if (low + more < last)
		s->queue = max(s->queue, last);
	if (last && low > max(last, s->queue) + more) {
		s->half = (last + low) / 2;
		s->stays = low;
		s->window = f->window;
	} else if (low < s->half) {
		open_end_step(s);
	} else if (open_distance(low, s->stays) > low / OPEN_SAME) {
		s->stays = low;
		s->window = f->window;
	}
	return s->half && f->window <= s->window / 2;
}

/* The path is another, with this round trip. */
static __always_inline void open_take_path(struct fs_at_open *f, u64 now, u64 rtt)
{
	__builtin_memset(&f->path, 0, sizeof(f->path));
	f->path.periods[0] = rtt;
	f->path.began = now;
	f->path.renewed = now;
	__builtin_memset(&f->step, 0, sizeof(f->step));
	f->drains.dirty = 0;
	f->mean_queueing = 0;
}

/* The path may be another: measurements of the old one are void, and the window stays. */
static __always_inline void open_forget_path(struct fs_at_open *f, const struct open_limits *l)
{
	if (f->mode == OPEN_COMPETING)
		f->window = l->cwnd;
	if (f->mode != OPEN_STARTUP)
		f->mode = OPEN_STEADY;
	__builtin_memset(&f->path, 0, sizeof(f->path));
	__builtin_memset(&f->way_back, 0, sizeof(f->way_back));
	open_clear_round(&f->round);
	__builtin_memset(&f->drains, 0, sizeof(f->drains));
	__builtin_memset(&f->course, 0, sizeof(f->course));
	__builtin_memset(&f->step, 0, sizeof(f->step));
	__builtin_memset(&f->rivals, 0, sizeof(f->rivals));
	__builtin_memset(&f->trial, 0, sizeof(f->trial));
	__builtin_memset(&f->variation, 0, sizeof(f->variation));
	__builtin_memset(&f->alone, 0, sizeof(f->alone));
	f->low = 0;
	f->queueing = 0;
	f->mean_queueing = 0;
	f->longest[0] = 0;
	f->longest[1] = 0;
}

static __always_inline u64 open_period(const struct fs_at_open *f)
{
	return max(OPEN_AGE, open_rtt_min(&f->path) * 40);
}

/* Whether a flow that is alone has to look for rtt_min, since no round trip since `since` was close to it for long. */
static __always_inline int open_is_far_since(const struct fs_at_open *f, u64 now, u64 since)
{
	return less(now, max(since, f->alone.close)) > OPEN_PERIODS_FAR * open_period(f);
}

/* A period of the path's measurement. Beside others, and where the flow is alone and seldom drains, the queue is seldom empty. */
static __always_inline u64 open_period_of_memory(const struct fs_at_open *f, u64 now)
{
	int is_beside = f->mode == OPEN_COMPETING || f->mode == OPEN_HOLDING || f->drains.dirty;
	int is_long = f->alone.is_known ? !open_is_far_since(f, now, 0) : is_beside;

	return (is_long ? OPEN_PERIODS_LONG : 1) * open_period(f);
}

#endif
