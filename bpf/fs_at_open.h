/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The open mode of FS-AT, for queues that flows share: its state and its arithmetic, without kernel and floats. This is the twin of
 * crates/algorithms/src/congestion/fs_at_open.rs with its defaults, and tests hold the two together bit by bit. Equation numbers are
 * those of docs/algorithms/fs-at-open.md; quantities are in bytes and microseconds, times since the connection began.
 */
#ifndef SUIMON_FS_AT_OPEN_H
#define SUIMON_FS_AT_OPEN_H

#include "arithmetic.h"

/* No limit, or no value yet. */
#define OPEN_NONE (~0ULL)
/* Bytes and round trips that count at most: their product takes 64 bits. */
#define OPEN_MOST_BYTES (1ULL << 40)
#define OPEN_MOST_RTT ((1 << 24) - 1)
/* The parameter `age`. */
#define OPEN_AGE 5000000ULL
/* K of (2) in square microseconds. */
#define OPEN_BACKLOG 1200000000ULL
/* (3): so many eighths of the way, and no more than a quarter of the window; after so many rounds in a row that moved it the same way
 * while the queueing delay changed by no more than 1 over STILL, an eighth more each; rtt_min over LARGE_PART q bounds them. */
#define OPEN_LEAST_EIGHTHS 2ULL
#define OPEN_MOST_EIGHTHS 8
#define OPEN_MOST_MOVED 4
#define OPEN_ROUNDS_TO_TRUST 3
#define OPEN_STILL 16
#define OPEN_LARGE_PART 2
/* Where a round loses more than 1 over this of its bytes, the queue is full. */
#define OPEN_FULL_LOSES 16
/* (2) takes a queueing delay below rtt_min over this for that. */
#define OPEN_LEAST_QUEUE 64
#define OPEN_ENOUGH_SAMPLES 4
#define OPEN_SAMPLES_IN_STARTUP 8
/* Round trips up to 1/32 above the smallest count as that. */
#define OPEN_NEAR 32
/* (4): so many times the flow's own backlog less than rcv_bytes, for a queue up to rtt_min over the other. */
#define OPEN_DRAIN 3
#define OPEN_MOST_QUEUE 4
#define OPEN_DRAIN_WAIT 100000
#define OPEN_FALLING_ROUNDS 8
#define OPEN_ROUNDS_TO_REFILL 2
/* (8) */
#define OPEN_LONG_QUEUE 50000
#define OPEN_LONGEST_PART 8
#define OPEN_DIRTY_DRAINS 3
#define OPEN_RETRY 3500000
#define OPEN_COMPETE 3000000
#define OPEN_COMPETE_ON 3
#define OPEN_PERIODS_BESIDE 24
/* (11): losses before a trial; rounds of a trial, of which so many with a queue that is longer than this, and than rtt_min over the next, tell of others;
 * and the most segments whose square takes 64 bits. */
#define OPEN_LEAST_LOSSES 5
#define OPEN_TRIAL_ROUNDS 10
#define OPEN_ROUNDS_FILLED 3
#define OPEN_TRIAL_QUEUE 2000
#define OPEN_TRIAL_QUEUE_PART 16
#define OPEN_MOST_SEGMENTS (1ULL << 20)
/* (9): a step is longer than this, and than rtt_min over the next; round trips that differ by no more than 1 over the last stay. */
#define OPEN_STEP 10000
#define OPEN_STEP_PART 4
#define OPEN_SAME 64

/* (10): a queue is full from 7/8 of its longest on, and far from full below 5/8. */
#define OPEN_FULL 7
#define OPEN_FAR 5
#define OPEN_ROUNDS_TO_FILL 4
#define OPEN_RETURNS 3
#define OPEN_PERIODS_BETWEEN 4
#define OPEN_ROUNDS_TO_SETTLE 8

/* user space knows these numbers: crates/linux/src/congestion_trace/ */
enum open_mode { OPEN_STARTUP = 1, OPEN_STEADY, OPEN_DRAINING, OPEN_COMPETING, OPEN_HOLDING };
enum open_congestion { OPEN_LOSS, OPEN_MARK, OPEN_TIMEOUT };

/* The smallest round trip of this period and the two before, 0 without a sample. */
struct open_path {
	u64 periods[3];
	u64 began;
	u64 renewed;		/* when a round trip near the smallest was last seen */
};

