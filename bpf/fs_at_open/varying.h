/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* A link whose rate varies: a flow keeps room in the queue for the next rise (12). */
#ifndef SUIMON_FS_AT_OPEN_VARYING_H
#define SUIMON_FS_AT_OPEN_VARYING_H

#include "course.h"

/* The sums lose 1 over this a round. */
#define OPEN_MEMORY 64
/* The link varies where the queueing delay moves by so many eighths of its own length, and has moved by so many rtt_min in all. */
#define OPEN_MOVED_EIGHTHS 3
#define OPEN_MOVED_RTTS 8
/* Room in the queue; the part of the way that a round moves the window, and the part of itself that it grows by at most. */
#define OPEN_ROOM 3
#define OPEN_WAY 2
#define OPEN_MOST_GROWN 4

/* Whether the queueing delay moves by so many eighths of its own length from round to round. */
static __always_inline int open_moves(const struct open_variation *v, u64 eighths)
{
	return 8 * v->moved >= eighths * v->queued;
}

/* Counts a round that came after one with the queueing delay `last - 1`; 0: that did not count. */
static __always_inline void open_vary(struct open_variation *v, u64 last, u64 low, u64 q)
{
	if (last) {
		v->moved = v->moved - v->moved / OPEN_MEMORY + open_distance(q, last - 1);
		v->queued = v->queued - v->queued / OPEN_MEMORY + q;
		v->round_trips = v->round_trips - v->round_trips / OPEN_MEMORY + low;
	}
	v->last = q + 1;
}

/* The queueing delay of the last round and 1, if that counted. Each round takes it, since one that does not count, as that of a drain,
 * parts those before and after it. */
static __always_inline u64 open_take_last(struct open_variation *v)
{
	u64 last = v->last;

	v->last = 0;
	return last;
}

/* A link that a flow had for itself (15) goes on varying while a longer route looks like a queue. */
static __always_inline int open_varies(const struct fs_at_open *f)
{
	const struct open_variation *v = &f->variation;

	if (f->alone.rounds_since)
		return 1;
	return open_moves(v, OPEN_MOVED_EIGHTHS) && v->moved >= OPEN_MOVED_RTTS * open_rtt_min(&f->path);
}

/* The queueing delay that (12) makes room for. */
static __always_inline u64 open_room(const struct open_variation *v, u64 rtt_min)
{
	u64 room = OPEN_ROOM * v->moved * rtt_min / max(v->round_trips, 1);

	return min(room, rtt_min);
}

/* (12), for a round with the queueing delay q that took `elapsed`. */
static __always_inline void open_follow_link(struct fs_at_open *f, u64 mss, u64 q, u64 elapsed)
{
	u64 w = f->window, rtt_min = open_rtt_min(&f->path), time = rtt_min + open_room(&f->variation, rtt_min);
	u64 fit = share_of(f->round.delivered, min(time, OPEN_MOST_RTT), elapsed) + open_backlog(f, mss, q);

	if (fit > w)
		w += min((fit - w) / OPEN_WAY, w / OPEN_MOST_GROWN);
	else
		w -= (w - fit) / OPEN_WAY;
	open_set_window(f, mss, w);
}

/* An acknowledgement whose round trip tells of an empty queue: the link may carry more by now. */
static __always_inline void open_follow_rise(struct fs_at_open *f, const struct open_ack *a, u64 rtt)
{
	if (f->mode != OPEN_STEADY || f->trial.left || a->app_limited || f->alone.is_known)
		return;
	if (open_is_near_min(&f->path, rtt) && open_varies(f))
		f->window = min(f->window + a->delivered, OPEN_MOST_BYTES);
}

#endif
