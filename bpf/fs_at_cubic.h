/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The kernel's own CUBIC as the algorithm below FS-AT. It keeps its state in icsk_ca_priv as always. */
#ifndef SUIMON_FS_AT_CUBIC_H
#define SUIMON_FS_AT_CUBIC_H

#include "kernel.h"

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, u8 state) __ksym;
/* A kernel has one of these two: see struct tcp_congestion_ops. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;

static __always_inline void inner_init(struct sock *sk)
{
	cubictcp_init(sk);
}

static __always_inline u32 inner_ssthresh(struct sock *sk)
{
	return cubictcp_recalc_ssthresh(sk);
}

static __always_inline void inner_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	cubictcp_cong_avoid(sk, ack, acked);
}

static __always_inline void inner_set_state(struct sock *sk, u8 state)
{
	cubictcp_state(sk, state);
}

static __always_inline void inner_cwnd_event(struct sock *sk, u32 event)
{
	if (!this_kernel.has_tx_start)
		cubictcp_cwnd_event(sk, event);
}

static __always_inline void inner_tx_start(struct sock *sk)
{
	if (this_kernel.has_tx_start)
		cubictcp_cwnd_event_tx_start(sk);
	else
		inner_cwnd_event(sk, CA_EVENT_TX_START);
}

#endif
