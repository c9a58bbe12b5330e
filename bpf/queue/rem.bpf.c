// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* REM in front of a device's queue. */
#include "rem.h"
#include "device.h"
