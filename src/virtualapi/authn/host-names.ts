// Host identities are not tenant identities: the host's `system:masters` is nobody in particular inside a logical cluster.

/**
 * What a user or group of the host is called inside logical clusters: `system:...` becomes `host:system:...`, except
 * `system:authenticated`, which is as true here as there. `host:...` gets the prefix too, or a host user who chose such
 * a name could pass for a ServiceAccount of the host.
 */
export function hostName(name: string): string {
  if (name === 'system:authenticated') return name
  return name.startsWith('system:') || name.startsWith('host:') ? `host:${name}` : name
}
