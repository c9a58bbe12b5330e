/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The kernel's Reno as the algorithm below FS-AT, as in the paper. */
#ifndef SUIMON_FS_AT_RENO_H
#define SUIMON_FS_AT_RENO_H

#include "kernel.h"

static __always_inline void inner_init(struct sock *sk)
{
}

static __always_inline u32 inner_ssthresh(struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

static __always_inline void inner_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

static __always_inline void inner_set_state(struct sock *sk, u8 state)
{
}

static __always_inline void inner_cwnd_event(struct sock *sk, u32 event)
{
}

static __always_inline void inner_tx_start(struct sock *sk)
{
}

#endif
