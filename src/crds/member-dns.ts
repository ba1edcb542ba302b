// The zone of the nameservers in members, which find the Services of all logical clusters in it.

/** The top-level domain of names with an id of a logical cluster. Never forwarded. */
export const tenantZone = 'kcp'

/** True for a name in the zone. In any case, with or without the dot at its end, as resolvers read it. */
export function isInTenantZone(name: string): boolean {
  return /(^|\.)kcp\.?$/i.test(name)
}
