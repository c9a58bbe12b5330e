/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections for bench/gateway_speed.py:
 *   connections serve PORT                          answers each connection with a byte, and keeps it until its end
 *   connections rate ADDRESS PORT SECONDS AT_ONCE   opens as many as it can, a byte each; prints how many in a second
 *   connections hold ADDRESS PORT COUNT             opens COUNT, prints "open", and keeps them until its input ends
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 512

static int poller;

static void fail(const char *what)
{
	fprintf(stderr, "connections: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void watch(int fd, unsigned events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* A reset as it closes, so that no port waits for two minutes. */
static void reset(int fd)
{
	struct linger none = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static void serve(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct epoll_event ready[EVENTS];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1, count, fd;
	char buffer[64];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 65535) < 0)
		fail("listen");
	watch(listener, EPOLLIN);
	for (;;) {
		count = epoll_wait(poller, ready, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			if (ready[i].data.fd != listener) {
				if (read(ready[i].data.fd, buffer, sizeof(buffer)) <= 0)
					close(ready[i].data.fd);
				continue;
			}
			while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
				/* The client may be gone already: a gateway was killed. */
				if (send(fd, "x", 1, MSG_NOSIGNAL) == 1)
					watch(fd, EPOLLIN);
				else
					close(fd);
			}
		}
	}
}

static struct sockaddr_in server;

static int begin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail("socket");
	if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno != EINPROGRESS)
		fail("connect");
	watch(fd, EPOLLIN);
	return fd;
}

/* The number of those in `ready` that have their byte; the others are broken, which ends the program. */
static int answered(struct epoll_event *ready, int count)
{
	char byte;

	for (int i = 0; i < count; i++)
		if (read(ready[i].data.fd, &byte, 1) != 1)
			fail("read");
	return count;
}

static void rate(double seconds, int at_once)
{
	struct epoll_event ready[EVENTS];
	double began, end;
	long done = 0;

	for (int i = 0; i < at_once; i++)
		begin();
	began = now();
	end = began + seconds;
	while (now() < end) {
		int count = answered(ready, epoll_wait(poller, ready, EVENTS, 1000));

		for (int i = 0; i < count; i++) {
			reset(ready[i].data.fd);
			begin();
		}
		done += count;
	}
	printf("%.0f\n", done / (now() - began));
}

static void hold(int wanted)
{
	struct epoll_event ready[EVENTS];
	int begun = 0, open = 0;

	while (open < wanted) {
		while (begun < wanted && begun - open < 256) {
			begin();
			begun++;
		}
		open += answered(ready, epoll_wait(poller, ready, EVENTS, -1));
	}
	puts("open");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

int main(int count, char **words)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	poller = epoll_create1(0);
	if (count == 3 && !strcmp(words[1], "serve"))
		serve(atoi(words[2]));
	if (count < 5)
		return 2;
	server.sin_family = AF_INET;
	server.sin_port = htons(atoi(words[3]));
	if (inet_pton(AF_INET, words[2], &server.sin_addr) != 1)
		return 2;
	if (!strcmp(words[1], "rate") && count == 6)
		rate(atof(words[4]), atoi(words[5]));
	else if (!strcmp(words[1], "hold"))
		hold(atoi(words[4]));
	else
		return 2;
	return 0;
}
