/* providers.h -- Kafka's config providers file, directory and env: fills in ${name:path:key}.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Read once, at load. What a provider gave is marked in its entry and never shown. A placeholder whose
 * provider or key is unknown stays as it is, with a warning, as in Kafka. On the loading thread.
 */
#ifndef DAEMON_PROVIDERS_H
#define DAEMON_PROVIDERS_H

struct loader;

/* Fills in the values of all entries but those of config.providers itself. */
void providers_apply(struct loader *l);

#endif
