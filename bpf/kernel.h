/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The parts of the kernel that the programs use: only the members that they read or write, found in the running kernel by name
 * (CO-RE). So one object serves every 6.x, and building needs no kernel headers.
 */
#ifndef SUIMON_KERNEL_H
#define SUIMON_KERNEL_H

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define core __attribute__((preserve_access_index))

#include "arithmetic.h"

/* A value in a register of its own: the verifier refuses one load instruction for two kinds of pointer, into which clang may merge two. */
static __always_inline u32 once(u32 value)
{
	asm volatile("" : "+r"(value));
	return value;
}

/* In the value of a map: only one program at a time is between lock and unlock. */
struct bpf_spin_lock {
	u32 val;
};

/* Helpers by their number in the kernel's interface (include/uapi/linux/bpf.h). */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static u64 (*bpf_jiffies64)(void) = (void *)118;
static long (*bpf_seq_write)(void *seq, const void *data, u32 len) = (void *)127;
static void *(*bpf_ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_NOEXIST 1
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1

enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { TCP_CA_OPEN, TCP_CA_DISORDER, TCP_CA_CWR, TCP_CA_RECOVERY, TCP_CA_LOSS };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_CONG_NON_RESTRICTED 1
#define AF_INET 2

struct netns_ipv4 {
	u8 sysctl_tcp_slow_start_after_idle;
	s32 sysctl_tcp_pacing_ss_ratio;
	s32 sysctl_tcp_pacing_ca_ratio;
	s32 sysctl_tcp_reordering;
} core;

struct net {
	u64 net_cookie;
	struct netns_ipv4 ipv4;
} core;

typedef struct {
	struct net *net;
} core possible_net_t;

struct in6_addr {
	u8 in6_u[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} core;

struct net_device {
	s32 ifindex;
} core;

struct dst_entry {
	struct net_device *dev;
} core;

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	s32 sk_wmem_queued;
	s32 sk_sndbuf;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} core;

struct inet_sock {
	struct sock sk;
} core;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	u8 icsk_pending;
} core;

struct minmax_sample {
	u32 v;
} core;

struct minmax {
	struct minmax_sample s[3];
} core;

struct tcp_options_received {
	u32 rcv_tsval;
} core;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;
	struct tcp_options_received rx_opt;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u64 bytes_acked;
	u32 write_seq;
	u32 snd_wnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prr_out;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 reordering;
	u32 undo_marker;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 lsndtime;
	u32 max_packets_out;
	u8 is_cwnd_limited : 1;
} core;

struct rate_sample {
	long rtt_us;
	s32 losses;
	u32 acked_sacked;
	u32 prior_in_flight;
} core;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} core;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} core;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	void *map;
	struct sock *sk;
	void *value;
} core;

/* libbpf fits this to the kernel's own by name, and leaves out members that a kernel lacks, with their programs. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	/* Since 7.1, in place of the event CA_EVENT_TX_START. */
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/* Set before loading, as the verifier leaves out what a kernel has not only where a constant says so. */
const volatile struct {
	/* Four since 6.10, two before. */
	u32 cong_control_arguments;
	/* Whether it calls cwnd_event_tx_start. */
	u32 has_tx_start;
} this_kernel SEC(".rodata.kernel") = { 4, 1 };

/* Functions of the kernel's own algorithms, open to struct_ops programs since 5.13. */
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* A bit field, at its place in this kernel; the numbers are clang's for byte offset, byte size and the two shifts. */
#define bit_field(from, field) ({                                                     \
	void *at_ = (void *)(from) + __builtin_preserve_field_info((from)->field, 0); \
	u64 bits_ = 0;                                                                \
	switch (__builtin_preserve_field_info((from)->field, 1)) {                    \
	case 1:                                                                       \
		bits_ = *(u8 *)at_;                                                   \
		break;                                                                \
	case 2:                                                                       \
		bits_ = *(u16 *)at_;                                                  \
		break;                                                                \
	case 4:                                                                       \
		bits_ = *(u32 *)at_;                                                  \
		break;                                                                \
	case 8:                                                                       \
		bits_ = *(u64 *)at_;                                                  \
		break;                                                                \
	}                                                                             \
	bits_ <<= __builtin_preserve_field_info((from)->field, 4);                    \
	bits_ >> __builtin_preserve_field_info((from)->field, 5);                     \
})

static __always_inline u32 tcp_ca_state(struct sock *sk)
{
	return bit_field(inet_csk(sk), icsk_ca_state);
}

/* As in the kernel: in slow start a window may be half used, since it doubles. */
static __always_inline int tcp_is_cwnd_limited(struct tcp_sock *tp)
{
	if (bit_field(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

#endif