struct open_round {
	u64 began;
	u64 end;		/* 0: none yet */
	u64 flight_size;
	u64 delivered;
	u64 lost;
	u64 low;		/* the smallest round trip */
	u64 samples;
	u8 app_limited;
};

struct open_drain {
	u64 reached;		/* when the flight was down */
	u64 rounds;
	u64 before;
	u64 floor;
	u64 target;		/* what it leaves in flight */
	u8 is_down;
	u8 first;		/* right after slow start */
	u8 competing;		/* the flow competed before */
};

/* What drains so far have told. */
struct open_drains {
	u64 last;
	u64 resting;
	u64 dirty;
	u64 dirty_queueing;
};

/* The way that the window takes. */
struct open_course {
	u64 rounds;		/* in a row that moved it the same way, while `queueing` stayed */
	u64 queueing;
	u64 grows;
};

/* A round trip that became longer at once, for as long as it stays; zero stands for none. */
struct open_step {
	u64 half;		/* half way up, below which the step is undone */
	u64 stays;		/* the round trip that stays */
	u64 window;		/* the window when it was first seen */
};

/* What came since the last trial, and the trial that is on. */
struct open_trial {
	u64 began;
	u64 delivered;
	u64 lost;		/* losses, not bytes */
	u64 left;		/* rounds */
	u64 filled;		/* rounds that saw a queue */
	u64 found;		/* a trial found the senders that the flow competes with */
};

/* The queue's length as others move it. */
struct open_rivals {
	u64 rounds;		/* since the flow itself made the queue shorter */
	u64 far_at;		/* how many there were when it was last far from full, 0: not since it was full */
	u64 returns;		/* times in a row that it became full again */
	u64 returned;		/* when it last did */
	u64 full;		/* round trip through the full queue */
	u64 drain_from;		/* a drain follows the first loss from then on */
	u64 lost;		/* when the last loss came */
	u64 between_losses;
	u8 is_due;		/* a loss that a drain follows has come */
};

struct fs_at_open {
	struct open_path path;
	struct open_round round;
	struct open_drain drain;
	struct open_course course;
	struct open_drains drains;
	struct open_step step;
	struct open_rivals rivals;
	struct open_trial trial;
	u64 window;
	u64 rcv_bytes;
	u64 low;		/* the smallest round trip of the last round */
	u64 queueing;
	u64 mean_queueing;
	u64 longest[2];
	u8 mode;
	u8 bears_loss;		/* slow start goes on in this recovery, since the loss was judged one of the radio */
};

/* What the sender obeys; the algorithm below has cwnd and ssthresh too. */
struct open_limits {
	u64 cwnd;
	u64 ssthresh;
	u64 space;
};

struct open_ack {
	u64 now;
	u64 newly_acked;
	u64 delivered;
	u64 snd_una;		/* counted from the start of the connection */
	u64 snd_nxt;
	u64 flight_size;
	u64 prior_flight_size;
	u64 mss;
	u32 rtt;		/* 0: no sample */
	u8 app_limited;
	u8 in_recovery;
};

static __always_inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

static __always_inline u64 share_of(u64 value, u64 part, u64 whole)
{
	return min(value, OPEN_MOST_BYTES) * part / max(whole, 1);
}

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

static __always_inline void open_clear_round(struct open_round *r)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->low = OPEN_NONE;
}

static __always_inline void open_begin_round(struct open_round *r, const struct open_ack *a)
{
	open_clear_round(r);
	r->began = a->now;
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

static __always_inline void open_start(struct fs_at_open *f, u32 rtt)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->mode = OPEN_STARTUP;
	f->round.low = OPEN_NONE;
	/* The handshake's round trip is the first, before the flow's own burst. */
	if (rtt)
		open_sample_path(&f->path, 0, min(rtt, OPEN_MOST_RTT), OPEN_AGE);
}

