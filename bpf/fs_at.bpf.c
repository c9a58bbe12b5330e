// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* FS-AT over the kernel's Reno, as in the paper. */
#define ALGORITHM "fs_at"

#include "fs_at_reno.h"
#include "fs_at_control.h"
