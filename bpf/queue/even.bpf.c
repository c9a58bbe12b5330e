// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* Even shares over RED in front of a device's queue. */
#include "even.h"
#include "device.h"
