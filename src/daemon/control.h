/* control.h -- the control thread: starts workers and flows, keeps the view, stops everything on a signal.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include "daemon/config.h"

/* Runs until a signal or a fatal failure; gives the exit code (0: stopped by a signal and drained, 1: something
 * could not be stored). Runs on the calling thread. config must outlive it. */
int control_run(const struct config *config);

#endif