/* The path may be another: measurements of the old one are void, and the window stays. */
static __always_inline void open_forget_path(struct fs_at_open *f, const struct open_limits *l)
{
	if (f->mode == OPEN_COMPETING)
		f->window = l->cwnd;
	if (f->mode != OPEN_STARTUP)
		f->mode = OPEN_STEADY;
	__builtin_memset(&f->path, 0, sizeof(f->path));
	open_clear_round(&f->round);
	__builtin_memset(&f->drains, 0, sizeof(f->drains));
	__builtin_memset(&f->course, 0, sizeof(f->course));
	__builtin_memset(&f->step, 0, sizeof(f->step));
	__builtin_memset(&f->rivals, 0, sizeof(f->rivals));
	__builtin_memset(&f->trial, 0, sizeof(f->trial));
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

/* (2) */
static __always_inline u64 open_backlog(const struct fs_at_open *f, u64 mss, u64 q)
{
	q = max(q, open_rtt_min(&f->path) / OPEN_LEAST_QUEUE);
	q = max(q, 1);
	return share_of(mss, OPEN_BACKLOG, q * q);
}

static __always_inline void open_begin_drain(struct fs_at_open *f, const struct open_ack *a, u8 first, u8 competing)
{
	u64 rtt_min = open_rtt_min(&f->path), q = min(open_queueing(&f->path, f->round.low), rtt_min / OPEN_MOST_QUEUE);
	u64 target = less(f->rcv_bytes, share_of(f->rcv_bytes, OPEN_DRAIN * q, rtt_min));

	__builtin_memset(&f->drain, 0, sizeof(f->drain));
	f->mode = OPEN_DRAINING;
	f->drain.first = first;
	f->drain.competing = competing;
	f->drain.before = f->round.low;
	f->drain.floor = OPEN_NONE;
	f->drain.target = max(target, 2 * a->mss);
	open_begin_round(&f->round, a);
}

static __always_inline void open_end_startup(struct fs_at_open *f, const struct open_ack *a, u64 rcv_bytes, u64 q)
{
	f->rcv_bytes = rcv_bytes;
	f->window = max(rcv_bytes + open_backlog(f, a->mss, q), 4 * a->mss);
	open_begin_drain(f, a, 1, 0);
}

/* In a round of slow start, once enough samples came: whether twice (2) waits. */
static __always_inline void open_look(struct fs_at_open *f, const struct open_ack *a)
{
	u64 low = f->round.low, q = open_queueing(&f->path, low), flight = a->flight_size + a->delivered;

	if (f->round.samples != OPEN_SAMPLES_IN_STARTUP || !f->round.end || open_is_over(&f->round, a))
		return;
	if (share_of(flight, q, low) > 2 * open_backlog(f, a->mss, q))
		open_end_startup(f, a, share_of(flight, open_rtt_min(&f->path), low), q);
}

static __always_inline u64 open_distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
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

/* (1) and (3) */
static __always_inline void open_move_window(struct fs_at_open *f, u64 mss, u64 low, u64 q)
{
	u64 w = f->window, rtt_min = open_rtt_min(&f->path), fit = share_of(w, rtt_min, low) + open_backlog(f, mss, q), most, way;

	way = open_distance(fit, w) * open_eighths(&f->course, fit > w, q, rtt_min) / 8;
	if (fit > w) {
		most = max(w / OPEN_MOST_MOVED, mss);
		way = min(way, most);
		w += max(way, 1);
	} else {
		w -= min(way, w / OPEN_MOST_MOVED);
	}
	if (open_loses(&f->round, 8, mss))
		w = min(w, f->round.delivered * 7 / 8);
	w = max(w, 2 * mss);
	f->window = min(w, OPEN_MOST_BYTES);
}

static __always_inline void open_end_startup_round(struct fs_at_open *f, const struct open_ack *a, u64 q, u64 elapsed)
{
	u64 own = share_of(f->round.delivered, q, elapsed);

	if (open_loses(&f->round, OPEN_FULL_LOSES, a->mss)) {
		/* Lost beyond what a radio loses: the queue is full and too short to be seen. */
		f->window = max(f->round.delivered * 7 / 8, 4 * a->mss);
		f->mode = OPEN_STEADY;
	} else if (own > 2 * open_backlog(f, a->mss, q)) {
		open_end_startup(f, a, f->rcv_bytes, q);
	}
}

/* The flow itself makes the queue shorter. */
static __always_inline void open_settle(struct open_rivals *r)
{
	r->rounds = 0;
	r->far_at = 0;
}

/* (10), once a round of the steady mode: true where the queue has become full again and again. */
static __always_inline int open_others_fill(struct fs_at_open *f, u64 now, u64 q)
{
	u64 longest = max(f->longest[0], f->longest[1]);
	struct open_rivals *r = &f->rivals;

	r->rounds++;
	if (q < longest / 8 * OPEN_FAR) {
		if (r->rounds > OPEN_ROUNDS_TO_SETTLE)
			r->far_at = r->rounds;
	} else if (q >= longest / 8 * OPEN_FULL) {
		if (r->far_at && r->rounds - r->far_at >= OPEN_ROUNDS_TO_FILL) {
			r->returns = less(now, r->returned) <= OPEN_PERIODS_BETWEEN * open_period(f) ? r->returns + 1 : 1;
			r->returned = now;
		}
		r->far_at = 0;
	}
	return r->returns >= OPEN_RETURNS;
}

static __always_inline int open_is_full(const struct fs_at_open *f, u64 low)
{
	return open_queueing(&f->path, low) >= open_queueing(&f->path, f->rivals.full) / 8 * OPEN_FULL;
}

/* The smallest round trip of this round so far, or of the last. */
static __always_inline u64 open_low_now(const struct fs_at_open *f)
{
	return f->round.low == OPEN_NONE ? f->low : f->round.low;
}

/* No drain before `from`. */
static __always_inline void open_put_off(struct open_rivals *r, u64 from)
{
	r->drain_from = from;
	r->is_due = 0;
}

/* The algorithm below rules; open_takes_up() lets its curve begin here. */
static __always_inline void open_take_up(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->mode = OPEN_COMPETING;
	f->drains.last = a->now;
	open_put_off(&f->rivals, a->now + OPEN_COMPETE);
	if (a->newly_acked)
		l->cwnd = f->window;
	l->ssthresh = max(l->cwnd, 2 * a->mss);
}

/* Competition begins, in a queue that is taken to have been full when it was longest. */
static __always_inline void open_begin_competition(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->rivals.full = open_rtt_min(&f->path) + max(f->longest[0], f->longest[1]);
	f->rivals.returns = 0;
	f->window = max(f->window, 4 * a->mss);
	open_take_up(f, a, l);
}

/* A round of competition. */
static __always_inline void open_end_competing_round(struct fs_at_open *f, const struct open_ack *a, u64 low, const struct open_limits *l)
{
	u64 full = open_queueing(&f->path, f->rivals.full);

	if (open_queueing(&f->path, low) > full / 4 * 5 && !f->trial.found) {
		/* The queue was not full, so nothing tells of others. */
		f->window = min(l->cwnd, max(f->rcv_bytes, 2 * a->mss));
		open_begin_drain(f, a, 0, 0);
		return;
	}
	if (f->rivals.is_due || less(a->now, max(f->drains.last, f->rivals.lost)) > 2 * open_period(f)) {
		f->window = l->cwnd;
		open_begin_drain(f, a, 0, 1);
	}
}

/* A round in which the window is held: others fill the queue if it becomes full all the same. */
static __always_inline void open_end_held_round(struct fs_at_open *f, const struct open_ack *a, u64 low, struct open_limits *l)
{
	u64 wait = max(2 * f->rivals.between_losses, open_period(f));

	if (open_is_full(f, low)) {
		open_take_up(f, a, l);
		open_put_off(&f->rivals, a->now + OPEN_COMPETE_ON * open_period(f));
	} else if (less(a->now, f->drains.last) > min(wait, 6 * open_period(f))) {
		f->mode = OPEN_STEADY;
		f->mean_queueing = 0;
		f->window = min(f->window, max(f->rcv_bytes, 2 * a->mss));
	}
}

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

/* (9), once a round: true where another path is the cause of a step, since the window has come down to half and the round trip is
 * the same. */
static __always_inline int open_is_path(struct fs_at_open *f, u64 low, u64 mss)
{
	u64 last = f->low, more = max(OPEN_STEP, open_rtt_min(&f->path) / OPEN_STEP_PART);
	struct open_step *s = &f->step;

	f->low = low;
	if (open_loses(&f->round, OPEN_FULL_LOSES, mss)) {
		/* A full queue stays the same too. */
		__builtin_memset(s, 0, sizeof(*s));
		return 0;
	}
	if (last && low > last + more) {
		s->half = (last + low) / 2;
		s->stays = low;
		s->window = f->window;
	} else if (low < s->half) {
		__builtin_memset(s, 0, sizeof(*s));
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

static __always_inline void open_end_steady_round(struct fs_at_open *f, const struct open_ack *a, u64 low, u64 q, int is_path,
						  struct open_limits *l)
{
	if (f->trial.left) {
		open_end_trial_round(f, a, q, l);
		return;
	}
	if (f->drains.resting) {
		f->drains.resting--;
		return;
	}
	if (is_path) {
		open_take_path(f, a->now, low);
		return;
	}
	if (open_is_near_min(&f->path, low) && open_is_trial_due(f, a->now, a->mss)) {
		open_begin_trial(f, a->now, a->mss);
		return;
	}
	f->longest[0] = max(f->longest[0], q);
	f->mean_queueing = f->mean_queueing ? (7 * f->mean_queueing + q) / 8 : q;
	open_move_window(f, a->mss, low, q);
	if (open_others_fill(f, a->now, q))
		open_begin_competition(f, a, l);
	else if (less(a->now, f->path.renewed) > open_period(f))
		open_begin_drain(f, a, 0, 0);
}

/* A queueing delay that remains in a drain where others fill the queue. */
static __always_inline u64 open_long(const struct fs_at_open *f)
{
	return max(OPEN_LONG_QUEUE / 2, open_rtt_min(&f->path) / 4);
}

static __always_inline void open_end_round(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 low = f->round.low, elapsed = max(less(a->now, f->round.began), 1), q;
	int is_path;

	if (f->round.app_limited)
		return;
	q = open_queueing(&f->path, low);
	is_path = open_is_path(f, low, a->mss);
	f->trial.delivered += f->round.delivered;
	f->queueing = q;
	f->rcv_bytes = share_of(f->round.delivered, open_rtt_min(&f->path), elapsed);
	if (f->mode == OPEN_STARTUP) {
		open_end_startup_round(f, a, q, elapsed);
	} else if (f->mode == OPEN_STEADY) {
		open_end_steady_round(f, a, low, q, is_path, l);
	} else if (f->mode == OPEN_COMPETING) {
		open_end_competing_round(f, a, low, l);
	} else if (f->mode == OPEN_HOLDING) {
		open_end_held_round(f, a, low, l);
	}
}

/* (8): drain after drain the queue stays, and it does not shrink. */
static __always_inline int open_is_beside_others(struct fs_at_open *f)
{
	int shrinks = f->mean_queueing < f->drains.dirty_queueing / 8 * 7;

	f->drains.dirty = shrinks ? 1 : f->drains.dirty + 1;
	f->drains.dirty_queueing = f->mean_queueing;
	return f->drains.dirty >= OPEN_DIRTY_DRAINS;
}

/* The next drain comes soon. */
static __always_inline void open_drain_again(struct fs_at_open *f, u64 now)
{
	f->path.renewed = less(now, less(open_period(f), OPEN_RETRY));
}

static __always_inline void open_end_drain(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 mss = a->mss, floor = f->drain.floor, left = floor == OPEN_NONE ? 0 : open_queueing(&f->path, floor);
	u64 held = max(OPEN_LONG_QUEUE, max(f->longest[0], f->longest[1]) / OPEN_LONGEST_PART);
	int is_long = f->drain.competing || f->mean_queueing > held;
	int remains = left > open_long(f) && !f->drain.first;

	f->mode = OPEN_STEADY;
	f->path.renewed = a->now;
	if (!(remains && is_long)) {
		f->drains.dirty = 0;
		if (f->drain.competing && !f->trial.found) {
			f->mode = OPEN_HOLDING;
			/* Without a loss nothing has told that the queue is full: hold no more than the path does. */
			if (!f->rivals.is_due)
				f->window = min(f->window, max(f->rcv_bytes, 2 * mss));
		}
	} else if (f->drain.competing) {
		open_take_up(f, a, l);
	} else if (open_is_beside_others(f)) {
		open_begin_competition(f, a, l);
	} else {
		open_drain_again(f, a->now);
	}
	if (f->mode == OPEN_STEADY && (f->trial.found || open_is_trial_due(f, a->now, mss)))
		open_begin_trial(f, a->now, mss);
	l->ssthresh = max(f->window, 2 * mss);
	l->cwnd = min(l->cwnd, l->ssthresh);
	f->drains.last = a->now;
	f->rivals.is_due = 0;
	open_settle(&f->rivals);
	f->longest[1] = f->longest[0];
	f->longest[0] = 0;
	f->drains.resting = OPEN_ROUNDS_TO_REFILL;
	open_begin_round(&f->round, a);
}

/* (4) */
static __always_inline void open_advance_drain(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	struct open_drain *d = &f->drain;
	u64 low = f->round.low;

	if (!d->is_down) {
		if (a->flight_size <= d->target) {
			d->is_down = 1;
			d->reached = a->now;
			d->before = min(d->before, low);
			open_begin_round(&f->round, a);
		}
		return;
	}
	d->floor = min(d->floor, low);
	if (!open_is_over(&f->round, a))
		return;
	if (d->rounds < OPEN_FALLING_ROUNDS && low != OPEN_NONE && low < d->before - d->before / 16) {
		/* Others leave the queue too: stay with them until it is empty. */
		d->before = low;
		d->rounds++;
		open_begin_round(&f->round, a);
	} else if (open_is_near_min(&f->path, d->floor) ||
		   less(a->now, d->reached) >= max(OPEN_DRAIN_WAIT, open_rtt_min(&f->path))) {
		open_end_drain(f, a, l);
	}
}

static __always_inline void open_apply(const struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	u64 window = max(f->window, 2 * a->mss);

	if (f->mode == OPEN_STARTUP || f->mode == OPEN_COMPETING) {
		l->space = OPEN_NONE;
		/* The first retransmission may have needed more. */
		if (a->in_recovery && f->mode == OPEN_COMPETING)
			l->cwnd = min(l->cwnd, l->ssthresh);
		return;
	}
	l->space = f->mode == OPEN_DRAINING ? f->drain.target : window;
	if (a->newly_acked) {
		l->cwnd = window;
		l->ssthresh = min(l->ssthresh, window);
	}
}

/* An acknowledgement comes in; the algorithm below moves cwnd behind this where open_below_rules(), and then comes open_on_ack(). */
static __always_inline void open_sample(struct fs_at_open *f, const struct open_ack *a)
{
	u64 rtt = min(a->rtt, OPEN_MOST_RTT), period = open_period(f);

	if (!rtt)
		return;
	/* Beside others the queue is seldom empty, so the path is remembered for longer. */
	if (f->mode == OPEN_COMPETING || f->mode == OPEN_HOLDING || f->drains.dirty)
		period *= OPEN_PERIODS_BESIDE;
	open_sample_path(&f->path, a->now, rtt, period);
	f->round.low = min(f->round.low, rtt);
	f->round.samples++;
	if (f->mode == OPEN_STARTUP)
		open_look(f, a);
}

static __always_inline int open_below_rules(const struct fs_at_open *f)
{
	return f->mode == OPEN_STARTUP || f->mode == OPEN_COMPETING;
}

/* The algorithm below stands still in recovery: where the loss was the radio's, slow start goes on all the same. */
static __always_inline void open_go_on_in_recovery(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	f->bears_loss &= a->in_recovery && f->mode == OPEN_STARTUP;
	if (f->bears_loss && !a->app_limited)
		l->cwnd += a->delivered;
}

static __always_inline void open_on_ack(struct fs_at_open *f, const struct open_ack *a, struct open_limits *l)
{
	open_go_on_in_recovery(f, a, l);
	open_count(&f->round, a);
	if (!open_rtt_min(&f->path))
		return;
	if (f->mode == OPEN_DRAINING) {
		open_advance_drain(f, a, l);
	} else if (!f->round.end) {
		open_begin_round(&f->round, a);
	} else if (open_is_over(&f->round, a) && f->round.samples >= OPEN_ENOUGH_SAMPLES) {
		open_end_round(f, a, l);
		if (f->mode != OPEN_DRAINING)
			open_begin_round(&f->round, a);
	}
	open_apply(f, a, l);
}

/* Whether competition began with this acknowledgement, which found the mode `before`: the algorithm below then takes cwnd for the
 * window before a loss, so that its curve begins here. That of its last competition would be steep by now. */
static __always_inline int open_takes_up(const struct fs_at_open *f, u8 before)
{
	return f->mode == OPEN_COMPETING && before != OPEN_COMPETING;
}

/* While the window is held: whether this congestion is a full queue's. */
static __always_inline int open_is_filled(const struct fs_at_open *f, enum open_congestion kind)
{
	return kind == OPEN_MARK || (kind == OPEN_LOSS && open_is_full(f, open_low_now(f)));
}

/* Whether the algorithm below answers this congestion; it does so before open_on_congestion(), with the window that stands in cwnd. */
static __always_inline int open_asks_below(const struct fs_at_open *f, enum open_congestion kind, struct open_limits *l)
{
	if (f->mode == OPEN_DRAINING && f->drain.competing) {
		l->cwnd = f->window;
		return 1;
	}
	if (f->mode == OPEN_HOLDING)
		return open_is_filled(f, kind);
	return f->mode == OPEN_COMPETING || (f->mode == OPEN_STARTUP && kind == OPEN_TIMEOUT);
}

/* (6) for a loss: the window gives way only where the queue is about as long as it gets. */
static __always_inline void open_judge_loss(struct fs_at_open *f, u64 mss)
{
	u64 q = open_queueing(&f->path, open_low_now(f));

	if (q > 2000 && q * 4 >= max(f->longest[0], f->longest[1]) * 3) {
		f->window = max(f->window / 8 * 7, 2 * mss);
		open_settle(&f->rivals);
	}
}

/* A loss in competition: the queue is full. */
static __always_inline void open_lose(struct fs_at_open *f, u64 now)
{
	struct open_rivals *r = &f->rivals;

	r->full = max(r->full, open_low_now(f));
	r->between_losses = less(now, r->lost);
	r->lost = now;
	r->is_due |= now >= r->drain_from;
}

/* The network is congested, or seems to be, at `now`. True where the loss is taken for a radio's. */
static __always_inline int open_on_congestion(struct fs_at_open *f, enum open_congestion kind, u64 now, u64 flight_size, u64 mss,
					      struct open_limits *l)
{
	u8 was_held = f->mode == OPEN_HOLDING && open_is_filled(f, kind);
	u64 before = f->window, kept, q;

	if (was_held) {
		f->mode = OPEN_COMPETING;
		f->drains.last = now;
	}
	if (f->mode == OPEN_COMPETING || (f->mode == OPEN_DRAINING && f->drain.competing)) {
		kept = min(l->cwnd, l->ssthresh);
		l->cwnd = max(kept, mss);
		if (f->mode == OPEN_DRAINING)
			f->window = max(l->cwnd, 2 * mss);
		else if (kind == OPEN_LOSS)
			open_lose(f, now);
		if (was_held)
			open_put_off(&f->rivals, now + OPEN_COMPETE_ON * open_period(f));
		return 0;
	}
	if (f->mode == OPEN_STARTUP) {
		if (kind == OPEN_TIMEOUT)
			return 0;
		q = f->round.low == OPEN_NONE ? 0 : open_queueing(&f->path, f->round.low);
		if (q > open_rtt_min(&f->path) / 4 || kind == OPEN_MARK) {
			f->window = max(flight_size / 2, 4 * mss);
			f->mode = OPEN_STEADY;
			l->ssthresh = f->window;
			return 0;
		}
		/* As (10) of the paper: nothing is queued, so the loss is the radio's. */
		f->bears_loss = 1;
		kept = max(l->ssthresh, l->cwnd);
		l->ssthresh = max(kept, 2 * mss);
		return 1;
	}
	if (kind == OPEN_TIMEOUT) {
		/* A radio that was silent goes on as before: no more than it is known to hold. */
		f->window = min(f->window, max(f->rcv_bytes, 2 * mss));
		l->ssthresh = max(f->window, 2 * mss);
		return 1;
	}
	if (kind == OPEN_MARK) {
		/* A mark was set by a queue: the radio does not mark. */
		f->window = max(f->window / 8 * 7, 2 * mss);
		l->ssthresh = f->window;
		return 0;
	}
	if (f->mode == OPEN_STEADY) {
		f->trial.lost++;
		open_judge_loss(f, mss);
	}
	l->ssthresh = max(l->cwnd, 2 * mss);
	return f->window == before;
}

#endif
