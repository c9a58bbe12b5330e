/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Connections of this host to one client share one target: FS-AT measures all of them as one, and each may have a share of the
 * space in flight. Young connections have larger shares, so that a page need not wait for a download.
 * crates/simulator/src/gateway.rs has the same for simulations. Included behind struct connection.
 *
 * Without SHARED a connection has all of its own space.
 */
#ifndef SUIMON_CLIENT_H
#define SUIMON_CLIENT_H

#include "kernel.h"
#include "fs_at.h"

#ifdef SHARED

/* A connection is young until it has carried so much since it began or was silent, in bytes: what a large page weighs. */
#define YOUNG 2000000
/* So often a young connection counts. A download beside it keeps a ninth. */
#define WEIGHT_OF_YOUNG 8

/* An IPv4 address, or an IPv6 network of 64 bits, in which a host chooses its addresses. */
struct client_key {
	u64 namespace;
	u64 address;
};

struct client {
	struct bpf_spin_lock lock;
	u32 connections;
	u32 weights;		/* of those that have data to send */
	u64 id;			/* that of its first connection; 0: just made */
	u64 flight_size;	/* of all connections, as far as each is known */
	u64 last_ack_us;
	struct fs_at fs_at;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct client_key);
	__type(value, struct client);
} clients SEC(".maps");

static const struct client no_client = {};

static __always_inline u64 bytes_of(const struct in6_addr *address, int from)
{
	u64 bytes = 0;

#pragma unroll
	for (int i = 0; i < 8; i++)
		bytes = bytes << 8 | address->in6_u[from + i];
	return bytes;
}

static __always_inline void name_client(struct client_key *key, struct sock *sk)
{
	struct sock_common *c = &sk->__sk_common;
	u64 network;

	key->namespace = c->skc_net.net->net_cookie;
	key->address = c->skc_daddr;
	if (c->skc_family == AF_INET)
		return;
	network = bytes_of(&c->skc_v6_daddr, 0);
	/* ::ffff:0:0/96 are IPv4 addresses (RFC 4291, section 2.5.5.2). */
	if (network || bytes_of(&c->skc_v6_daddr, 8) >> 32 != 0xffff)
		key->address = ~network;
}

/* Under the lock: counts a connection that is not counted yet. */
static __always_inline void count_in(struct client *client, struct connection *c, u64 cwnd)
{
	if (!client->id) {
		client->id = c->id;
		fs_at_start(&client->fs_at, cwnd, min_target);
	}
	if (c->client == client->id)
		return;
	c->client = client->id;
	c->client_flight = 0;
	c->client_weight = 0;
	client->connections++;
}

/* Under the lock: what this connection has in flight, and its weight, 0 where it has nothing to send, from now on. */
static __always_inline void count(struct client *client, struct connection *c, u64 flight_size, u32 weight)
{
	client->flight_size += flight_size - c->client_flight;
	client->weights += weight - c->client_weight;
	c->client_flight = flight_size;
	c->client_weight = weight;
}

/* How often a connection counts in its client's space. */
static __always_inline u32 weight_of(const struct tcp_sock *tp, const struct connection *c)
{
	return tp->bytes_acked - c->before_silence < YOUNG ? WEIGHT_OF_YOUNG : 1;
}

/* The part of the client's space that a weight gives, of two segments at least. */
static __always_inline u64 part(const struct client *client, u32 weight, u32 weights, u64 mss)
{
	u64 part = client->fs_at.space * weight / max(weights, weight);

	return max(part, 2 * mss);
}

/* What this connection has sent and not heard of, or may send at once. */
static __always_inline u64 due(const struct tcp_sock *tp, const struct connection *c, u64 flight_size)
{
	u64 limit = min(c->fs_at.space, c->share), mss = max(tp->mss_cache, 1), window = c->cwnd * mss;
	u64 waiting = flight_size + (tp->write_seq - tp->snd_nxt);

	limit = min(limit, window);
	limit = min(limit, waiting);
	return max(flight_size, limit);
}

