/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The records of every algorithm here for user space: a line for each connection (`suimon cc stat`) and a record for each event
 * (`suimon cc trace`). crates/linux/src/congestion/record.rs reads both structs with this layout.
 */
#ifndef SUIMON_CONNECTION_H
#define SUIMON_CONNECTION_H

#include "kernel.h"

enum event {
	EVENT_START,
	EVENT_ACK,
	EVENT_LOSS,
	EVENT_MARK,
	EVENT_TIMEOUT,
	EVENT_UNDO,
	EVENT_PATH,
	EVENT_END,
};

/* Counts since the connection began. */
struct counts {
	u32 radio;
	u32 congestion;
	u32 marks;
	u32 timeouts;
	u32 undone;
	u32 paths;
};

/* Values of the algorithm; each algorithm uses those that it has. */
struct values {
	u64 rcv_bytes;
	u64 target;		/* bytes, 0: control is off */
	u64 space;		/* bytes, 0: not used */
	u32 rtt_min_us;
	u32 cwnd;		/* the algorithm's, in segments */
	u32 queued;		/* estimate of its own backlog, in half segments */
	u32 dwnd;		/* Compound's delay window, in segments */
	u32 queueing_us;	/* the open mode's queueing delay of the last round */
	u32 mode;		/* the open mode's: 1 slow start, 2 steady, 3 draining, 4 competing; 0: it is none */
};

struct record {
	u64 connection;		/* numbered from 1 as they start */
	u64 now_us;
	struct values values;	/* after the event */
	u32 number;		/* of this record within its connection, from 0 */
	u32 newly_acked;	/* bytes */
	u32 delivered;		/* bytes */
	u32 flight_size;	/* bytes */
	u32 snd_wnd;		/* bytes */
	u32 rtt_us;		/* 0: no sample */
	u32 mss;
	u32 snd_cwnd;		/* segments, as the kernel obeys it */
	u32 ssthresh;		/* segments */
	/* The open mode's, in bytes: */
	u32 prior_flight_size;
	u32 outstanding;	/* sent, and not acknowledged in order */
	/* In segments: */
	u32 kernel_cwnd;	/* the window that the kernel has set since the event before; 0: none */
	u32 below;		/* what the algorithm below answered: its window, or a threshold; 0: it was not asked */
	u32 decided;		/* the window, or a threshold for a congestion, before what recovery may send beyond it */
	u32 ts_val;		/* the peer's time (RFC 7323), 0: none */
	u16 local_port;
	u16 remote_port;
	u8 event;
	u8 ca_state;
	u8 app_limited;
	u8 radio;
};

struct status {
	u64 connection;
	struct values values;
	struct counts counts;
	u32 flight_size;	/* bytes */
	u32 mss;
	u32 snd_cwnd;
	u32 ssthresh;
	u32 srtt_us;
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u8 family;		/* of the addresses, AF_INET or AF_INET6 */
	u8 tcp_state;
	u8 ca_state;
	u8 unused[5];
};

/* Events of all connections of this algorithm; events are lost where the reader is slow. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

/* Process id of the reader of the events; with 0 no events are written. A map of its own can be set from outside. */
volatile u32 tracer SEC(".data.tracer") = 0;

struct totals {
	u64 connections;	/* ever started */
	u64 events_lost;	/* for want of room */
};

struct totals totals = {};

static __always_inline u64 number_connection(void)
{
	return __sync_fetch_and_add(&totals.connections, 1) + 1;
}

/* A record with the fields of any event; null without a reader. */
static __always_inline struct record *new_record(struct sock *sk, u64 connection, u32 number, u8 event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct record *r;

	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&totals.events_lost, 1);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->connection = connection;
	r->number = number;
	r->event = event;
	r->now_us = tp->tcp_mstamp;
	r->flight_size = tcp_packets_in_flight(tp) * tp->mss_cache;
	r->snd_wnd = tp->snd_wnd;
	r->mss = tp->mss_cache;
	r->snd_cwnd = tp->snd_cwnd;
	r->ssthresh = tp->snd_ssthresh;
	r->ca_state = tcp_ca_state(sk);
	r->local_port = sk->__sk_common.skc_num;
	r->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	return r;
}

/* The addresses and the window of a connection. */
static __always_inline void describe(struct status *s, struct tcp_sock *tp)
{
	struct sock_common *c = &((struct sock *)tp)->__sk_common;

	s->family = c->skc_family;
	s->tcp_state = c->skc_state;
	s->ca_state = tcp_ca_state((struct sock *)tp);
	s->local_port = c->skc_num;
	s->remote_port = __builtin_bswap16(c->skc_dport);
	if (s->family == AF_INET) {
		*(u32 *)s->local = c->skc_rcv_saddr;
		*(u32 *)s->remote = c->skc_daddr;
	} else {
#pragma unroll
		for (int i = 0; i < 16; i++) {
			s->local[i] = c->skc_v6_rcv_saddr.in6_u[i];
			s->remote[i] = c->skc_v6_daddr.in6_u[i];
		}
	}
	s->flight_size = tcp_packets_in_flight(tp) * tp->mss_cache;
	s->mss = tp->mss_cache;
	s->snd_cwnd = tp->snd_cwnd;
	s->ssthresh = tp->snd_ssthresh;
	s->srtt_us = tp->srtt_us >> 3;
}

#endif
