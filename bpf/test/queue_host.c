// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * A policy of the kernel as an ordinary program, for crates/linux/tests/queue_arithmetic.rs: reads the settings as words of 64
 * bits, then packets as struct packet, and writes a byte for each verdict. LAW is the header of the law.
 */
#include <stdio.h>

#include LAW
#include "../queue/policy.h"

int main(void)
{
	static struct settings settings;
	static struct policy policy;
	struct packet packet;

	if (fread(&settings, sizeof(settings), 1, stdin) != 1)
		return 1;
	policy.count = NO_COUNT;
	policy.random = settings.seed;
	while (fread(&packet, sizeof(packet), 1, stdin) == 1)
		putchar(judge(&policy, &settings, &packet));
	return 0;
}
