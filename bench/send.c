/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends zeros over one TCP connection: ADDRESS PORT SECONDS. The first leave within microseconds of the answer to the SYN,
 * which no common program does. Its buffer is large, because the kernel ends a segment with PSH where the buffer is full,
 * which the receiver acknowledges at once.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char zeros[16384];
static const int buffer = 2 << 20;

int main(int count, char **arguments)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int connection = socket(AF_INET, SOCK_STREAM, 0);

	if (count != 4 || connection < 0 || inet_pton(AF_INET, arguments[1], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: send ADDRESS PORT SECONDS\n");
		return 2;
	}
	to.sin_port = htons(atoi(arguments[2]));
	alarm(atoi(arguments[3]));
	if (setsockopt(connection, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) < 0) {
		perror("SO_SNDBUFFORCE");
		return 1;
	}
	if (connect(connection, (struct sockaddr *)&to, sizeof(to)) < 0) {
		perror("connect");
		return 1;
	}
	while (write(connection, zeros, sizeof(zeros)) > 0)
		;
	perror("write");
	return 1;
}
