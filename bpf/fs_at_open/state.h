/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What the open mode knows, and what it is told. */
#ifndef SUIMON_FS_AT_OPEN_STATE_H
#define SUIMON_FS_AT_OPEN_STATE_H

#include "../arithmetic.h"
#include "../fs_at.h"

/* No limit, or no value yet. */
#define OPEN_NONE (~0ULL)
/* Bytes and round trips that count at most: their product takes 64 bits. */
#define OPEN_MOST_BYTES (1ULL << 40)
#define OPEN_MOST_RTT ((1 << 24) - 1)
/* The parameter `age`. */
#define OPEN_AGE 5000000ULL

/* user space knows these numbers: crates/linux/src/congestion_trace/ */
enum open_mode { OPEN_STARTUP = 1, OPEN_STEADY, OPEN_DRAINING, OPEN_COMPETING, OPEN_HOLDING };
enum open_congestion { OPEN_LOSS, OPEN_MARK, OPEN_TIMEOUT };

/* The smallest round trip of this period and the two before, 0 without a sample. */
struct open_path {
	u64 periods[3];
	u64 began;
	u64 renewed;		/* when a round trip near the smallest was last seen */
	u64 first;		/* the first round trip, 0 before it */
	u64 shorter;		/* shorter round trips in a row */
	u64 least_before;	/* the smallest before them */
};

/* The way back of acknowledgements, by the peer's clock. */
struct open_way_back {
	u64 shortest;		/* the difference of the two clocks in it, 0 before the first; rises with their drift */
	u64 rose;
	u64 wait;		/* how much longer the way of the last acknowledgement was */
	u64 busy_until;		/* traffic the other way is known of until then */
	u32 first;		/* the first time that the peer told */
	u8 is_strange;		/* the clock ticks otherwise */
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
	u64 joined;		/* the round trip before it, where the flow joined the drain of others; 0: it did not */
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
	u64 emptied;		/* the window when a drain last emptied the queue */
	u64 found;		/* drains found the senders that the flow competes with */
	u64 others_leave;	/* they begin to leave the queue, shortly before this flow does */
	u64 others_left;	/* others left the queue since the last drain */
	u64 grown;		/* when slow start ended */
	u64 awaits_second;	/* the second drain is still to come */
};

/* The way that the window takes. */
struct open_course {
	u64 rounds;		/* in a row that moved it the same way, while `queueing` stayed */
	u64 queueing;
	u64 grows;
};

/* How round trips change from one round to the next, summed up. */
struct open_variation {
	u64 last;		/* the queueing delay of the last round, and 1; 0: that did not count */
	u64 moved;		/* sums of the changes of the queueing delay, of queueing delays, and of round trips */
	u64 queued;
	u64 round_trips;
};

/* A round trip that became longer at once, for as long as it stays; zero stands for none. */
struct open_step {
	u64 half;		/* half way up, below which the step is undone */
	u64 stays;		/* the round trip that stays */
	u64 window;		/* the window when it was first seen */
	u64 queue;		/* the longest round trip that fell at once by as much, since the queue was last empty */
};

/* What came since the last trial, and the trial that is on. */
struct open_trial {
	u64 began;
	u64 delivered;
	u64 lost_bytes;
	u64 congestions;	/* times that the network was congested: losses and marks */
	u64 marks;		/* the marks among these */
	u64 loss_before;	/* what was lost before it, in parts of what was confirmed */
	u64 window;		/* at its begin */
	u64 left;		/* rounds */
	u64 filled;		/* rounds that saw a queue */
	u64 low;		/* the smallest round trip in it */
	u64 goes_on;		/* since the flow loses less without a backlog */
	u64 found;		/* a trial found the senders that the flow competes with */
};

/* The queue's length as others move it. */
struct open_rivals {
	u64 rounds;		/* since the flow itself made the queue shorter */
	u64 far_at;		/* how many there were when it was last far from full, 0: not since it was full */
	u64 returns;		/* times in a row that it became full again */
	u64 returned;		/* when it last did */
	u64 longest;		/* queueing delay since the count of (14) began, 0: no count */
	u64 window;		/* then */
	u64 growths;		/* rounds in which the queue was longer */
	u64 full;		/* round trip through the full queue */
	u64 held;		/* the shortest queueing delay while the window is held */
	u64 drain_from;		/* a drain follows the first loss from then on */
	u64 lost;		/* when the last loss came */
	u64 between_losses;
	u8 is_due;		/* a loss that a drain follows has come */
};

/* Whether the flow is alone: the times between its segments, as they left and as they were acknowledged. */
struct open_alone {
	struct fs_at limit;	/* the flight's, where it is */
	u64 last_sent;		/* when the last segment left and was acknowledged, and how long it waited in the queue */
	u64 last_acked;
	u64 last_queueing;
	u64 pairs;		/* of this round, and sums over them of both times, of the first one's square and of their product */
	u64 sent;
	u64 acked;
	u64 sent_squared;
	u64 product;
	s64 covariance;		/* sums over all rounds of the covariance of both times, and of the first one's variance */
	s64 variance;
	u64 rounds;
	u64 rounds_since;	/* rounds for which the link is taken to vary, since the flow was alone */
	u64 close;		/* when a round trip was last close to rtt_min */
	u8 is_begun;		/* there is a last segment */
	u8 is_known;		/* the flow is alone */
};

struct fs_at_open {
	struct open_path path;
	struct open_way_back way_back;
	struct open_round round;
	struct open_drain drain;
	struct open_course course;
	struct open_drains drains;
	struct open_step step;
	struct open_rivals rivals;
	struct open_trial trial;
	struct open_variation variation;
	struct open_alone alone;
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
	u64 snd_wnd;
	u64 mss;
	u32 rtt;		/* 0: no sample */
	u32 ts_val;		/* the peer's time (RFC 7323), 0: none */
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

static __always_inline u64 open_distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

#endif
