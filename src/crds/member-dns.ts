// The zone of the nameservers in members, which find the Services of all logical clusters in it.

/** The top-level domain of names with an id of a logical cluster. Never forwarded. */
export const tenantZone = 'kcp'

/** True for a name in the zone, in upper or lower case, with or without a dot at its end. */
export function isInTenantZone(name: string): boolean {
  return /(^|\.)kcp\.?$/i.test(name)
}
