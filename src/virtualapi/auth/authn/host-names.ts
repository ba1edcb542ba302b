// Names of host users inside logical clusters: the host's `system:masters` must have no rights there.

/**
 * The name of a host user or group inside logical clusters: `system:...` becomes `host:system:...`, except
 * `system:authenticated`. `host:...` gets the prefix too, or a host user named `host:system:serviceaccount:...` could
 * pass for a ServiceAccount of the host.
 */
export function hostName(name: string): string {
  if (name === 'system:authenticated') return name
  return name.startsWith('system:') || name.startsWith('host:') ? `host:${name}` : name
}
