// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* RED in front of a device's queue. */
#include "red_alone.h"
#include "device.h"
