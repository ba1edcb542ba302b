// Names of host users inside logical clusters: the host's `system:masters` must have no rights there.

import { isAncestorName } from './ancestor-names.ts'

/**
 * The name of a host user or group inside logical clusters: `system:...` becomes `host:system:...`, except
 * `system:authenticated`. `host:...` gets the prefix too, or a host user named `host:system:serviceaccount:...` could
 * pass for a ServiceAccount of the host; so does `cluster:...`, the prefix of users of ancestors.
 */
export function hostName(name: string): string {
  if (name === 'system:authenticated') return name
  return name.startsWith('system:') || name.startsWith('host:') || isAncestorName(name) ? `host:${name}` : name
}