static __always_inline struct client *client_of(struct sock *sk, int create)
{
	struct client_key key = {};
	struct client *client;

	name_client(&key, sk);
	client = bpf_map_lookup_elem(&clients, &key);
	if (client || !create)
		return client;
	/* Another processor may make it in the same moment; where the map is full, the connection has all of its space. */
	bpf_map_update_elem(&clients, &key, &no_client, BPF_NOEXIST);
	return bpf_map_lookup_elem(&clients, &key);
}

/* Data leaves with nothing in flight, first of all or after silence: the connection takes its share beside the others. */
static __always_inline void share_at_start(struct sock *sk, struct connection *c)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct client *client = client_of(sk, 1);
	u64 mss = max(tp->mss_cache, 1), cwnd = c->cwnd * mss, first, share;
	u32 weight = weight_of(tp, c), ours, kernels;

	c->share = ~0ULL;
	if (!client)
		return;
	bpf_spin_lock(&client->lock);
	count_in(client, c, cwnd);
	c->share = part(client, weight, client->weights - c->client_weight + weight, mss);
	first = due(tp, c, 0);
	/* A connection that sends at once all that it has does not count as one that has data to send. */
	count(client, c, first, tp->write_seq - tp->snd_nxt > first ? weight : 0);
	bpf_spin_unlock(&client->lock);
	share = c->share / mss;
	ours = once(c->cwnd);
	kernels = once(tp->snd_cwnd);
	if (kernels > share) {
		c->cwnd = kernels == once(c->written) ? ours : kernels;
		tp->snd_cwnd = share;
		c->written = share;
		c->by_space = 1;
	}
}

/* The client's FS-AT sees the acknowledgement as one of a connection that has all in flight that all have. */
static __always_inline void share_on_ack(struct sock *sk, struct connection *c, const struct fs_at_ack *a)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct client *client = client_of(sk, 1);
	u64 mss = max(tp->mss_cache, 1), cwnd = c->cwnd * mss;
	u32 weight = weight_of(tp, c);
	struct fs_at_ack all = *a;

	c->share = ~0ULL;
	if (!client)
		return;
	bpf_spin_lock(&client->lock);
	count_in(client, c, cwnd);
	count(client, c, a->flight_size, a->app_limited ? 0 : weight);
	all.flight_size = client->flight_size;
	all.snd_wnd *= client->connections;
	all.app_limited = !client->weights;
	if (client->last_ack_us && a->now_us > client->last_ack_us + IDLE_FORGETS_US)
		fs_at_forget_path(&client->fs_at);
	fs_at_on_ack(&client->fs_at, &all, min_target);
	client->last_ack_us = a->now_us;
	c->share = part(client, weight, client->weights, mss);
	count(client, c, due(tp, c, a->flight_size), c->client_weight);
	bpf_spin_unlock(&client->lock);
}

/* The route leaves by another device. */
static __always_inline void share_anew(struct sock *sk)
{
	struct client *client = client_of(sk, 0);

	if (!client)
		return;
	bpf_spin_lock(&client->lock);
	fs_at_forget_path(&client->fs_at);
	bpf_spin_unlock(&client->lock);
}

/* The connection ends; its client is forgotten with the last one. */
static __always_inline void share_at_end(struct sock *sk, struct connection *c)
{
	struct client *client = client_of(sk, 0);
	struct client_key key = {};
	u32 left = 1;

	if (!client)
		return;
	bpf_spin_lock(&client->lock);
	if (c->client == client->id) {
		count(client, c, 0, 0);
		left = --client->connections;
	}
	bpf_spin_unlock(&client->lock);
	if (left)
		return;
	name_client(&key, sk);
	bpf_map_delete_elem(&clients, &key);
}

#else

static __always_inline void share_at_start(struct sock *sk, struct connection *c)
{
}

static __always_inline void share_on_ack(struct sock *sk, struct connection *c, const struct fs_at_ack *a)
{
}

static __always_inline void share_anew(struct sock *sk)
{
}

static __always_inline void share_at_end(struct sock *sk, struct connection *c)
{
}

#endif
#endif
