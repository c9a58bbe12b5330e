// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The kernel's open mode as an ordinary program, for crates/linux/tests/open_arithmetic.rs: reads an event a line, and writes the
 * trace that the program in the kernel would write. BELOW is the answer of the algorithm below, should it be asked.
 *   s CWND RTT_US TS_VAL                                                                        the start
 *   a NOW_US RTT_US NEWLY_ACKED DELIVERED FLIGHT PRIOR OUTSTANDING APP_LIMITED KERNEL BELOW STATE TS_VAL SND_WND  an acknowledgement
 *   l|m|t NOW_US FLIGHT KERNEL SSTHRESH BELOW                                                a loss, a mark, a timeout
 *   p NOW_US                                                                                 the path may be another one
 */
#include <stdio.h>

#include "../fs_at_open.h"

/* As in crates/linux/tests/open_arithmetic.rs. */
#define MSS 1448
/* As in ../kernel.h. */
#define TCP_CA_RECOVERY 3

struct input {
	u64 now;
	u64 newly_acked;
	u64 delivered;
	u64 flight_size;
	u64 prior;
	u64 outstanding;
	u32 rtt;
	u32 kernel_cwnd;
	u32 ssthresh;
	u32 below;
	u32 decided;
	u32 app_limited;
	u32 ca_state;
	u32 ts_val;
	u32 snd_wnd;
};

static void tell(const char *event, u32 number, const struct fs_at_open *f, const struct open_limits *l, const struct input *i)
{
	printf("{\"event\":\"%s\",\"connection\":1,\"now_us\":%llu,\"rcv_bytes\":%llu,\"target_bytes\":%llu,\"space_bytes\":%llu,"
	       "\"rtt_min_us\":%llu,\"cwnd_segments\":%llu,\"queued_half_segments\":0,\"dwnd_segments\":0,\"queueing_us\":%llu,"
	       "\"mode\":%u,\"number\":%u,\"newly_acked\":%llu,\"delivered\":%llu,\"flight_size\":%llu,\"snd_wnd\":%u,\"rtt_us\":%u,"
	       "\"mss\":%u,\"snd_cwnd\":0,\"ssthresh\":%u,\"prior_flight_size\":%llu,\"outstanding\":%llu,\"kernel_cwnd\":%u,"
	       "\"below\":%u,\"decided\":%u,\"local_port\":0,\"remote_port\":0,\"ca_state\":%u,\"app_limited\":%u,\"radio\":0,\"ts_val\":%u}\n",
	       event, i->now, f->rcv_bytes, f->window, l->space == OPEN_NONE ? 0 : l->space, open_rtt_min(&f->path), l->cwnd / MSS,
	       f->queueing, f->mode, number, i->newly_acked, i->delivered, i->flight_size, i->snd_wnd, i->rtt, MSS, i->ssthresh, i->prior,
	       i->outstanding, i->kernel_cwnd, i->below, i->decided, i->ca_state, i->app_limited, i->ts_val);
}

static void acknowledge(struct fs_at_open *f, struct open_limits *l, struct input *i, u64 *snd_una)
{
	struct open_ack a = {
		.now = i->now,
		.newly_acked = i->newly_acked,
		.delivered = i->delivered,
		.snd_una = *snd_una += i->newly_acked,
		.snd_nxt = *snd_una + i->outstanding,
		.flight_size = i->flight_size,
		.prior_flight_size = i->prior,
		.snd_wnd = i->snd_wnd,
		.mss = MSS,
		.rtt = i->rtt,
		.ts_val = i->ts_val,
		.app_limited = i->app_limited,
		.in_recovery = i->ca_state == TCP_CA_RECOVERY,
	};

	open_sample(f, &a);
	if (!open_below_rules(f))
		i->below = 0;
	else if (i->below)
		l->cwnd = i->below * (u64)MSS;
	open_on_ack(f, &a, l);
	i->decided = max(min(l->cwnd, l->space) / MSS, 1);
}

static void congest(struct fs_at_open *f, struct open_limits *l, struct input *i, enum open_congestion kind)
{
	l->ssthresh = i->ssthresh * (u64)MSS;
	if (open_asks_below(f, kind, l))
		l->ssthresh = i->below * (u64)MSS;
	else
		i->below = 0;
	open_on_congestion(f, kind, i->now, i->prior, MSS, l);
	i->decided = l->ssthresh / MSS;
}

int main(int argc, char **argv)
{
	struct open_limits l = { .space = OPEN_NONE };
	struct fs_at_open f = {};
	u64 snd_una = 0;
	char line[256];

	for (u32 number = 0; fgets(line, sizeof(line), stdin); number++) {
		const char *event = "ack", *numbers = line + 1;
		struct input i = {};

		if (line[0] == 's' && sscanf(numbers, "%u %u %u", &i.kernel_cwnd, &i.rtt, &i.ts_val) == 3) {
			event = "start";
			open_start(&f, i.rtt, i.ts_val);
		} else if (line[0] == 'a' && sscanf(numbers, "%llu %u %llu %llu %llu %llu %llu %u %u %u %u %u %u", &i.now, &i.rtt,
						    &i.newly_acked, &i.delivered, &i.flight_size, &i.prior, &i.outstanding,
						    &i.app_limited, &i.kernel_cwnd, &i.below, &i.ca_state, &i.ts_val, &i.snd_wnd) != 13) {
			return 1;
		} else if (line[0] == 'p' && sscanf(numbers, "%llu", &i.now) == 1) {
			event = "path";
		} else if (line[0] != 'a') {
			if (sscanf(numbers, "%llu %llu %u %u %u", &i.now, &i.prior, &i.kernel_cwnd, &i.ssthresh, &i.below) != 5)
				return 1;
			event = line[0] == 'l' ? "loss" : line[0] == 'm' ? "mark" : "timeout";
		}
		if (i.kernel_cwnd)
			l.cwnd = i.kernel_cwnd * (u64)MSS;
		if (line[0] == 'a')
			acknowledge(&f, &l, &i, &snd_una);
		else if (line[0] == 'p')
			open_forget_path(&f, &l);
		else if (line[0] != 's')
			congest(&f, &l, &i, line[0] == 'l' ? OPEN_LOSS : line[0] == 'm' ? OPEN_MARK : OPEN_TIMEOUT);
		tell(event, number, &f, &l, &i);
	}
	return 0;
}
