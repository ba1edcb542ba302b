// The name of the cookie of the console's sessions. No pod and no aggregated server may see it.

/**
 * The prefix `__Host-` makes browsers take the cookie from this host alone, over TLS, for all paths. It counts below
 * /console only.
 */
export const consoleCookie = '__Host-kcp-console'

/** The pairs of a header `Cookie` without the session of the console; empty if no other is left. */
export function withoutConsoleCookie(header: string): string {
  if (!header.includes(consoleCookie)) return header
  const pairs = header.split(';').map((pair) => pair.trim())
  return pairs.filter((pair) => !pair.startsWith(`${consoleCookie}=`)).join('; ')
}
