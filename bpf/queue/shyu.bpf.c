// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* Shyu-AQM over RED in front of a device's queue. */
#include "shyu.h"
#include "device.h"
