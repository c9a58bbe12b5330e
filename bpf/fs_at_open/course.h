/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Where the window goes, round by round, under (1) to (3). */
#ifndef SUIMON_FS_AT_OPEN_COURSE_H
#define SUIMON_FS_AT_OPEN_COURSE_H

#include "path.h"

/* K of (2) in square microseconds; a queueing delay below rtt_min over the next is taken for that. */
#define OPEN_BACKLOG 1200000000ULL
#define OPEN_LEAST_QUEUE 64
/* (3): so many eighths of the way, and no more than a quarter of the window; after so many rounds in a row that moved it the same way
 * while the queueing delay changed by no more than 1 over STILL, an eighth more each; rtt_min over LARGE_PART q bounds them. */
#define OPEN_LEAST_EIGHTHS 2ULL
#define OPEN_MOST_EIGHTHS 8
#define OPEN_MOST_MOVED 4
#define OPEN_ROUNDS_TO_TRUST 3
#define OPEN_STILL 16
#define OPEN_LARGE_PART 2

/* (2) */
static __always_inline u64 open_backlog(const struct fs_at_open *f, u64 mss, u64 q)
{
	q = max(q, open_rtt_min(&f->path) / OPEN_LEAST_QUEUE);
	q = max(q, 1);
	return share_of(mss, OPEN_BACKLOG, q * q);
}

/* A round with the queueing delay q, which makes the window longer or shorter: the eighths of the way that it goes. */
static __always_inline u64 open_eighths(struct open_course *c, u64 grows, u64 q, u64 rtt_min)
{
	u64 most = rtt_min / max(OPEN_LARGE_PART * q, 1);

	if (c->grows == grows && open_distance(q, c->queueing) <= c->queueing / OPEN_STILL)
		c->rounds++;
	else
		c->rounds = 0;
	c->grows = grows;
	c->queueing = q;
	most = min(max(most, OPEN_LEAST_EIGHTHS), OPEN_MOST_EIGHTHS);
	return min(OPEN_LEAST_EIGHTHS + less(c->rounds, OPEN_ROUNDS_TO_TRUST), most);
}

/* The window after a round, which (6) limits where an eighth of the round was lost. */
static __always_inline void open_set_window(struct fs_at_open *f, u64 mss, u64 w)
{
	if (open_loses(&f->round, 8, mss))
		w = min(w, f->round.delivered * 7 / 8);
	w = max(w, 2 * mss);
	f->window = min(w, OPEN_MOST_BYTES);
}

/* (1) for the round trip `rtt` */
static __always_inline u64 open_fit(const struct fs_at_open *f, u64 mss, u64 rtt)
{
	return share_of(f->window, open_rtt_min(&f->path), rtt) + open_backlog(f, mss, open_queueing(&f->path, rtt));
}

/* (1) and (3) */
static __always_inline void open_move_window(struct fs_at_open *f, u64 mss, u64 low, u64 q)
{
	u64 w = f->window, rtt_min = open_rtt_min(&f->path), fit = open_fit(f, mss, low), most, way;

	way = open_distance(fit, w) * open_eighths(&f->course, fit > w, q, rtt_min) / 8;
	if (fit > w) {
		most = max(w / OPEN_MOST_MOVED, mss);
		way = min(way, most);
		w += max(way, 1);
	} else {
		w -= min(way, w / OPEN_MOST_MOVED);
	}
	open_set_window(f, mss, w);
}

#endif
