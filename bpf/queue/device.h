/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * A policy in front of a device's queue: a program at the device's egress, just before a packet joins the root qdisc. The
 * policy of a device has one state for all processors, under a lock. Include a law before this file.
 */
#ifndef SUIMON_QUEUE_DEVICE_H
#define SUIMON_QUEUE_DEVICE_H

#include "context.h"
#include "policy.h"

#define __ksym __attribute__((section(".ksyms")))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define core __attribute__((preserve_access_index))

/* Helpers by their number in the kernel's interface (include/uapi/linux/bpf.h). */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_skb_load_bytes)(void *skb, u32 offset, void *to, u32 len) = (void *)26;
static u32 (*bpf_get_hash_recalc)(void *skb) = (void *)34;
struct bpf_spin_lock {
	u32 val;
};
static void (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static void (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*bpf_skb_ecn_set_ce)(void *skb) = (void *)97;
static void *(*bpf_ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_RINGBUF 27
/* The longest header of a link, and the largest super-packet. */
#define MAX_HEADER 64
#define MAX_SIZE (1 << 20)

struct gnet_stats_queue {
	u32 backlog;
} core;

struct qdisc_skb_head {
	u32 qlen;
} core;

struct Qdisc {
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
} core;

struct net_device {
	struct Qdisc *qdisc;
} core;

struct sk_buff {
	struct net_device *dev;
	u16 network_header;
	u16 mac_header;
} core;

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* crates/linux/src/queue/record.rs reads these. */
struct counts {
	u64 packets;
	u64 bytes;
	u64 marks;
	u64 drops;
	u64 overflows;
	/* Packets of several segments, judged once. */
	u64 super_packets;
	u64 backlog_bytes;
	u64 backlog_packets;
	u64 largest_backlog_bytes;
	/* Over arrivals. */
	u64 backlog_sum;
	/* The kernel's clock at the last arrival, and records that found no room. */
	u64 now;
	u64 lost_records;
	struct shown shown;
};

struct state {
	struct bpf_spin_lock lock;
	u32 unused;
	struct counts counts;
	struct policy policy;
};

struct record {
	u64 number;
	struct packet packet;
	u32 verdict;
	u32 segments;
};

struct settings settings SEC(".data.settings");

/* Where the program stands, for whoever lists it: names end with a zero. */
struct about {
	u8 policy[16];
	u8 device[16];
	u32 owns_qdisc;
	u32 index;
} about SEC(".data.about");

/* The process that reads the records; 0: nobody. */
u32 tracer SEC(".data.tracer");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} events SEC(".maps");

char _license[] SEC("license") = "Dual MPL/GPL";

static __always_inline void count(struct counts *c, const struct packet *packet, u32 verdict, u32 segments)
{
	c->packets++;
	c->bytes += packet->size;
	c->marks += verdict == VERDICT_MARK;
	c->drops += verdict == VERDICT_DROP;
	c->overflows += verdict == VERDICT_OVERFLOW;
	c->super_packets += segments > 1;
	c->backlog_bytes = packet->backlog_bytes;
	c->backlog_packets = packet->backlog_packets;
	c->backlog_sum += packet->backlog_bytes;
	if (packet->backlog_bytes > c->largest_backlog_bytes)
		c->largest_backlog_bytes = packet->backlog_bytes;
	c->now = packet->now;
}

#ifdef SEES_OPENINGS
#define IPPROTO_TCP 6
#define IPV6_HEADER 40
/* Where the protocol stands in a header of IPv4 and IPv6, and the flags in one of TCP. */
#define PROTOCOL 9
#define NEXT_HEADER 6
#define TCP_FLAGS 13
#define TCP_SYN 0x02
#define TCP_ACK 0x10

/* Whether it is a SYN without an ACK, behind a header of IP that begins with `first`. */
static __always_inline int opens_connection(struct __sk_buff *ctx, u32 header, u8 first)
{
	u32 is_v4 = ctx->protocol == ETH_P_IP, length = is_v4 ? (first & 15) * 4 : IPV6_HEADER;
	u8 protocol, flags;

	if (bpf_skb_load_bytes(ctx, header + (is_v4 ? PROTOCOL : NEXT_HEADER), &protocol, 1) || protocol != IPPROTO_TCP)
		return 0;
	if (bpf_skb_load_bytes(ctx, header + length + TCP_FLAGS, &flags, 1))
		return 0;
	return (flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}
#endif

/* Fills in what the packet's bytes tell; 0 where it is no IP. */
static __always_inline int look(struct __sk_buff *ctx, struct packet *packet, u32 segments)
{
	struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	struct Qdisc *qdisc = skb->dev->qdisc;
	u32 header = (u16)(skb->network_header - skb->mac_header);
	u8 first[2];

	if (ctx->protocol != ETH_P_IP && ctx->protocol != ETH_P_IPV6)
		return 0;
	if (header > MAX_HEADER)
		return 0;
	const u8 *ip = (void *)(long)ctx->data + header;

	if ((void *)(ip + sizeof(first)) <= (void *)(long)ctx->data_end) {
		first[0] = ip[0];
		first[1] = ip[1];
	} else if (bpf_skb_load_bytes(ctx, header, first, sizeof(first))) {
		return 0;
	}
	packet->ecn = ctx->protocol == ETH_P_IP ? first[1] & 3 : (first[1] >> 4) & 3;
	packet->size = less(ctx->wire_len, segments * header);
	packet->backlog_bytes = qdisc->qstats.backlog;
	packet->backlog_packets = qdisc->q.qlen;
	packet->flow = bpf_get_hash_recalc(ctx);
	packet->now = bpf_ktime_get_ns();
#ifdef SEES_OPENINGS
	packet->opens = opens_connection(ctx, header, first[0]);
#endif
	return packet->size > 0 && packet->size <= MAX_SIZE;
}

SEC("tcx/egress") int egress(struct __sk_buff *ctx)
{
	struct packet packet = {};
	u32 segments = max(ctx->gso_segs, 1), verdict, zero = 0;
	struct state *s = bpf_map_lookup_elem(&state, &zero);
	u64 number;

	if (!s || !look(ctx, &packet, segments))
		return TCX_NEXT;
	bpf_spin_lock(&s->lock);
	number = s->counts.packets;
	if (number == 0) {
		s->policy.count = NO_COUNT;
		s->policy.random = settings.seed;
	}
	/* Another processor may have looked at the clock later, and come first. */
	if (packet.now < s->counts.now)
		packet.now = s->counts.now;
	verdict = judge(&s->policy, &settings, &packet);
	count(&s->counts, &packet, verdict, segments);
	if ((number & 63) == 0)
		law_show(&s->policy.law, &settings, &s->counts.shown);
	bpf_spin_unlock(&s->lock);
	if (verdict == VERDICT_MARK)
		bpf_skb_ecn_set_ce(ctx);
	if (*(volatile u32 *)&tracer) {
		struct record *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);

		if (record) {
			record->number = number;
			record->packet = packet;
			record->verdict = verdict;
			record->segments = segments;
			bpf_ringbuf_submit(record, 0);
		} else {
			__sync_fetch_and_add(&s->counts.lost_records, 1);
		}
	}
	return verdict >= VERDICT_DROP ? TCX_DROP : TCX_NEXT;
}

#endif
